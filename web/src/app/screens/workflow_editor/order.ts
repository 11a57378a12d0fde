/**
 * The order in which the outline shows the steps: each branch with its two ways below it, and after both the step where they
 * meet. The canvas is laid out by the same order. Pure.
 */
import type { Flow, Place, Result, Step } from "../shared/flow";

/** Steps one after another. */
export interface Chain {
  /** The way that leads to its first step; null where no way leads. */
  from: Place | null;
  items: Item[];
  /** Its end, when it does not end in a branch. */
  end: {
    place: Place /** The step elsewhere that follows; null: the run ends. */;
    next: string | null;
  } | null;
}

export interface Item {
  step: Step;
  /** From 1, in the order of reading. */
  number: number;
  /** The ways out of a branch. */
  arms: Chain[];
}

export interface Outline {
  main: Chain;
  /** Steps that no path from the upload reaches. */
  loose: Chain[];
  numbers: Map<string, number>;
}

interface Graph {
  steps: Map<string, Step>;
  next: (id: string, result: Result) => string | null;
  /** Steps on the longest path from the upload. */
  ranks: Map<string, number>;
}

export function graphOf(flow: Flow): Graph {
  const steps = new Map(flow.steps.map((step) => [step.id, step]));
  const out = new Map<string, Map<Result, string>>();
  for (const { source, result, target } of flow.edges) {
    let ways = out.get(source);
    if (!ways) {
      ways = new Map();
      out.set(source, ways);
    }
    if (!ways.has(result)) ways.set(result, target);
  }
  return { steps, next: (id, result) => out.get(id)?.get(result) ?? null, ranks: ranksOf(flow) };
}

function ranksOf(flow: Flow): Map<string, number> {
  const sources = new Map<string, string[]>();
  for (const { source, target } of flow.edges) sources.set(target, [...(sources.get(target) ?? []), source]);
  const ranks = new Map<string, number>();
  const open = new Set<string>();
  const rank = (id: string): number => {
    const known = ranks.get(id);
    if (known !== undefined) return known;
    // A cycle is no workflow; it must not hang the page either.
    if (open.has(id)) return 0;
    open.add(id);
    const found = Math.max(-1, ...(sources.get(id) ?? []).map(rank)) + 1;
    open.delete(id);
    ranks.set(id, found);
    return found;
  };
  for (const { id } of flow.steps) rank(id);
  return ranks;
}

export function outlineOf(flow: Flow): Outline {
  const graph = graphOf(flow);
  const placed = new Set<string>();
  const upload = flow.steps.find((step) => step.kind === "upload");
  const main = chainFrom(graph, placed, null, upload?.id ?? null, new Set());
  const targets = new Set(flow.edges.map((edge) => edge.target));
  const loose: Chain[] = [];
  // Steps without a way to them begin a chain; what is left after that lies on a cycle.
  const beginnings = [...flow.steps.filter((step) => !targets.has(step.id)), ...flow.steps];
  for (const { id } of beginnings)
    if (!placed.has(id)) loose.push(chainFrom(graph, placed, null, id, new Set()));
  const numbers = new Map<string, number>();
  for (const chain of [main, ...loose]) number(chain, numbers);
  return { main, loose, numbers };
}

function chainFrom(
  graph: Graph,
  placed: Set<string>,
  from: Place | null,
  start: string | null,
  stops: Set<string>,
): Chain {
  const items: Item[] = [];
  let place = from;
  let at = start;
  while (at !== null && !stops.has(at) && !placed.has(at)) {
    const step = graph.steps.get(at);
    if (!step) break;
    placed.add(at);
    const item: Item = { step, number: 0, arms: [] };
    items.push(item);
    if (step.kind === "branch") {
      const join = meeting(graph, at);
      const inner = join === null ? stops : new Set([...stops, join]);
      for (const result of ["true", "false"] as const) {
        const way = { source: at, result };
        item.arms.push(chainFrom(graph, placed, way, graph.next(at, result), inner));
      }
      place = null;
      at = join;
    } else {
      place = { source: at, result: "default" };
      at = graph.next(at, "default");
    }
  }
  return { from, items, end: place && { place, next: at } };
}

/** The first step that both ways out of a branch reach; null when they do not meet. */
function meeting(graph: Graph, branch: string): string | null {
  const yes = reached(graph, graph.next(branch, "true"));
  const no = reached(graph, graph.next(branch, "false"));
  let found: string | null = null;
  for (const id of yes)
    if (no.has(id) && (found === null || (graph.ranks.get(id) ?? 0) < (graph.ranks.get(found) ?? 0)))
      found = id;
  return found;
}

/** A step with all that follow it. */
function reached(graph: Graph, start: string | null): Set<string> {
  const found = new Set<string>();
  const open = start === null ? [] : [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    for (const result of ["false", "true", "default"] as const) {
      const target = graph.next(id, result);
      if (target !== null) open.push(target);
    }
  }
  return found;
}

export const reachedFrom = (flow: Flow, start: string | null) => reached(graphOf(flow), start);

function number(chain: Chain, numbers: Map<string, number>) {
  for (const item of chain.items) {
    item.number = numbers.size + 1;
    numbers.set(item.step.id, item.number);
    for (const arm of item.arms) number(arm, numbers);
  }
}

/** All items of a chain, in the order of reading. */
export const itemsOf = (chain: Chain): Item[] =>
  chain.items.flatMap((item) => [item, ...item.arms.flatMap(itemsOf)]);

/** The steps in the order of the outline. */
export function ordered(flow: Flow): Step[] {
  const { main, loose } = outlineOf(flow);
  return [main, ...loose].flatMap(itemsOf).map((item) => item.step);
}
