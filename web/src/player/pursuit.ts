/**
 * Keeps the picture at the live edge: decides, a few times a second, whether the player has to be helped. Pure.
 *
 * hls.js speeds playback up for small delays and steps over small holes by itself; what is decided here is the rest:
 * a viewer left far behind (a laptop that slept), a hole that nothing bridges, a source that went silent.
 */

/** Further behind than its target by this, playback jumps instead of catching up by speed. Seconds. */
export const JUMP_BEHIND_S = 10;
/** A picture that stands still this long with media after a hole steps over the hole. */
const STEP_AFTER_MS = 1500;
/** A picture that stands still this long goes to the live edge. */
const EDGE_AFTER_MS = 4000;
/** A picture that stands still this long, with no media arriving either, needs a new source. */
const REATTACH_AFTER_MS = 8000;
/** Between two moves of the position, so that the first can show its effect. */
const SETTLE_MS = 3000;

export interface Observation {
  nowMs: number;
  /** The service says that media is coming. */
  live: boolean;
  paused: boolean;
  /** False once the viewer went back on purpose. */
  following: boolean;
  position: number;
  /** When the position last moved by itself; no earlier than media could come: attached, and on air. */
  advancedAtMs: number;
  /** When media last entered the buffer; no earlier than it could come. */
  bufferedAtMs: number;
  /** When the last move was made. */
  movedAtMs: number;
  /** Where the buffer goes on after a hole; null when there is no such place. */
  nextRangeStart: number | null;
  /** Where playback should be; null when it is not known. */
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
