/**
 * Attaches a source to the video element, detects whether playback advances, corrects it, and detaches the source.
 * The caller decides whether something is attached; this keeps it playing, by WebRTC or by HLS.
 */

import { retryDelayMs } from "./backoff";
import { nextMove } from "./pursuit";
import type { Source, SourceListener } from "./source";
import type { Ending, Transport, TransportChoice } from "./transport";
import { WhepSource } from "./whep_source";

/** Playback counts as advancing when its position moved within this time. */
const ADVANCING_MS = 1000;
/** Time of playback after which a source counts as healthy, and the next failure starts with the shortest pause again. */
const HEALTHY_AFTER_MS = 5000;
/** Advance beyond which the first one is a seek, in seconds. */
const ENTRY_S = 2;
/** Pause before a playlist without a segment is requested again. */
const TOO_EARLY_MS = 200;
/** Time without advance after which the buffer counts as played out, also when the browser fires no `ended`. */
const DRAINED_AFTER_MS = 1500;

/** Starts the video element within the browser's policy on audio. */
export interface Starter {
  start(): Promise<void>;
}

/** Addresses and parts of a playback. */
export interface Setup {
  hls: string;
  /** Null: HLS alone. */
  whep: string | null;
  video: HTMLVideoElement;
  audio: Starter;
  choice: TransportChoice;
  attachHls(url: string, video: HTMLVideoElement, listener: SourceListener): Source;
  onChange(): void;
}

export class Playback implements SourceListener {
  /** The viewer pressed pause. */
  paused = false;
  /** The viewer is at the live edge, or wants to be. */
  following = true;
  hasPlayed = false;

  private readonly video: HTMLVideoElement;
  private source: Source | null = null;
  /** A session beside an HLS source, which it replaces when it has a frame. */
  private candidate: WhepSource | null = null;
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

  constructor(private readonly setup: Setup) {
    const { video } = setup;
    this.video = video;
    for (const event of ["playing", "waiting", "ended", "pause", "loadeddata"]) {
      video.addEventListener(event, () => this.observe());
    }
    video.addEventListener("timeupdate", () => this.observe());
    video.addEventListener("canplay", () => this.play());
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
    // A paused session is over and holds nothing back.
    const isHeld = this.paused && this.source?.transport === "hls";
    return this.source !== null && this.hasPlayed && !this.video.ended && (isHeld || !settled);
  }

  /** Transport of the attached source. */
  get transport(): Transport | null {
    return this.source?.transport ?? null;
  }

  get latency(): number | null {
    return this.source?.latency() ?? null;
  }

  get playingDate(): Date | null {
    return this.source?.playingDate() ?? null;
  }

  /**
   * Attaches unless a source is attached; a source that failed is attached again after its pause.
   *
   * @param live the service says that media is coming
   */
  attach(live: boolean): void {
    this.wanted = true;
    if (this.source || this.retry !== undefined) return;
    this.expect();
    const { whep, hls, video, choice, attachHls } = this.setup;
    const isByWebRtc = whep !== null && choice.pick(performance.now(), live) === "webrtc";
    const session = isByWebRtc ? this.session(whep) : null;
    session?.show(video);
    this.source = session ?? attachHls(hls, video, this);
    this.play();
  }

