/**
 * Plays by WebRTC (WHEP). A session has no past: it begins and continues at the live edge, and a paused one is over. It keeps
 * on the screen what it has shown last until it is detached.
 */
import { delayS, playoutMs, type Report, type Snapshot, snapshotOf } from "../webrtc/delay";
import { exchange, Rejection, type Resource } from "../webrtc/exchange";
import { FROZEN_LIMIT_MS, FreezeMeter } from "./freeze";
import type { SessionListener, Source } from "./source";
import { type Ending, endingOf, FIRST_FRAME_MS } from "./transport";

/** Interval at which the browser's statistics are read. */
const SAMPLE_EVERY_MS = 250;
/** Before the first frame, whose time matters more. */
const FIRST_SAMPLE_EVERY_MS = 50;
/** Samples between two statements of the delay. */
const DELAY_EVERY = 4;
/** Time without a packet of any kind after which the connection counts as lost. */
const SILENT_MS = 2_000;
/** Time without media from which on a frozen image is not put down to the line. */
const PAUSED_MS = 400;
/** Time without media on a connection that lives, after which it is the encoder that stalls. */
const STALLED_MS = 1_000;
/** Frozen time from which on a session that is closed counts as one of a slow line. */
const SLOW_IF_FROZEN_MS = 500;

export function isWebRtcSupported(): boolean {
  return typeof RTCPeerConnection === "function" && "addTransceiver" in RTCPeerConnection.prototype;
}

export class WhepSource implements Source {
  readonly transport = "webrtc";

  private readonly pc = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  private readonly stream = new MediaStream();
  private readonly over = new AbortController();
  private readonly meter = new FreezeMeter();
  private readonly begunAtMs = performance.now();
  private resource: Resource | null = null;
  private video: HTMLVideoElement | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private hasFrame = false;
  private isLive = true;
  private samples = 0;
  private heard = 0;
  private heardAtMs = 0;
  private media = 0;
  private mediaAtMs = 0;
  private hasAudio = false;
  private stalledAtMs = Number.NEGATIVE_INFINITY;
  private last: Snapshot | null = null;
  private beforeDelay: Snapshot | null = null;
  private delay: number | null = null;

  constructor(
    url: string,
    private readonly listener: SessionListener,
  ) {
    const { pc } = this;
    // Both, always: some browsers show no video in a session without audio, and the stream may get audio later.
    pc.addTransceiver("video", { direction: "recvonly" });
    pc.addTransceiver("audio", { direction: "recvonly" });
    // One MediaStream, so that audio and video are played in step.
    pc.addEventListener("track", ({ track }) => this.stream.addTrack(track));
    pc.addEventListener("connectionstatechange", () => {
      if (pc.connectionState === "failed" || pc.connectionState === "closed") this.endAsClosed();
    });
    // A page that is left deletes its session at once; the service would notice 15 s later.
    window.addEventListener("pagehide", () => this.end({ why: "closed" }), { signal: this.over.signal });
    void this.begin(url);
    this.sampleLater();
  }

  /** Shows the stream, from now on. */
  show(video: HTMLVideoElement): void {
    this.video = video;
    video.srcObject = this.stream;
  }

  /** @param live media is coming; without it nothing is late and nothing is frozen */
  tend(live: boolean): void {
    if (live && !this.isLive) this.meter.reset();
    this.isLive = live;
  }

  latency(): number | null {
    return this.delay;
  }

  edge(): number | null {
    return null;
  }

  playingDate(): Date | null {
    const at = this.last ? playoutMs(this.last) : null;
    return at === null ? null : new Date(at);
  }

  complete(): boolean {
    return false;
  }

  resume(): void {}

  /** Ends the session and leaves the last frame on the screen. */
  hold(): void {
    this.over.abort();
    clearTimeout(this.timer);
    this.resource?.delete();
    this.pc.close();
  }

  detach(): void {
    this.hold();
    if (this.video?.srcObject === this.stream) this.video.srcObject = null;
    this.video = null;
  }

