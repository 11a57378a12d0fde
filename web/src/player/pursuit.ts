/**
 * Keeps playback at the live edge: decides, a few times a second, whether the player needs a seek or a new source.
 * Pure.
 *
 * hls.js speeds playback up for small delays and skips small gaps by itself; this handles the rest: a viewer far behind
 * (a laptop that slept), a gap that hls.js does not skip, a source without new media.
 */

/** Delay behind the target beyond which playback jumps instead of catching up by speed, in seconds. */
export const JUMP_BEHIND_S = 10;
/** Time without advance after which playback skips a gap that is followed by media. */
const STEP_AFTER_MS = 1500;
/** Time without advance after which playback goes to the live edge. */
const EDGE_AFTER_MS = 4000;
/** Time without advance and without new media after which a new source is attached. */
const REATTACH_AFTER_MS = 8000;
/** Shortest interval between two seeks, so that the first can take effect. */
const SETTLE_MS = 3000;

export interface Observation {
  nowMs: number;
  /** The service says that media is coming. */
  live: boolean;
  paused: boolean;
  /** False once the viewer has moved back from the live edge. */
  following: boolean;
  position: number;
  /** Time of the position's last advance; no earlier than media could arrive: attached, and live. */
  advancedAtMs: number;
  /** Time at which media last entered the buffer; no earlier than it could arrive. */
  bufferedAtMs: number;
  /** Time of the last seek. */
  movedAtMs: number;
  /** Start of the buffered range after a gap; null when there is none. */
  nextRangeStart: number | null;
  /** Position at which playback should be; null when it is not known. */
  edge: number | null;
}

export type Move = { kind: "none" } | { kind: "seek"; to: number } | { kind: "reattach" };

const NONE: Move = { kind: "none" };

export function nextMove(seen: Observation): Move {
  if (seen.paused) return NONE;
  const stillMs = seen.nowMs - seen.advancedAtMs;
  if (seen.live && stillMs >= REATTACH_AFTER_MS && seen.nowMs - seen.bufferedAtMs >= REATTACH_AFTER_MS) {
    return { kind: "reattach" };
  }
  if (seen.nowMs - seen.movedAtMs < SETTLE_MS) return NONE;
  if (seen.following && seen.edge !== null && seen.edge - seen.position > JUMP_BEHIND_S) {
    return { kind: "seek", to: seen.edge };
  }
  if (stillMs >= STEP_AFTER_MS && seen.nextRangeStart !== null) {
    return { kind: "seek", to: seen.nextRangeStart };
  }
  if (seen.live && stillMs >= EDGE_AFTER_MS && seen.edge !== null && seen.edge - seen.position > 0.5) {
    return { kind: "seek", to: seen.edge };
  }
  return NONE;
}
