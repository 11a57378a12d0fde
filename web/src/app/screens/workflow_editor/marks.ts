/** Results of a run, or of a dry run, by step, for drawing them on the graph. Pure. */
import type { Edge } from "../shared/flow";

export type MarkState = "done" | "failed" | "running" | "waiting" | "skipped" | "unknown";

export interface Mark {
  state: MarkState;
  /** A short text in the step's box: "31 ms", "3.1 MB → 240 kB". */
  note?: string | undefined;
  /** The result of a branch. */
  branch?: boolean | "unknown" | undefined;
}

/** By the id of the step. */
export type Marks = ReadonlyMap<string, Mark>;

/** An entry of a run's `log`, as far as the drawing needs it. */
export interface LogEntry {
  nodeId: string;
  status: string;
  branch?: boolean | null;
}

const STATES: Record<string, MarkState> = {
  completed: "done",
  failed: "failed",
  skipped: "skipped",
  running: "running",
  processing: "running",
};

/** The marks of a run's log; `noteOf` adds a text to each. Steps without an entry wait while the run is not over. */
export function marksOfLog<Entry extends LogEntry>(
  log: readonly Entry[],
  noteOf?: (entry: Entry) => string | undefined,
): Marks {
  return new Map(
    log.map((entry) => [
      entry.nodeId,
      {
        state: STATES[entry.status] ?? "waiting",
        note: noteOf?.(entry),
        branch: entry.branch ?? undefined,
      },
    ]),
  );
}

/** The answer of `POST /api/workflows/dry-run`. */
export interface DryRun {
  /** Null without a gate. */
  gate?: "true" | "false" | "unknown" | null;
  path: {
    nodeId: string;
    state: "taken" | "notTaken" | "unknown";
    branch?: "true" | "false" | "unknown" | null;
    /** The step cannot be done on such a file. */
    fails?: boolean;
    because?: string | null;
  }[];
  operations: { charged: number; unknown: number };
  output?: Foreseen[];
}

/** A file that a run would leave; null is not known. */
export interface Foreseen {
  nodeId?: string | null;
  state: string;
  filename?: string | null;
  mimeType?: string | null;
  sizeBytes?: number | null;
  width?: number | null;
  height?: number | null;
}

const FORESEEN: Record<string, MarkState> = { taken: "done", notTaken: "skipped", unknown: "unknown" };

export function marksOfDryRun(answer: DryRun): Marks {
  return new Map(
    answer.path.map(({ nodeId, state, branch, fails }) => [
      nodeId,
      {
        state: fails && state !== "notTaken" ? "failed" : (FORESEEN[state] ?? "unknown"),
        branch: branch === "unknown" ? "unknown" : branch == null ? undefined : String(branch) === "true",
      },
    ]),
  );
}

/** Whether an edge was followed: `taken`, `other` (the other path), `maybe`, or undefined where nothing is known. */
export function edgeState(edge: Edge, marks: Marks | undefined): "taken" | "other" | "maybe" | undefined {
  const [source, target] = [marks?.get(edge.source), marks?.get(edge.target)];
  if (!source) return undefined;
  if (source.state === "skipped") return "other";
  if (source.branch === "unknown" || source.state === "unknown") return "maybe";
  if (source.branch !== undefined && String(source.branch) !== edge.result && edge.result !== "default")
    return "other";
  if (source.state !== "done") return undefined;
  return target?.state === "skipped" ? "other" : target?.state === "unknown" ? "maybe" : "taken";
}
