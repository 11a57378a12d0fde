/** The texts of uploads. */
import { formatBytes, formatDuration } from "../../../parts/format";
import { plural } from "../words";

export const words = {
  title: "Uploads",
  progress: (ended: number, files: number) => `Uploading ${ended} of ${files}`,
  ended: (files: number) => `${plural(files, "file")} uploaded`,
  someFailed: (failed: number) => `${plural(failed, "upload")} failed`,
  cut: (lost: number) => `${plural(lost, "upload")} cut off`,
  allDone: (files: number) => `${plural(files, "file")} uploaded`,
  present: (files: number) => `${plural(files, "file")} ${files === 1 ? "was" : "were"} there already`,
  amount: (sent: number, bytes: number) => `${formatBytes(sent)} of ${formatBytes(bytes)}`,
  left: (ms: number) => `${formatDuration(ms)} left`,
  paused: "The service asks to wait a moment",
  offline: "Waiting for the connection",
  retryAll: "Retry all failed",
  retry: (name: string) => `Retry ${name}`,
  cancel: (name: string) => `Cancel ${name}`,
  cancelAll: "Cancel all",
  cancelTitle: "Cancel the uploads?",
  cancelBody: (files: number) =>
    `${plural(files, "file")} will not be uploaded. What has arrived whole stays.`,
  more: (files: number) => `${plural(files, "more file")}`,
  show: "Show the list",
  hide: "Hide the list",
  close: "Close",
  chooseAgain: "Choose the same file again to continue",
  chooseLost: "Choose again…",
  lostNote:
    "A reload cut these off. Choose the same files again: they continue where they stopped, and what is stored already is not sent twice.",
  continues: (files: number) => `The connection is back: ${plural(files, "upload")} in progress again`,
  pasted: "Pasted",
  diskFull: "The disk of the service is too full for uploads",
  noRoom: "There is not enough room for these files",
  needs: (files: number, bytes: number, left: number) =>
    `${plural(files, "file")} with ${formatBytes(bytes)} would be stored; ${formatBytes(left)} are left. Delete files, or take a larger plan.`,
  storage: "Storage",
  plan: "Usage and plan",
  states: {
    waiting: "waiting",
    sending: "sending",
    done: "stored",
    present: "was there already",
    failed: "failed",
    lost: "cut off",
  },
};
