/** Kinds of steps in words and icons, and what a step does in a line. */
import type { IconName } from "../../parts/icon";
import type { Flow, Json, Step } from "../shared/flow";
import { groupInWords } from "./conditions";

const ICONS: Record<string, IconName> = {
  upload: "upload",
  branch: "branch",
  rename: "tag",
  storage: "files",
  webhook: "webhooks",
  hls: "live",
  compress: "archive",
  audio: "audio",
  extract_audio: "audio",
  waveform: "chart",
  poster_frame: "video",
  storyboard: "grid",
  gif: "video",
  trim: "scissors",
  pdf_preview: "file",
  image_to_pdf: "file",
  strip_metadata: "eye",
  inspect: "search",
  watermark: "edit",
};
export const kindIcon = (kind: string): IconName => ICONS[kind] ?? "images";

export type KindGroup = "flow" | "delivery" | "image" | "media";
export const KIND_GROUPS: KindGroup[] = ["image", "media", "delivery", "flow"];
const DELIVERY = ["storage", "webhook", "hls"];

/** The list that a kind is in, by the files that it accepts. */
export function groupOfKind({ kind, accepts }: { kind: string; accepts: string[] }): KindGroup {
  if (DELIVERY.includes(kind)) return "delivery";
  if (accepts.length === 0) return "flow";
  return accepts.some((what) => /image|document/.test(what)) ? "image" : "media";
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The fields of a step in a line: `webp, compression 82`; of a branch its condition, of the upload the gate. */
export function summaryOf(step: Step, flow: Flow): string {
  if (step.kind === "branch") return step.condition ? groupInWords(step.condition) : "";
  if (step.kind === "upload") return flow.gate ? `only if ${groupInWords(flow.gate)}` : "";
  return Object.entries(step.config)
    .map(([name, value]) => fieldInWords(name, value))
    .filter(Boolean)
    .join(", ");
}

function fieldInWords(name: string, value: Json): string {
  const words = nameInWords(name);
  if (value === null || value === false || value === "") return "";
  if (value === true) return words;
  if (typeof value === "string") return UUID.test(value) ? "" : value;
  return `${words.replace(/^resize /, "")} ${typeof value === "number" ? value : JSON.stringify(value)}`;
}

/** `resize width` of `resizeWidth`. */
export const nameInWords = (name: string) =>
  name
    .replace(/_/g, " ")
    .replace(
      /([a-z0-9])([A-Z])/g,
      (_, before: string, letter: string) => `${before} ${letter.toLowerCase()}`,
    );