  private async begin(url: string): Promise<void> {
    try {
      this.resource = await exchange(this.pc, url, { signal: this.over.signal });
      if (this.over.signal.aborted) this.resource.delete();
      this.hearClose();
    } catch (error) {
      if (this.over.signal.aborted) return;
      const isAnswer = error instanceof Rejection;
      this.end(isAnswer ? endingOf(error.status, error.code, error.afterS) : { why: "failed" });
    }
  }

  /** The service closes a session by DTLS, which browsers show at the transport and not at the connection. */
  private hearClose(): void {
    const transport = this.pc.getReceivers()[0]?.transport;
    transport?.addEventListener("statechange", () => {
      if (transport.state === "closed" || transport.state === "failed") this.endAsClosed();
    });
  }

  private endAsClosed(): void {
    this.end({ why: this.meter.frozenMs() > SLOW_IF_FROZEN_MS ? "slow" : "closed" });
  }

  private end(ending: Ending): void {
    if (this.over.signal.aborted) return;
    this.hold();
    this.listener.onEnded(ending);
  }

  private sampleLater(): void {
    const ms = this.hasFrame ? SAMPLE_EVERY_MS : FIRST_SAMPLE_EVERY_MS;
    this.timer = setTimeout(async () => {
      await this.sample().catch(() => undefined);
      if (!this.over.signal.aborted) this.sampleLater();
    }, ms);
  }

  private async sample(): Promise<void> {
    const reports: Report[] = [];
    for (const report of (await this.pc.getStats()).values()) reports.push(report);
    if (this.over.signal.aborted) return;
    const seen = snapshotOf(reports);
    this.last = seen;
    if (this.hasFrame) this.measure(seen);
    else this.awaitFrame(seen);
  }

  private awaitFrame({ video, audio }: Snapshot): void {
    const [videoTransceiver] = this.pc.getTransceivers();
    const hasNoVideo = videoTransceiver?.currentDirection === "inactive";
    this.hasFrame = hasNoVideo ? (audio?.packetsReceived ?? 0) > 0 : (video?.framesDecoded ?? 0) > 0;
    if (this.hasFrame) this.listener.onFirstFrame();
    else if (performance.now() - this.begunAtMs > FIRST_FRAME_MS) {
      const isConnected = this.pc.connectionState === "connected";
      this.end({ why: isConnected ? "failed" : "late" });
    }
  }

  private measure(seen: Snapshot): void {
    if (this.samples % DELAY_EVERY === 0) {
      this.delay = delayS(seen, this.beforeDelay);
      this.beforeDelay = seen;
    }
    this.samples += 1;
    const nowMs = performance.now();
    this.hear(seen, nowMs);
    const isWatched = this.isLive && !document.hidden;
    if (isWatched && seen.heard !== null && nowMs - this.heardAtMs > SILENT_MS) {
      this.end({ why: "closed" });
      return;
    }
    // Pages that cannot be seen are slow by the browser's choice. A freeze is counted when it is over, and so a little later.
    if (!isWatched || !seen.video || nowMs - this.stalledAtMs < STALLED_MS) {
      this.meter.reset();
      return;
    }
    // Not known yet: a slow line, a stalled encoder or a lost connection.
    if (this.hasAudio && nowMs - this.mediaAtMs > PAUSED_MS) return;
    this.meter.add({
      nowMs,
      framesDecoded: seen.video.framesDecoded ?? 0,
      freezesS: seen.video.totalFreezesDuration ?? 0,
    });
    if (this.meter.frozenMs() > FROZEN_LIMIT_MS) this.end({ why: "slow" });
  }

  /**
   * Notes what came. On a slow line some media comes, audio at least; when none comes and the connection lives, the encoder
   * stalls. Of video alone there is no such sign: a slow line gets its key frames only.
   */
  private hear({ video, audio, heard }: Snapshot, nowMs: number): void {
    const ofAudio = audio?.packetsReceived ?? 0;
    const media = ofAudio + (video?.packetsReceived ?? 0);
    if (media !== this.media) this.mediaAtMs = nowMs;
    if (heard !== this.heard || media !== this.media) this.heardAtMs = nowMs;
    this.media = media;
    this.heard = heard ?? 0;
    this.hasAudio = ofAudio > 0;
    if (this.hasAudio && nowMs - this.mediaAtMs > STALLED_MS) this.stalledAtMs = nowMs;
  }
}
