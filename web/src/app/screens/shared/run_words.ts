/** The texts of runs, wherever they are listed. */
import type { Tone } from "../../parts/states";
import type { RunStatus } from "./workflow_types";

export const TONES: Record<RunStatus, Tone> = {
  queued: "calm",
  processing: "info",
  completed: "good",
  failed: "bad",
  cancelled: "warn",
};

export const runWords = {
  statuses: {
    queued: "waiting",
    processing: "running",
    completed: "completed",
    failed: "failed",
    cancelled: "cancelled",
  } as Record<RunStatus, string>,
  triggers: {
    api: "upload",
    file: "stored file",
    folder: "folder",
    mcp: "agent",
  } as Record<string, string>,
  /** A run in few words: the title of its screen. */
  title: (number: number) => `Run ${number}`,
  gateClosed: "not let in by the gate",
  file: "File",
  workflow: "Workflow",
  status: "Status",
  trigger: "Started by",
  version: "Version",
  begun: "Begun",
  took: "Took",
  any: "any",
  allWorkflows: "All workflows",
  anyTime: "any time",
  since: "Since",
  anyTrigger: "any trigger",
  search: "Search by file name",
  searchAll: "Search by file or workflow",
  spans: {
    "3600": "last hour",
    "86400": "last day",
    "604800": "last week",
    "2592000": "last 30 days",
  } as Record<string, string>,
  sort: "Order",
  sorts: { "": "newest first", oldest: "oldest first", longest: "longest first" } as Record<string, string>,
  none: "No runs match.",
  more: "Show more",
  table: "Runs",
  progress: (file: string) => `Progress of ${file}`,
  queued: (place: number) => (place === 1 ? "next in the queue" : `place ${place} in the queue`),
};
