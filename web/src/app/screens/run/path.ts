/** Steps of a definition with the state that a run's log gives each: pure. */
import { formatBytes } from "../../parts/format";
import { type Flow, isBranch, readFlow, stepOf, targetAt, titleOf, uploadOf } from "../shared/flow";
import { formatTook, tookMs } from "../shared/run_time";
import { type Definition, hasEnded, type LogEntry, type Run } from "../shared/workflow_types";
import { words } from "./words";

export type StepState = "done" | "failed" | "running" | "waiting" | "skipped";

export interface Step {
  nodeId: string;
  kind: string;
  title: string;
  state: StepState;
  /** Its entry in the log; a step that is running or waits has none yet. */
  entry?: LogEntry;
}

/**
 * Every step of the definition: those of the log in its order, then the present one, then those that may follow, then those
 * that no way leads to any more.
 */
export function stepsOf(definition: Definition, run: Run): Step[] {
  const flow = readFlow("", definition);
  const logged: Step[] = run.log.map((entry) => ({
    nodeId: entry.nodeId,
    kind: entry.kind,
    title: entry.title,
    state: entry.status === "completed" ? "done" : entry.status === "failed" ? "failed" : "skipped",
    entry,
  }));
  const known = new Set(run.log.map(({ nodeId }) => nodeId));
  const step = (id: string, state: StepState): Step[] => {
    const found = stepOf(flow, id);
    if (!found || known.has(id)) return [];
    known.add(id);
    return [{ nodeId: id, kind: found.kind, title: titleOf(found), state }];
  };
  const others = () => flow.steps.flatMap(({ id }) => step(id, "skipped"));
  if (hasEnded(run)) return [...logged, ...others()];
  const present = presentStep(flow, run);
  const running = present ? step(present, run.status === "processing" ? "running" : "waiting") : [];
  const ahead = present ? reachable(flow, present).flatMap((id) => step(id, "waiting")) : [];
  return [...logged, ...running, ...ahead, ...others()];
}

/** The first step on the run's way that its log does not have. */
function presentStep(flow: Flow, run: Run): string | undefined {
  const done = new Map(run.log.map((entry) => [entry.nodeId, entry]));
  let at = uploadOf(flow);
  for (let count = 0; at !== undefined && count <= flow.steps.length; count++) {
    const entry = done.get(at.id);
    if (entry?.status !== "completed") return at.id;
    const result = isBranch(at) ? (entry.branch ? "true" : "false") : "default";
    at = stepOf(flow, targetAt(flow, { source: at.id, result }));
  }
  return undefined;
}

function reachable(flow: Flow, from: string): string[] {
  const found = [from];
  for (let i = 0; i < found.length; i++)
    for (const { source, target } of flow.edges)
      if (source === found[i] && !found.includes(target)) found.push(target);
  return found;
}

/** Why a step was skipped, with the name of the branch or the step that it was skipped by; undefined of others. */
export function skippedWhy({ entry }: Step, steps: Step[]): string | undefined {
  if (!entry?.skipReason) return undefined;
  const by = steps.find(({ nodeId }) => nodeId === entry.skippedBy);
  const named = by && words.skippedBy[entry.skipReason];
  return named ? named(by.title) : words.skipped[entry.skipReason];
}

/** "3.1 MB → 240 kB", or one size where a step changes nothing. */
export function sizesOf({ bytesIn, bytesOut }: LogEntry): string {
  const [before, after] = [bytesIn ?? undefined, bytesOut ?? undefined];
  if (before === undefined && after === undefined) return "";
  if (before === undefined || before === after) return formatBytes((after ?? before) as number);
  if (after === undefined) return formatBytes(before);
  return `${formatBytes(before)} → ${formatBytes(after)}`;
}

/** One line for a node of the drawn graph. */
export function noteOf(step: Step): string {
  const entry = step.entry;
  if (!entry) return "";
  const took = tookMs(entry);
  const sizes = entry.bytesIn !== entry.bytesOut ? sizesOf(entry) : "";
  return [took === undefined ? "" : formatTook(took), sizes].filter(Boolean).join(" · ");
}
