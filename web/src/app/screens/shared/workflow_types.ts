/** Workflows and their runs, as the API answers them. */
import { capitalized } from "../../parts/format";

export interface Condition {
  field: string;
  operator: string;
  value?: unknown;
  negate?: boolean;
}

export interface Group {
  logic?: string;
  negate?: boolean;
  conditions?: (Condition | Group)[];
  groups?: Group[];
}

interface NodeFields {
  kind?: string;
  type?: string;
  title?: string;
  label?: string;
  config?: Record<string, unknown>;
}

/** A step. Definitions by programs may have its fields beside the id. Read by `readFlow`, which knows every spelling. */
export interface DefinitionNode extends NodeFields {
  id: string;
  data?: NodeFields;
}

export interface DefinitionEdge {
  source: string;
  target: string;
  kind?: string | null;
  sourceHandle?: string | null;
}

/** Further fields, such as the places of nodes in an editor, are kept by the service. */
export interface Definition {
  nodes: DefinitionNode[];
  edges: DefinitionEdge[];
  uploadGate?: Group | null;
  branchConditions?: Record<string, Group> | null;
  renamePattern?: string | null;
  webhookUrl?: string | null;
  trigger?: { folderId: string } | null;
  [further: string]: unknown;
}

export interface Workflow {
  id: string;
  name: string;
  isActive: boolean;
  definition: Definition;
  version: number;
  runCount: number;
  lastRunAt?: string | null;
  createdAt: string;
  updatedAt: string;
  /** Only in the answer that made it. */
  webhookSecret?: string | null;
}

export interface WorkflowList {
  workflows: Workflow[];
  nextCursor?: string | null;
}

export interface WorkflowVersion {
  version: number;
  createdAt: string;
}

/** How the newest runs of a workflow ended at a step. */
export interface NodeStatistics {
  nodeId: string;
  completed: number;
  failed: number;
  skipped: number;
  /** Of a branch. */
  tookTrue: number;
  tookFalse: number;
}

export type RunStatus = "queued" | "processing" | "completed" | "failed" | "cancelled";

export interface LogEntry {
  nodeId: string;
  kind: string;
  title: string;
  status: "completed" | "failed" | "skipped";
  message: string;
  startedAt?: string | null;
  finishedAt?: string | null;
  bytesIn?: number | null;
  bytesOut?: number | null;
  branch?: boolean | null;
  facts?: Record<string, unknown> | null;
  storedFileId?: string | null;
  skipReason?: "gate" | "otherPath" | "failure" | "stopped" | "noPath" | null;
  /** The branch whose other path the skipped step lies on, or the step whose failure kept the run from it. */
  skippedBy?: string | null;
}

export interface RunOutput {
  filename: string;
  mimeType: string;
  sizeBytes: number;
  width?: number | null;
  height?: number | null;
  storedFileId?: string | null;
  downloadUrl?: string | null;
}

export interface Run {
  id: string;
  workflowId: string;
  workflowVersion: number;
  number: number;
  status: RunStatus;
  trigger: string;
  uploadSource: string;
  inputFilename: string;
  inputSize: number;
  workflowName?: string;
  /** Whether it can be run again. */
  isInputKept?: boolean;
  sourceFileId?: string | null;
  rerunOf?: string | null;
  gate?: boolean | null;
  error?: string | null;
  errorCode?: string | null;
  errorNodeId?: string | null;
  log: LogEntry[];
  outputs: RunOutput[];
  createdAt: string;
  startedAt?: string | null;
  completedAt?: string | null;
}

export interface RunAnswer {
  run: Run;
  runId: string;
}

export const hasEnded = ({ status }: Pick<Run, "status">) => status !== "queued" && status !== "processing";

/** "Strip metadata" of `strip_metadata`. */
export const kindInWords = (kind: string) =>
  capitalized(kind.replaceAll(/[_-]/g, " ").replaceAll(/\b(gif|hls|pdf)\b/g, (word) => word.toUpperCase()));