  /** Forgets what was observed of the source before. */
  private expect(): void {
    const now = performance.now();
    this.attachedAtMs = now;
    this.bufferedAtMs = now;
    this.movedAtMs = now;
    this.advancedAtMs = Number.NEGATIVE_INFINITY;
    this.position = -1;
    this.hasPlayed = false;
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
      this.dropCandidate();
      // A session has no past: it ends here, and another one begins at the live edge.
      if (this.source instanceof WhepSource) this.source.hold();
    } else {
      this.following = true;
      this.rejoin();
      this.play();
    }
    this.setup.onChange();
  }

  goLive(): void {
    this.following = true;
    if (this.paused) this.rejoin();
    this.paused = false;
    const edge = this.source?.edge() ?? null;
    if (edge !== null) this.seek(edge);
    this.play();
    this.setup.onChange();
  }

  skip(seconds: number): void {
    const edge = this.source?.edge() ?? null;
    if (edge === null) return;
    const { buffered, currentTime } = this.video;
    const oldest = buffered.length > 0 ? buffered.start(0) : currentTime;
    const target = Math.max(oldest, currentTime + seconds);
    this.following = target >= edge;
    this.seek(Math.min(target, edge));
    this.setup.onChange();
  }

  onBuffered(): void {
    this.bufferedAtMs = performance.now();
  }

  onBroken(): void {
    this.drop();
    this.setup.onChange();
    if (!this.wanted) return;
    this.attachIn(retryDelayMs(this.failures, Math.random()));
    this.failures += 1;
  }

  /** The session on the screen, or the one beside HLS, is over. */
  private onSessionEnded(session: WhepSource, ending: Ending): void {
    const { choice } = this.setup;
    const { fallback } = choice;
    const pauseMs = choice.ended(ending, performance.now(), this.isLive, Math.random());
    if (session !== this.source) {
      // What was beside HLS is nothing that the viewer has seen.
      choice.fallback = fallback;
      this.candidate = null;
      return;
    }
    this.drop();
    if (this.wanted && pauseMs === 0) this.attach(this.isLive);
    else if (this.wanted) this.attachIn(pauseMs);
    this.setup.onChange();
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
    if (this.source instanceof WhepSource) {
      // It says by itself when it is over.
      this.source.tend(live);
      return;
    }
    this.tryWebRtc(live);
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

  private get isLive(): boolean {
    return this.liveSinceMs !== null;
  }

  /** Null where the browser has WebRTC and a policy forbids its use. */
  private session(url: string): WhepSource | null {
    try {
      const session: WhepSource = new WhepSource(url, {
        onFirstFrame: () => this.onFirstFrame(session),
        onEnded: (ending) => this.onSessionEnded(session, ending),
      });
      return session;
    } catch {
      this.setup.choice.ended({ why: "unsuitable" }, performance.now(), true, 0);
      return null;
    }
  }

  /** Connects a session beside the HLS source when it is time for one. */
  private tryWebRtc(live: boolean): void {
    const { whep, choice } = this.setup;
    this.candidate?.tend(live);
    if (whep === null || this.candidate || this.paused || !this.following || document.hidden) return;
    if (this.hasPlayed && choice.wantsWebRtc(performance.now(), live)) this.candidate = this.session(whep);
  }

  private onFirstFrame(session: WhepSource): void {
    this.setup.choice.played(performance.now());
    if (session !== this.candidate) return;
    this.candidate = null;
    this.drop();
    this.expect();
    this.source = session;
    session.show(this.video);
    this.play();
    this.setup.onChange();
  }

  /** Attaches again after a pause in which the session was over. */
  private rejoin(): void {
    if (this.source?.transport !== "webrtc") return;
    this.drop();
    if (this.wanted) this.attach(this.isLive);
  }

  private observe(): void {
    const { currentTime } = this.video;
    if (!this.source) return;
    const step = this.position < 0 ? 0 : currentTime - this.position;
    // A source begins with a seek to the live edge, which is no playback yet.
    const isEntry = !this.hasPlayed && step > ENTRY_S;
    if (!this.video.paused && !this.video.seeking && step > 0 && !isEntry) {
      this.advancedAtMs = performance.now();
      this.hasPlayed = true;
      if (this.advancedAtMs - this.attachedAtMs > HEALTHY_AFTER_MS) this.failures = 0;
    }
    this.position = currentTime;
    this.setup.onChange();
  }

  private play(): void {
    if (!this.paused && this.video.paused) void this.setup.audio.start();
  }

  private seek(to: number): void {
    this.movedAtMs = performance.now();
    this.position = to;
    this.video.currentTime = to;
  }

  private dropCandidate(): void {
    this.candidate?.detach();
    this.candidate = null;
  }

  private drop(): void {
    this.dropCandidate();
    this.source?.detach();
    this.source = null;
    this.hasPlayed = false;
  }

  private attachIn(ms: number): void {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => {
      this.retry = undefined;
      if (this.wanted) this.attach(this.isLive);
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
