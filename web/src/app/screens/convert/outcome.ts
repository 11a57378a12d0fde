/** What came of a job that has ended. Pure. */
import type { Job, ResultFile } from "./types";

export interface Outcome {
  state: "done" | "failed" | "cancelled";
  results: ResultFile[];
  /** Why all of it failed. */
  error?: { message: string } | undefined;
  /** Files that failed, to be listed: of a job that is done all the same, or of several that failed. */
  errors: { filename: string; error: string }[];
}

/** A job of several files is completed when at least one of them succeeded. */
export function outcomeOf({ status, results, errors, errorMessage }: Job): Outcome {
  const failed = errors ?? [];
  const common = { results: results ?? [] };
  if (status === "cancelled") return { ...common, state: "cancelled", errors: [] };
  if (status === "completed") return { ...common, state: "done", errors: failed };
  const message = failed[0]?.error ?? errorMessage;
  return {
    ...common,
    state: "failed",
    error: message ? { message } : undefined,
    errors: failed.length > 1 ? failed : [],
  };
}
