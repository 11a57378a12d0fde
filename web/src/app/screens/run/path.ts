/** Steps of a definition with the state that a run's log gives each: pure. */
import { formatBytes } from "../../parts/format";
import { formatTook, tookMs } from "../shared/run_time";
import {
  type Definition,
  hasEnded,
  kindOf,
  type LogEntry,
  type Run,
  titleOf,
  wayOf,
} from "../shared/workflow_types";

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
  const nodes = new Map((definition.nodes ?? []).map((node) => [node.id, node]));
  const logged: Step[] = run.log.map((entry) => ({
    nodeId: entry.nodeId,
    kind: entry.kind,
    title: entry.title,
    state: entry.status === "completed" ? "done" : entry.status === "failed" ? "failed" : "skipped",
    entry,
  }));
  const known = new Set(run.log.map(({ nodeId }) => nodeId));
  const step = (id: string, state: StepState): Step[] => {
    const node = nodes.get(id);
    if (!node || known.has(id)) return [];
    known.add(id);
    return [{ nodeId: id, kind: kindOf(node), title: titleOf(node), state }];
  };
  if (hasEnded(run)) return [...logged, ...[...nodes.keys()].flatMap((id) => step(id, "skipped"))];
  const present = presentStep(definition, run);
  const running = present ? step(present, run.status === "processing" ? "running" : "waiting") : [];
  const ahead = present ? reachable(definition, present).flatMap((id) => step(id, "waiting")) : [];
  return [...logged, ...running, ...ahead, ...[...nodes.keys()].flatMap((id) => step(id, "skipped"))];
}

/** The first step on the run's way that its log does not have. */
function presentStep(definition: Definition, run: Run): string | undefined {
  const done = new Map(run.log.map((entry) => [entry.nodeId, entry]));
  let at = definition.nodes.find((node) => kindOf(node) === "upload")?.id;
  for (let steps = 0; at !== undefined && steps <= definition.nodes.length; steps++) {
    const entry = done.get(at);
    if (entry?.status !== "completed") return at;
    const out = definition.edges.filter(({ source }) => source === at);
    const wanted = entry.branch === undefined || entry.branch === null ? "default" : String(entry.branch);
    const edge = out.find((each) => wayOf(each) === wanted) ?? out.find((each) => wayOf(each) === "default");
    // Only a branch tells its edges apart
    at = (edge ?? (wanted === "default" ? out[0] : undefined))?.target;
  }
  return undefined;
}

function reachable(definition: Definition, from: string): string[] {
  const found = [from];
  for (let i = 0; i < found.length; i++)
    for (const { source, target } of definition.edges)
      if (source === found[i] && !found.includes(target)) found.push(target);
  return found;
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
