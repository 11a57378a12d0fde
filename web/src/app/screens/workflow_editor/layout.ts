/**
 * Places of the steps on the canvas: rows by the longest path from the upload, the true way of a branch on the left and the
 * false one on the right, the step where they meet between them. Pure.
 */
import type { Flow, Point } from "../shared/flow";
import { type Chain, graphOf, outlineOf } from "./order";

export const BOX = { width: 208, height: 64 };
const COLUMN = BOX.width + 40;
const ROW = BOX.height + 56;
/** A way without steps leaves room for its line beside the other one. */
const EMPTY_ARM = 0.55;

export interface Layout {
  /** The upper left corner of each step's box. */
  places: Map<string, Point>;
  /** For ways that lead past other steps without one of their own: the x of their line. By `source result`. */
  bends: Map<string, number>;
  /** Around all of it. */
  bounds: { left: number; top: number; width: number; height: number };
}

export const edgeKey = (place: { source: string; result: string }) => `${place.source} ${place.result}`;

export function layoutOf(flow: Flow): Layout {
  const { main, loose } = outlineOf(flow);
  const { ranks } = graphOf(flow);
  const places = new Map<string, Point>();
  const bends = new Map<string, number>();
  const lay = (chain: Chain, left: number, width: number) => {
    const centre = left + width / 2;
    const x = centre * COLUMN - BOX.width / 2;
    if (chain.items.length === 0 && chain.from && chain.end?.next)
      bends.set(edgeKey(chain.from), centre * COLUMN);
    for (const { step, arms } of chain.items) {
      places.set(step.id, { x, y: (ranks.get(step.id) ?? 0) * ROW });
      const widths = arms.map(widthOf);
      // The arms lie below the middle of their branch, also where the chain is wider than both.
      let from = centre - widths.reduce((sum, one) => sum + one, 0) / 2;
      for (const [i, arm] of arms.entries()) {
        lay(arm, from, widths[i] ?? 1);
        from += widths[i] ?? 1;
      }
    }
  };
  let left = 0;
  for (const chain of [main, ...loose]) {
    if (chain.items.length === 0) continue;
    const width = widthOf(chain);
    lay(chain, left, width);
    left += width;
  }
  for (const { id, at } of flow.steps) if (at) places.set(id, at);
  const all = [...places.values()];
  const xs = [...all.flatMap(({ x }) => [x, x + BOX.width]), ...bends.values()];
  const ys = all.flatMap(({ y }) => [y, y + BOX.height]);
  const [first, top] = [Math.min(...xs), Math.min(...ys)];
  const bounds = { left: first, top, width: Math.max(...xs) - first, height: Math.max(...ys) - top };
  return { places, bends, bounds };
}

/** In columns. */
function widthOf(chain: Chain): number {
  if (chain.items.length === 0) return EMPTY_ARM;
  return Math.max(
    ...chain.items.map(({ arms }) =>
      Math.max(
        1,
        arms.reduce((sum, arm) => sum + widthOf(arm), 0),
      ),
    ),
  );
}

const pullOf = (from: Point, to: Point) => Math.max(24, Math.min(64, Math.abs(to.y - from.y) / 2));

/** The line from the bottom of one box to the top of another, as the path of an SVG. */
export function lineBetween(from: Point, to: Point, bend?: number): string {
  const middle = (from.y + to.y) / 2;
  if (bend === undefined) {
    const pull = pullOf(from, to);
    return `M${from.x} ${from.y}C${from.x} ${from.y + pull} ${to.x} ${to.y - pull} ${to.x} ${to.y}`;
  }
  const turn = 28;
  const high = Math.min(from.y + 2 * turn, middle);
  const low = Math.max(to.y - 2 * turn, middle);
  return (
    `M${from.x} ${from.y}C${from.x} ${from.y + turn} ${bend} ${high - turn} ${bend} ${high}` +
    `L${bend} ${low}C${bend} ${low + turn} ${to.x} ${to.y - turn} ${to.x} ${to.y}`
  );
}

/** Place of a line's button: in its middle; out of a branch further down, where the result is not written. */
export function middleOf(from: Point, to: Point, bend: number | undefined, isLow: boolean): Point {
  if (bend !== undefined) return { x: bend, y: (from.y + to.y) / 2 };
  const t = isLow ? 0.66 : 0.5;
  const pull = pullOf(from, to);
  const at = (a: number, b: number, c: number, d: number) =>
    a * (1 - t) ** 3 + 3 * b * t * (1 - t) ** 2 + 3 * c * t ** 2 * (1 - t) + d * t ** 3;
  return { x: at(from.x, from.x, to.x, to.x), y: at(from.y, from.y + pull, to.y - pull, to.y) };
}
