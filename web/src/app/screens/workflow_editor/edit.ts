/**
 * Changes of a flow: each function returns another one, or the same where nothing changes. The outline and the canvas
 * call the same functions, so that a workflow built by either is saved alike. Pure.
 */
import type { Group } from "../shared/conditions";
import {
  type Edge,
  edgeAt,
  type Fields,
  type Flow,
  isBranch,
  type Json,
  type Place,
  type Point,
  placesOf,
  type Step,
  stepOf,
  targetAt,
} from "../shared/flow";
import { isSpelling } from "../shared/meaning";
import { reachedFrom } from "./order";
import { newStep } from "./write";

export const MOST_STEPS = 50;

const isAt = (edge: Place, place: Place) => edge.source === place.source && edge.result === place.result;

/** An id that no step has: `resize`, `resize-2`, … */
export function freeId(flow: Flow, kind: string): string {
  const base = kind.replace(/_/g, "-");
  let id = base;
  for (let n = 2; stepOf(flow, id); n++) id = `${base}-${n}`;
  return id;
}

/** The flow with this way leading to `target`; null: nowhere. */
function led(flow: Flow, place: Place, target: string | null): Flow {
  if (targetAt(flow, place) === target) return flow;
  const rest = edgeAt(flow, place)?.rest ?? {};
  const others = flow.edges.filter((edge) => !isAt(edge, place));
  return { ...flow, edges: target === null ? others : [...others, { ...place, target, rest }] };
}

/**
 * Adds a step at a way out of another one: what followed there follows the new step. Both ways out of a new branch lead to it,
 * so that they meet again until one of them is connected elsewhere.
 */
export function added(flow: Flow, kind: string, place: Place, id: string): Flow {
  if (flow.steps.length >= MOST_STEPS || stepOf(flow, id)) return flow;
  const step = newStep(id, kind);
  const next = { ...flow, steps: [...flow.steps, step] };
  const follower = targetAt(flow, place);
  return placesOf(step).reduce((all, out) => led(all, out, follower), led(next, place, id));
}

/** The reason why a way cannot lead to a step; undefined when it can. */
export function whyNotConnected(flow: Flow, place: Place, target: string): "upload" | "cycle" | undefined {
  if (stepOf(flow, target)?.kind === "upload") return "upload";
  return reachedFrom(flow, target).has(place.source) ? "cycle" : undefined;
}

/** Leads a way to a step, or with null nowhere: the run ends there. */
export function connected(flow: Flow, place: Place, target: string | null): Flow {
  if (target !== null && (!stepOf(flow, target) || whyNotConnected(flow, place, target))) return flow;
  return led(flow, place, target);
}

/** The steps that a way out of this one could lead to. */
export const targetsFor = (flow: Flow, place: Place): Step[] =>
  flow.steps.filter((step) => step.id !== place.source && !whyNotConnected(flow, place, step.id));

/** Takes a step out of its way: what led to it leads to what follows it. */
function bridged(flow: Flow, id: string, follower: string | null): Flow {
  const edges = flow.edges.flatMap((edge) => {
    if (edge.source === id) return [];
    if (edge.target !== id) return [edge];
    return follower === null ? [] : [{ ...edge, target: follower }];
  });
  return { ...flow, edges };
}

/**
 * Removes a step; what led to it leads to what follows. Of a branch `keep` says which way stays, and the steps that only the
 * other one led to are removed with it.
 */
export function removed(flow: Flow, id: string, keep: "true" | "false" = "true"): Flow {
  const step = stepOf(flow, id);
  if (!step || step.kind === "upload") return flow;
  const follower = targetAt(flow, { source: id, result: isBranch(step) ? keep : "default" });
  const dropped = isBranch(step) ? onlyBehind(flow, id, keep) : new Set<string>();
  const next = bridged(flow, id, follower);
  return {
    ...next,
    steps: next.steps.filter((other) => other.id !== id && !dropped.has(other.id)),
    edges: next.edges.filter((edge) => !dropped.has(edge.source) && !dropped.has(edge.target)),
  };
}

