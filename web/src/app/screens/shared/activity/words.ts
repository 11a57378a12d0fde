/** The texts of one line of activity. */
import { formatBytes, formatDuration } from "../../../parts/format";
import type { Entry, State } from "./types";

const files = (count: number) => (count === 1 ? "1 file" : `${count.toLocaleString("en")} files`);

export const activityWords = {
  kinds: {
    job: "Job",
    run: "Workflow run",
    stream: "Video stream",
    recording: "Recording",
    upload: "Upload",
    live: "Live stream",
  } satisfies Record<Entry["kind"], string>,
  states: {
    waiting: "Waiting",
    running: "Running",
    done: "Done",
    failed: "Failed",
    cancelled: "Cancelled",
  } satisfies Record<State, string>,
  recording: "Recording",
  live: "On air",
  reconnecting: "its encoder is reconnecting",
  onAir: (name: string) => `${name} is on air`,
  offAir: (name: string) => `${name} is off air`,
  job: (type: string, tool: string | null, count: number) =>
    `${tool ? `Tool ${tool}` : type === "compress" ? "Compression" : "Conversion"} of ${files(count)}`,
  jobNote: (completed: number, failed: number, total: number) =>
    `${completed} of ${total} done${failed > 0 ? `, ${failed} failed` : ""}`,
  run: (name: string, number: number) => `${name} #${number}`,
  recorded: (seconds: number, bytes: number) => `${formatDuration(seconds * 1_000)} · ${formatBytes(bytes)}`,
  /** `size` is null until the client declares it. */
  received: (bytes: number, size: number | null) =>
    size === null ? formatBytes(bytes) : `${formatBytes(bytes)} of ${formatBytes(size)}`,
  uncompleted: (bytes: number) => `${formatBytes(bytes)} received, to be completed by its client`,
  queued: (place: number) => `${place}. in the queue`,
  progress: (title: string) => `Progress of ${title}`,
};
