/**
 * The page at `/live/{playbackId}`: follows the state of the live input, plays while there is media, and says in plain
 * words what it waits for otherwise. It never needs a reload.
 */

import { AudioPolicy } from "./audio";
import { connectControls } from "./controls";
import { type FeedListener, StateFeed } from "./feed";
import { attachHls, isAnyHlsSupported } from "./hls";
import { hlsVersion } from "./hls_source";
import { findPage } from "./page";
import { Playback } from "./playback";
import { type Feed, isNewBroadcast, isPlayable, type Reply, type Stage, stageOf } from "./stage";
import { type Ending, TransportChoice, viaOf } from "./transport";
import { View } from "./view";
import { isWebRtcSupported } from "./whep_source";
import { secondsUntil } from "./words";

/** Interval at which playback is checked and the page's words are refreshed. */
const TEND_EVERY_MS = 250;
/** Time for which the page says why it changed from WebRTC to HLS. */
const EXPLAIN_MS = 8_000;
/** Latency beyond which a paused viewer is offered the button to the live edge. */
const BEHIND_S = 3;

class Player implements FeedListener {
  private feed: Feed = "connecting";
  private reply: Reply | null = null;
  private readonly page = findPage();
  private readonly view = new View(this.page);
  private readonly audio = new AudioPolicy(this.page.video, () => this.refresh());
  private readonly supported = isWebRtcSupported() || isAnyHlsSupported(this.page.video);
  private readonly choice = new TransportChoice({ suitable: false, via: viaOf(location.search) });
  private readonly playback: Playback;
  private readonly states: StateFeed;

  constructor(playbackId: string) {
    const base = `/live/v1/${encodeURIComponent(playbackId)}`;
    this.playback = new Playback({
      hls: `${base}/index.m3u8`,
      whep: isWebRtcSupported() ? `${base}/whep` : null,
      video: this.page.video,
      audio: this.audio,
      choice: this.choice,
      attachHls,
      onChange: () => this.refresh(),
    });
    this.states = new StateFeed(`${base}/state`, this);
    connectControls(this.page, {
      togglePlay: () => this.playback.togglePlay(),
      toggleMute: () => this.audio.toggle(),
      setVolume: (volume) => this.audio.setVolume(volume),
      skip: (seconds) => this.playback.skip(seconds),
      goLive: () => this.playback.goLive(),
    });
    this.page.unmute.addEventListener("click", () => this.audio.allow());
  }

  run(): void {
    this.refresh();
    void this.states.run();
    setInterval(() => {
      this.playback.tend(this.feed === "following" && this.reply?.state === "live");
      this.follow();
      this.refresh();
    }, TEND_EVERY_MS);
  }

  onFeed(feed: Feed, reply: Reply | null): void {
    const isBack = this.feed === "failing" && feed === "following";
    const isNew = reply !== null && isNewBroadcast(this.reply, reply);
    this.feed = feed;
    this.reply = reply;
    if (reply) this.choice.suitable = reply.latency === "low";
    if (isNew) this.playback.detach();
    else if (isBack) this.playback.resume();
    this.follow();
    this.refresh();
  }

  /** Attaches or detaches the source by the service's state. */
  private follow(): void {
    if (!this.supported || this.feed === "connecting" || this.feed === "failing") return;
    if (this.reply && isPlayable(this.reply)) {
      this.playback.attach(this.reply.state === "live");
    } else if (!this.playback.draining) {
      this.playback.detach();
    }
  }

  get stage(): Stage {
    return stageOf({
      feed: this.feed,
      reply: this.reply,
      supported: this.supported,
      advancing: this.playback.advancing,
      hasPlayed: this.playback.hasPlayed,
      paused: this.playback.paused,
      draining: this.playback.draining,
    });
  }

  private refresh(): void {
    if (!this.states) return;
    const { playback } = this;
    this.view.show({
      stage: this.stage,
      advancing: playback.advancing,
      secondsLeft: secondsUntil(this.reply?.reconnectUntil, Date.now(), this.states.clockOffsetMs),
      transport: playback.transport,
      isLowLatency: this.reply?.latency === "low",
      fallback: this.fallback,
      latency: playback.latency,
      paused: playback.paused,
      behind:
        playback.hasPlayed &&
        (!playback.following || (playback.paused && (playback.latency ?? 0) > BEHIND_S)),
      muted: this.page.video.muted,
      waitsForGesture: this.audio.waitsForGesture,
      hasMedia: playback.hasPlayed,
      audioOnly: playback.hasPlayed && this.page.video.videoWidth === 0,
    });
  }

  /** Reason of a change from WebRTC to HLS, for some seconds. */
  private get fallback(): Ending["why"] | null {
    const { fallback } = this.choice;
    const isRecent = fallback !== null && performance.now() - fallback.atMs < EXPLAIN_MS;
    return isRecent && this.playback.transport === "hls" ? fallback.why : null;
  }

  /** A snapshot for tests and the browser's console. */
  probe(): Record<string, unknown> {
    const { video } = this.page;
    return Object.freeze({
      state: this.stage,
      currentTime: video.currentTime,
      transport: this.playback.transport,
      latency: this.playback.latency,
      playingDate: this.playback.playingDate?.toISOString() ?? null,
      muted: video.muted,
      paused: this.playback.paused,
      droppedFrames: video.getVideoPlaybackQuality?.().droppedVideoFrames ?? 0,
      hlsVersion,
    });
  }
}

/** The playback id (or playback token) in `/live/{playbackId}`. */
function playbackIdIn(pathname: string): string {
  const name = pathname.split("/").filter(Boolean).pop() ?? "";
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

const player = new Player(playbackIdIn(location.pathname));
Object.defineProperty(window, "sluice", { get: () => player.probe() });
player.run();
