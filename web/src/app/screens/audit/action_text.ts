/** Actions of the audit log in words: "live.input.key_rotated" is "Live input: key rotated". */
import { capitalized } from "../../parts/format";

const NAMES: Record<string, string> = { api: "API", cdn: "CDN", url: "URL" };

export function actionText(action: string): string {
  const parts = action.split(".");
  const last = parts.pop() ?? "";
  const resource = parts.flatMap((part) => part.split("_")).map((word) => NAMES[word] ?? word);
  const did = last.split("_").join(" ");
  const text = resource.length > 0 ? `${resource.join(" ")}: ${did}` : did;
  return capitalized(text);
}

/** The beginnings of actions by which the log is narrowed. */
export const GROUPS: { value: string; label: string }[] = [
  { value: "user.", label: "Members" },
  { value: "invitation.", label: "Invitations" },
  { value: "session.", label: "Sessions" },
  { value: "api_key.", label: "API keys" },
  { value: "delivery_key.", label: "Delivery keys" },
  { value: "playback_key.", label: "Playback keys" },
  { value: "live.", label: "Live inputs" },
  { value: "file.", label: "Files" },
  { value: "folder.", label: "Folders" },
  { value: "share.", label: "Shares" },
  { value: "job.", label: "Conversions" },
  { value: "workflow.", label: "Workflows" },
  { value: "run.", label: "Workflow runs" },
  { value: "video.", label: "Video streams" },
  { value: "webhook.", label: "Webhooks" },
  { value: "preset.", label: "Image presets" },
];
