/**
 * Choice between WebRTC and HLS: WebRTC first, HLS when it does not play, WebRTC again some time later, and HLS alone after
 * a few failures. Pure: times in, decisions out.
 */
import { retryDelayMs } from "./backoff";

export type Transport = "webrtc" | "hls";

/** Time within which the first frame has to be decoded. */
export const FIRST_FRAME_MS = 4_000;
/** Time after a failure before which WebRTC is not tried again. */
export const AGAIN_AFTER_MS = 60_000;
/** Failures after which WebRTC is not tried again on this visit. */
export const MOST_FAILURES = 3;
/** Lost sessions in a row that are replaced by another one before the next counts as a failure. */
const MOST_RECONNECTS = 3;
/** Time of playback after which the next lost session is the first in a row. */
const STABLE_AFTER_MS = 10_000;
/** Time of playback after which earlier failures no longer count. */
const HEALED_AFTER_MS = 300_000;
/** Longest pause before a lost session is replaced. */
const LONGEST_RECONNECT_MS = 5_000;

/** Reason why a session ended, or why there is none. */
export type Ending =
  /** No connection in time: the ports are blocked, most of the time. */
  | { why: "late" }
  /** The line is too slow: frozen too much, or closed by the service while it was. */
  | { why: "slow" }
  /** The connection is lost, or the service has closed it. */
  | { why: "closed" }
  /** The service knows no broadcast: it has just ended, or just begun. */
  | { why: "off-air" }
  /** The service has no room at present. */
  | { why: "busy"; afterS: number }
  /** This stream and this browser do not fit, or WebRTC is turned off. */
  | { why: "unsuitable" }
  /** The offer got no answer, or the connection no frame in time. */
  | { why: "failed" };

export interface Options {
  /** The browser has WebRTC and the stream is one of low latency. */
  suitable: boolean;
  /** The one transport that the viewer asked for. */
  via: Transport | null;
}

export class TransportChoice {
  private failures = 0;
  private reconnects = 0;
  private notBeforeMs = Number.NEGATIVE_INFINITY;
  private playingSinceMs: number | null = null;
  /** Reason of the last change from WebRTC to HLS. */
  fallback: { why: Ending["why"]; atMs: number } | null = null;

  constructor(private options: Options) {}

  /** Takes over what became known after the start. */
  set suitable(suitable: boolean) {
    this.options = { ...this.options, suitable };
  }

  /** The transport of a source that is attached now. @param live media is coming; without it a session has no first frame */
  pick(nowMs: number, live: boolean): Transport {
    const { via, suitable } = this.options;
    if (via === "hls") return "hls";
    if (via === "webrtc") return "webrtc";
    const isDue = suitable && live && this.failures < MOST_FAILURES && nowMs >= this.notBeforeMs;
    return isDue ? "webrtc" : "hls";
  }

  /** Whether an attached HLS source should be replaced, once a session beside it plays. */
  wantsWebRtc(nowMs: number, live: boolean): boolean {
    return this.options.via === null && this.pick(nowMs, live) === "webrtc";
  }

  /** A session has decoded its first frame. */
  played(nowMs: number): void {
    this.playingSinceMs = nowMs;
    this.fallback = null;
  }

  /**
   * A session has ended. Returns the pause before the next source is attached, in milliseconds; `pick` then says which.
   *
   * @param live media was coming, so that the session should have played
   * @param random a number in [0, 1)
   */
  ended(ending: Ending, nowMs: number, live: boolean, random: number): number {
    const playedMs = this.playingSinceMs === null ? 0 : nowMs - this.playingSinceMs;
    this.playingSinceMs = null;
    if (playedMs >= STABLE_AFTER_MS) this.reconnects = 0;
    if (playedMs >= HEALED_AFTER_MS) this.failures = 0;
    if (this.options.via === "webrtc") return this.reconnect(random);
    switch (ending.why) {
      case "unsuitable":
        this.failures = MOST_FAILURES;
        return 0;
      case "busy":
        this.notBeforeMs = nowMs + Math.max(AGAIN_AFTER_MS, ending.afterS * 1000);
        this.fallback = { why: "busy", atMs: nowMs };
        return 0;
      case "closed":
      case "off-air":
        if (!live || this.reconnects < MOST_RECONNECTS) return this.reconnect(random);
        return this.fail(ending, nowMs);
      case "late":
      case "slow":
      case "failed":
        return live ? this.fail(ending, nowMs) : this.reconnect(random);
    }
  }

  private reconnect(random: number): number {
    const delay = retryDelayMs(this.reconnects, random, LONGEST_RECONNECT_MS);
    this.reconnects += 1;
    return delay;
  }

  private fail(ending: Ending, nowMs: number): number {
    this.failures += 1;
    this.reconnects = 0;
    this.notBeforeMs = nowMs + AGAIN_AFTER_MS;
    this.fallback = { why: ending.why, atMs: nowMs };
    return 0;
  }
}

/** Reads the ending out of a rejection of the service. */
export function endingOf(status: number, code: string, afterS: number): Ending {
  if (status === 429 || status === 503) return { why: "busy", afterS };
  if (status === 404) return { why: code === "webrtc_off" ? "unsuitable" : "off-air" };
  // Of another client's making or none: 400, 403, 415, 422. HLS says the same, or plays.
  if (status >= 400 && status < 500) return { why: "unsuitable" };
  return { why: "failed" };
}

/** The transport that a page's address asks for: `?via=hls` or `?via=webrtc`. */
export function viaOf(search: string): Transport | null {
  const via = new URLSearchParams(search).get("via");
  return via === "hls" || via === "webrtc" ? via : null;
}