/** The steps that only the way that is not kept leads to. */
export function onlyBehind(flow: Flow, branch: string, keep: "true" | "false"): Set<string> {
  const other = { source: branch, result: keep === "true" ? "false" : "true" } as const;
  const behind = reachedFrom(flow, targetAt(flow, other));
  const without = led(flow, other, null);
  const beginnings = without.steps.filter(
    (step) => !behind.has(step.id) && !without.edges.some((edge) => edge.target === step.id),
  );
  for (const { id } of beginnings) for (const reached of reachedFrom(without, id)) behind.delete(reached);
  return behind;
}

/** Moves a step to a way out of another one; a branch is not moved. */
export function moved(flow: Flow, id: string, place: Place): Flow {
  const step = stepOf(flow, id);
  if (!step || step.kind === "upload" || isBranch(step) || place.source === id) return flow;
  if (targetAt(flow, place) === id && flow.edges.filter((edge) => edge.target === id).length === 1)
    return flow;
  const out = bridged(flow, id, targetAt(flow, { source: id, result: "default" }));
  const follower = targetAt(out, place);
  return led(led(out, place, id), { source: id, result: "default" }, follower);
}

/** The step before this one, when there is one way to it. */
function before(flow: Flow, id: string): Edge | undefined {
  const ways = flow.edges.filter((edge) => edge.target === id);
  return ways.length === 1 ? ways[0] : undefined;
}

/** Swaps a step with the one before it. */
export function movedUp(flow: Flow, id: string): Flow {
  const step = stepOf(flow, id);
  const way = before(flow, id);
  const previous = stepOf(flow, way?.source);
  if (!step || isBranch(step) || !way || !previous || previous.kind === "upload") return flow;
  const out = bridged(flow, id, targetAt(flow, { source: id, result: "default" }));
  const edges = out.edges.map((edge) => (edge.target === previous.id ? { ...edge, target: id } : edge));
  return led({ ...out, edges }, { source: id, result: "default" }, previous.id);
}

/** Swaps a step with the one after it. */
export function movedDown(flow: Flow, id: string): Flow {
  const step = stepOf(flow, id);
  if (!step || isBranch(step) || step.kind === "upload") return flow;
  const next = stepOf(flow, targetAt(flow, { source: id, result: "default" }));
  return next && !isBranch(next) ? movedUp(flow, next.id) : flow;
}

function changedStep(flow: Flow, id: string, change: (step: Step) => Step): Flow {
  return { ...flow, steps: flow.steps.map((step) => (step.id === id ? change(step) : step)) };
}

export const titled = (flow: Flow, id: string, title: string) =>
  changedStep(flow, id, (step) => ({ ...step, title }));

/** Sets a field of a step's config; undefined takes it out. `alias` is the other name under which it may be there. */
export function configured(
  flow: Flow,
  id: string,
  name: string,
  value: Json | undefined,
  alias?: string,
): Flow {
  return changedStep(flow, id, (step) => {
    const others = Object.entries(step.config).filter(([key]) => !isSpelling(key, name, alias));
    const config: Fields = Object.fromEntries(others);
    if (value !== undefined) config[name] = value;
    return { ...step, config };
  });
}

export const conditioned = (flow: Flow, id: string, condition: Group | null) =>
  changedStep(flow, id, (step) => ({ ...step, condition }));

/** Gives a step another id, under which the log of a run lists it; not one that is taken or cannot be saved. */
export function renamed(flow: Flow, id: string, next: string): Flow {
  if (id === next || !isId(next) || stepOf(flow, next)) return flow;
  const edges = flow.edges.map((edge) => ({
    ...edge,
    source: edge.source === id ? next : edge.source,
    target: edge.target === id ? next : edge.target,
  }));
  return { ...changedStep(flow, id, (step) => ({ ...step, id: next })), edges };
}

const CONTROL = /\p{Cc}/u;
export const isId = (text: string) => text.length > 0 && [...text].length <= 100 && !CONTROL.test(text);

/** Keeps a step where the user put it. */
export const placed = (flow: Flow, id: string, at: Point) =>
  changedStep(flow, id, (step) => ({ ...step, at }));

/** Gives all steps back to the layout. */
export function tidied(flow: Flow): Flow {
  if (!flow.steps.some((step) => step.at)) return flow;
  return { ...flow, steps: flow.steps.map(({ at: _, ...step }) => step) };
}
