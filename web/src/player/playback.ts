/**
 * Attaches a source to the video element, detects whether playback advances, corrects it, and detaches the source.
 * The caller decides what is attached; this only keeps it playing.
 */

import { retryDelayMs } from "./backoff";
import { HlsSource, isHlsSupported } from "./hls_source";
import { isNativeHlsSupported, NativeSource } from "./native_source";
import { nextMove } from "./pursuit";
import type { Source, SourceListener } from "./source";

/** Playback counts as advancing when its position moved within this time. */
const ADVANCING_MS = 1000;
/** Time of playback after which a source counts as healthy, and the next failure starts with the shortest pause again. */
const HEALTHY_AFTER_MS = 5000;
/** Pause before a playlist without a segment is requested again. */
const TOO_EARLY_MS = 200;
/** Time without advance after which the buffer counts as played out, also when the browser fires no `ended`. */
const DRAINED_AFTER_MS = 1500;

/** Starts the video element within the browser's policy on audio. */
export interface Starter {
  start(): Promise<void>;
}

export class Playback implements SourceListener {
  /** The viewer pressed pause. */
  paused = false;
  /** The viewer is at the live edge, or wants to be. */
  following = true;
  hasPlayed = false;

  private source: Source | null = null;
  private wanted = false;
  private failures = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private position = -1;
  private attachedAtMs = 0;
  private advancedAtMs = Number.NEGATIVE_INFINITY;
  private bufferedAtMs = 0;
  private movedAtMs = 0;
  /** Time from which on the service reported the input as live; null while it is not. */
  private liveSinceMs: number | null = null;

  constructor(
    private readonly url: string,
    private readonly video: HTMLVideoElement,
    private readonly audio: Starter,
    private readonly onChange: () => void,
  ) {
    for (const event of ["playing", "waiting", "ended", "pause", "loadeddata"]) {
      video.addEventListener(event, () => this.observe());
    }
    video.addEventListener("timeupdate", () => this.observe());
    video.addEventListener("canplay", () => this.play());
  }

  static isSupported(video: HTMLVideoElement): boolean {
    return isHlsSupported() || isNativeHlsSupported(video);
  }

  get attached(): boolean {
    return this.source !== null;
  }

  get advancing(): boolean {
    return this.source !== null && performance.now() - this.advancedAtMs < ADVANCING_MS;
  }

  /** True while buffered media is still to be played. */
  get draining(): boolean {
    const settled = performance.now() - Math.max(this.advancedAtMs, this.attachedAtMs) > DRAINED_AFTER_MS;
    return this.source !== null && this.hasPlayed && !this.video.ended && (this.paused || !settled);
  }

  get latency(): number | null {
    return this.source?.latency() ?? null;
  }

  get playingDate(): Date | null {
    return this.source?.playingDate() ?? null;
  }

  /** Attaches unless a source is attached; a source that failed is attached again after its pause. */
  attach(): void {
    this.wanted = true;
    if (this.source || this.retry !== undefined) return;
    const now = performance.now();
    this.attachedAtMs = now;
    this.bufferedAtMs = now;
    this.movedAtMs = now;
    this.advancedAtMs = Number.NEGATIVE_INFINITY;
    this.position = -1;
    this.hasPlayed = false;
    this.source = isHlsSupported()
      ? new HlsSource(this.url, this.video, this)
      : new NativeSource(this.url, this.video, this);
    this.play();
  }

  /** Detaches the source, which removes the last frame from the screen. */
  detach(): void {
    this.wanted = false;
    this.failures = 0;
    clearTimeout(this.retry);
    this.retry = undefined;
    this.drop();
  }

  /** Repeats failed requests at once, since the service answers again. */
  resume(): void {
    this.source?.resume();
  }

  togglePlay(): void {
    this.paused = !this.paused;
    if (this.paused) {
      this.video.pause();
    } else {
      this.following = true;
      this.play();
    }
    this.onChange();
  }

  goLive(): void {
    this.following = true;
    this.paused = false;
    const edge = this.source?.edge() ?? null;
    if (edge !== null) this.seek(edge);
    this.play();
    this.onChange();
  }

  skip(seconds: number): void {
    const edge = this.source?.edge() ?? null;
    if (edge === null) return;
    const { buffered, currentTime } = this.video;
    const oldest = buffered.length > 0 ? buffered.start(0) : currentTime;
    const target = Math.max(oldest, currentTime + seconds);
    this.following = target >= edge;
    this.seek(Math.min(target, edge));
    this.onChange();
  }

  onBuffered(): void {
    this.bufferedAtMs = performance.now();
  }

  onBroken(): void {
    this.drop();
    this.onChange();
    if (!this.wanted) return;
    this.attachIn(retryDelayMs(this.failures, Math.random()));
    this.failures += 1;
  }

  onTooEarly(): void {
    this.drop();
    if (this.wanted) this.attachIn(TOO_EARLY_MS);
  }

  /** Called a few times a second. @param live the service says that media is coming */
  tend(live: boolean): void {
    this.observe();
    this.liveSinceMs = live ? (this.liveSinceMs ?? performance.now()) : null;
    if (!this.source) return;
    // The input is live again while this playlist has ended: a new broadcast has a playlist of its own.
    if (live && this.source.complete() && !this.draining) {
      this.onBroken();
      return;
    }
    const startedMs = Math.max(this.attachedAtMs, this.liveSinceMs ?? 0);
    const move = nextMove({
      nowMs: performance.now(),
      live,
      paused: this.paused,
      following: this.following,
      position: this.video.currentTime,
      advancedAtMs: Math.max(this.advancedAtMs, startedMs),
      bufferedAtMs: Math.max(this.bufferedAtMs, startedMs),
      movedAtMs: this.movedAtMs,
      nextRangeStart: nextRangeStart(this.video),
      edge: this.source.edge(),
    });
    if (move.kind === "seek") this.seek(move.to);
    if (move.kind === "reattach") this.onBroken();
  }

  private observe(): void {
    const { currentTime } = this.video;
    if (!this.source) return;
    if (!this.video.paused && !this.video.seeking && this.position >= 0 && currentTime > this.position) {
      this.advancedAtMs = performance.now();
      this.hasPlayed = true;
      if (this.advancedAtMs - this.attachedAtMs > HEALTHY_AFTER_MS) this.failures = 0;
    }
    this.position = currentTime;
    this.onChange();
  }

  private play(): void {
    if (!this.paused && this.video.paused) void this.audio.start();
  }

  private seek(to: number): void {
    this.movedAtMs = performance.now();
    this.position = to;
    this.video.currentTime = to;
  }

  private drop(): void {
    this.source?.detach();
    this.source = null;
    this.hasPlayed = false;
  }

  private attachIn(ms: number): void {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      this.retry = undefined;
      if (this.wanted) this.attach();
    }, ms);
  }
}

function nextRangeStart(video: HTMLVideoElement): number | null {
  const { buffered, currentTime } = video;
  for (let index = 0; index < buffered.length; index += 1) {
    if (buffered.start(index) > currentTime + 0.01) return buffered.start(index);
  }
  return null;
}
