/** The parts of the settings. */
import { can } from "../../api/session";
import { Tabs } from "../../parts/tabs";
import { href, path } from "../../router";

const PARTS = [
  { to: "/settings/account", label: "Account", scope: "read" },
  { to: "/settings/api/keys", label: "API keys", scope: "admin" },
  { to: "/settings/api/delivery-keys", label: "Delivery keys", scope: "read" },
  { to: "/settings/api/playback-keys", label: "Playback keys", scope: "admin" },
  { to: "/settings/usage", label: "Usage and plan", scope: "read" },
  { to: "/settings/members", label: "Members", scope: "admin" },
  { to: "/settings/members/invitations", label: "Invitations", scope: "admin" },
  { to: "/settings/audit", label: "Audit log", scope: "admin" },
] as const;

export function SettingsTabs() {
  const here = path.value === "/settings" ? "/settings/account" : path.value;
  return (
    <Tabs
      label="Settings"
      items={PARTS.filter(({ scope }) => can(scope)).map(({ to, label }) => ({
        href: href(to),
        label,
        current: here === to,
      }))}
    />
  );
}
