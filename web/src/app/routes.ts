/** Every screen: one line each. A screen is a folder in `screens/` whose `index.tsx` exports a component by default. */
import type { ComponentType } from "preact";
import { session } from "./api/session";
import type { IconName } from "./parts/icon";
import Overview from "./screens/overview";

export interface ScreenProps {
  params: Record<string, string>;
}

export interface Route {
  /** Below `/app`. A screen is mounted again when a parameter changes, except `:tab` and those of a `lasting` screen. */
  path: string;
  title: string;
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  lasting?: boolean;
  /** Without navigation, and without a session. */
  bare?: boolean;
}

export const routes: Route[] = [
  // With the shell: the first screen costs no further request.
  { path: "/", title: "Overview", load: () => Promise.resolve({ default: Overview }) },
  { path: "/live", title: "Live", load: () => import("./screens/live") },
  { path: "/live/:id/:tab?", title: "Live input", load: () => import("./screens/live_detail") },
  { path: "/files/shares", title: "Shares", load: () => import("./screens/shares") },
  { path: "/files/:folder?", title: "Files", load: () => import("./screens/files"), lasting: true },
  { path: "/images/:tab?", title: "Images", load: () => import("./screens/images") },
  { path: "/convert", title: "Convert", load: () => import("./screens/convert") },
  { path: "/streams", title: "Video streams", load: () => import("./screens/streams") },
  { path: "/streams/:id/:tab?", title: "Video stream", load: () => import("./screens/stream_detail") },
  { path: "/workflows", title: "Workflows", load: () => import("./screens/workflows") },
  { path: "/workflows/:id/:tab?", title: "Workflow", load: () => import("./screens/workflow") },
  { path: "/runs", title: "Runs", load: () => import("./screens/runs") },
  { path: "/runs/:id", title: "Run", load: () => import("./screens/run") },
  { path: "/webhooks/:tab?", title: "Webhooks", load: () => import("./screens/webhooks") },
  { path: "/activity", title: "Activity", load: () => import("./screens/activity") },
  { path: "/settings/api/:tab?", title: "API keys", load: () => import("./screens/settings_api") },
  { path: "/settings/usage", title: "Usage", load: () => import("./screens/settings_usage") },
  { path: "/settings/members/:tab?", title: "Members", load: () => import("./screens/members") },
  { path: "/settings/audit", title: "Audit log", load: () => import("./screens/audit") },
  { path: "/settings/account", title: "Account", load: () => import("./screens/settings_account") },
  { path: "/settings", title: "Account", load: () => import("./screens/settings_account") },
  { path: "/guides/:name?", title: "Guides", load: () => import("./screens/guide"), lasting: true },
  { path: "/system/:tab?", title: "System", load: () => import("./screens/system") },
  { path: "/sign-in", title: "Sign in", load: () => import("./screens/sign_in"), bare: true },
  { path: "/welcome", title: "Welcome", load: () => import("./screens/welcome"), bare: true },
  { path: "/join", title: "Join", load: () => import("./screens/join"), bare: true },
];

export const notFound: Route = { path: "", title: "Not found", load: () => import("./screens/not_found") };

export interface Place {
  to: string;
  label: string;
  icon: IconName;
  /** Further names by which the palette finds it. */
  words?: string;
  /** Only for operators of the installation. */
  operator?: boolean;
  /** Screens that belong to it, with other addresses. */
  also?: string[];
  /** In the bar at the bottom of phones; the others are behind "More". */
  phone?: boolean;
}

/** Whether the user may see a place. */
export const isReachable = ({ operator }: Place) => !operator || session.value?.user.operator === true;

/** The left bar. */
export const places: Place[] = [
  { to: "/", phone: true, label: "Overview", icon: "overview", words: "home start" },
  { to: "/live", phone: true, label: "Live", icon: "live", words: "inputs streams rtmp srt obs" },
  { to: "/files", phone: true, label: "Files", icon: "files", words: "folders assets upload" },
  { to: "/images", label: "Images", icon: "images", words: "delivery cdn transform builder presets purge" },
  {
    to: "/convert",
    label: "Convert",
    icon: "convert",
    words: "tools compress resize video audio pdf gif watermark",
  },
  { to: "/streams", label: "Streams", icon: "video", words: "video on demand vod hls captions embed player" },
  {
    to: "/workflows",
    label: "Workflows",
    icon: "workflow",
    words: "automation steps templates editor",
    also: ["/runs"],
  },
  {
    to: "/activity",
    phone: true,
    label: "Activity",
    icon: "clock",
    words: "history jobs runs conversions recordings uploads progress",
  },
  { to: "/webhooks", label: "Webhooks", icon: "webhooks", words: "events deliveries endpoints" },
  { to: "/settings", label: "Settings", icon: "settings", words: "account password sessions" },
  {
    to: "/system",
    label: "System",
    icon: "system",
    words: "operator health workers queues disk storage log doctor accounts plans backup nodes version",
    operator: true,
  },
];

/** Screens that only the palette names. */
export const furtherPlaces: Place[] = [
  { to: "/runs", label: "Runs", icon: "clock", words: "workflows history executions log" },
  { to: "/files/shares", label: "Shares", icon: "link", words: "links" },
  { to: "/settings/api/keys", label: "API keys", icon: "key" },
  { to: "/settings/api/delivery-keys", label: "Delivery keys", icon: "key" },
  { to: "/settings/api/playback-keys", label: "Playback keys", icon: "key", words: "signing" },
  { to: "/guides", label: "Guides", icon: "book", words: "help documentation manual" },
  { to: "/settings/members", label: "Members", icon: "user", words: "users roles people team" },
  { to: "/settings/members/invitations", label: "Invitations", icon: "user", words: "invite join" },
  { to: "/settings/audit", label: "Audit log", icon: "book", words: "history changes who" },
  { to: "/settings/usage", label: "Usage and plan", icon: "chart", words: "quota limits operations" },
  { to: "/system/log", label: "Log", icon: "list", words: "system lines errors", operator: true },
  { to: "/system/doctor", label: "Doctor", icon: "check", words: "system checks", operator: true },
  { to: "/system/accounts", label: "Accounts", icon: "user", words: "system plans", operator: true },
];
