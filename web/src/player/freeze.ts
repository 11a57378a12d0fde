/** How long video was frozen within the last seconds. Pure: the caller passes the samples with their times. */

/** Time over which frozen video counts. */
export const WINDOW_MS = 15_000;
/** Frozen time within the window beyond which the line counts as too slow. */
export const FROZEN_LIMIT_MS = 2_000;
/** Shortest wait for a frame that counts as frozen; and as many mean intervals, for a stream of few frames a second. */
const SHORTEST_MS = 500;
const INTERVALS = 3;

export interface Sample {
  nowMs: number;
  framesDecoded: number;
  /** Total duration of the freezes that have ended, as the browser counts them; 0 where it does not. */
  freezesS: number;
}

export class FreezeMeter {
  private samples: Sample[] = [];
  private frameAtMs = 0;

  /** Begins again, after a time in which no frames were to be expected. */
  reset(): void {
    this.samples = [];
  }

  add(sample: Sample): void {
    const last = this.samples[this.samples.length - 1];
    if (!last || sample.framesDecoded > last.framesDecoded) this.frameAtMs = sample.nowMs;
    this.samples.push(sample);
    while (this.samples[0] && this.samples[0].nowMs < sample.nowMs - WINDOW_MS) this.samples.shift();
  }

  /** Frozen time within the window, in milliseconds: the freezes that have ended and the one that lasts. */
  frozenMs(): number {
    const first = this.samples[0];
    const last = this.samples[this.samples.length - 1];
    if (!first || !last) return 0;
    const ended = Math.max(0, last.freezesS - first.freezesS) * 1000;
    const waitMs = last.nowMs - this.frameAtMs;
    const frames = last.framesDecoded - first.framesDecoded;
    const intervalMs = frames > 0 ? (this.frameAtMs - first.nowMs) / frames : 0;
    const isFrozen = waitMs > Math.max(SHORTEST_MS, INTERVALS * intervalMs);
    return ended + (isFrozen ? waitMs : 0);
  }
}
