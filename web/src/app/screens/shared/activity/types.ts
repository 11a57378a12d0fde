/** Records that the list of activity is merged from, as the API answers them. */
export interface Job {
  id: string;
  jobType: string;
  tool: string | null;
  status: string;
  progress: number;
  queuePlace: number | null;
  totalFiles: number;
  completedFiles: number;
  failedFiles: number;
  errorMessage: string | null;
  createdAt: string;
}

export interface Run {
  id: string;
  workflowName: string;
  number: number;
  inputFilename: string;
  status: string;
  error: string | null;
  createdAt: string;
}

export interface Stream {
  id: string;
  title: string;
  status: string;
  progress: number;
  queuePlace: number | null;
  error: string | null;
  createdAt: string;
}

export interface Recording {
  id: string;
  status: string;
  error: string | null;
  stoppedReason: string | null;
  startedAt: string;
  files: { fileId: string | null; sizeBytes: number; duration: number }[];
}

export interface StoredFile {
  id: string;
  filename: string;
  role: string;
  folder_id: string | null;
  size_bytes: number;
  created_at: string;
}

/** An upload that is no file yet. */
export interface Upload {
  id: string;
  kind: "tus" | "direct";
  filename: string;
  folderId: string | null;
  /** Null: not declared yet. */
  sizeBytes: number | null;
  /** Of a direct upload nothing before all of it is there. */
  offsetBytes: number;
  /** "received": all bytes of a direct upload are there, and it was not completed. */
  status: "receiving" | "received";
  createdAt: string;
  expiresAt: string;
}

export interface UploadList {
  uploads: Upload[];
  nextCursor: string | null;
}

export interface Input {
  id: string;
  name: string;
  status: string;
  recordMode: string;
  lastStartedAt: string | null;
  lastEndedAt: string | null;
  /** Null: not counted. */
  viewers: number | null;
}

/** How far a piece of work is, whatever it is. */
export const STATES = ["waiting", "running", "done", "failed", "cancelled"] as const;
export type State = (typeof STATES)[number];

export const KINDS = ["job", "run", "stream", "live", "recording", "upload"] as const;
export type EntryKind = (typeof KINDS)[number];

/** One line of the list. */
export interface Entry {
  kind: EntryKind;
  id: string;
  /** Unix milliseconds. */
  at: number;
  state: State;
  /** By users, or by the words of the kind. */
  title: string;
  note: string;
  /** 0 to 100, of work that reports it. */
  percent: number | null;
  queuePlace: number | null;
  error: string | null;
  /** Screen with the result; null: there is none yet. */
  to: string | null;
  /** The workflow of a run. */
  workflowId?: string;
  /** Of what is on air. */
  viewers?: number | null;
  /** How an upload in progress is sent. */
  upload?: Upload["kind"];
}

/** What part of the list is shown. */
export interface Filter {
  kinds: EntryKind[];
  /** "active" is waiting or running; empty: all. */
  state: "" | "active" | "done" | "failed" | "cancelled";
  /** Unix milliseconds. */
  since?: number;
  q: string;
}
