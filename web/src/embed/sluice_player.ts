/**
 * The element `<sluice-player src="https://host/live/v1/pb_…">` for pages of other sites: follows the state of the live input
 * and plays it by WebRTC, else by HLS.
 *
 * Attributes: `src`, `token` (a playback token, in place of the playback id), `autoplay`, `muted`, `controls`, `via`.
 * Properties: `state`, `transport`, `latency`, `paused`, `muted`, `volume`; methods `play()`, `pause()`.
 * Events: `statechange`, `transportchange`, `volumechange`, `play`, `pause`.
 */
import { StateFeed } from "../player/feed";
import { Playback } from "../player/playback";
import { type Feed, isNewBroadcast, isPlayable, type Reply, type Stage, stageOf } from "../player/stage";
import { type Transport, TransportChoice } from "../player/transport";
import { isWebRtcSupported } from "../player/whep_source";
import { AUDIO_ONLY, secondsUntil, transportWords, wordsFor } from "../player/words";
import { streamBase } from "./address";
import { EmbedAudio } from "./audio";
import { LazySource } from "./lazy_source";
import { label, makeView, type View } from "./view";

const TEND_EVERY_MS = 250;
const SCRIPT = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";

/** What exists while the element is in a page and has a stream. */
class Watching {
  readonly over = new AbortController();
  readonly playback: Playback;
  feed: Feed = "connecting";
  reply: Reply | null = null;
  private readonly choice: TransportChoice;
  private readonly states: StateFeed;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    base: string,
    video: HTMLVideoElement,
    audio: EmbedAudio,
    via: Transport | null,
    private readonly onChange: () => void,
  ) {
    this.choice = new TransportChoice({ suitable: false, via });
    this.playback = new Playback({
      hls: `${base}/index.m3u8`,
      whep: isWebRtcSupported() ? `${base}/whep` : null,
      video,
      audio,
      choice: this.choice,
      attachHls: (url, to, listener) => new LazySource(SCRIPT || base, url, to, listener),
      onChange,
    });
    this.states = new StateFeed(
      `${base}/state`,
      { onFeed: (feed, reply) => this.onFeed(feed, reply) },
      this.over.signal,
    );
    void this.states.run();
    this.timer = setInterval(() => {
      this.playback.tend(this.feed === "following" && this.reply?.state === "live");
      this.follow();
      onChange();
    }, TEND_EVERY_MS);
  }

  get stage(): Stage {
    const { feed, reply, playback } = this;
    const { advancing, hasPlayed, paused, draining } = playback;
    return stageOf({ feed, reply, supported: true, advancing, hasPlayed, paused, draining });
  }

  /** Seconds that the service still waits for the encoder. */
  get secondsLeft(): number | null {
    return secondsUntil(this.reply?.reconnectUntil, Date.now(), this.states.clockOffsetMs);
  }

  end(): void {
    this.over.abort();
    clearInterval(this.timer);
    this.playback.detach();
  }

  private onFeed(feed: Feed, reply: Reply | null): void {
    const isBack = this.feed === "failing" && feed === "following";
    const isNew = reply !== null && isNewBroadcast(this.reply, reply);
    this.feed = feed;
    this.reply = reply;
    if (reply) this.choice.suitable = reply.latency === "low";
    if (isNew) this.playback.detach();
    else if (isBack) this.playback.resume();
    this.follow();
    this.onChange();
  }

  private follow(): void {
    const { feed, reply, playback } = this;
    if (feed === "connecting" || feed === "failing") return;
    if (reply && isPlayable(reply)) playback.attach(reply.state === "live");
    else if (!playback.draining) playback.detach();
  }
}

class SluicePlayer extends HTMLElement {
  static readonly observedAttributes = ["src", "token", "via", "controls", "muted"];

  private readonly view: View = makeView(this.attachShadow({ mode: "open" }));
  private readonly audio = new EmbedAudio(this.view.video, () => this.refresh());
  private watching: Watching | null = null;
  private shown: { state: string; transport: Transport | null } = { state: "idle", transport: null };
  private problem = "";

  constructor() {
    super();
    const { start, unmute, play, mute, volume, fullscreen, video } = this.view;
    start.addEventListener("click", () => this.play());
    unmute.addEventListener("click", () => this.audio.allow());
    play.addEventListener("click", () => (this.paused ? this.play() : this.pause()));
    mute.addEventListener("click", () => {
      this.muted = !this.muted;
    });
    volume.addEventListener("input", () => {
      this.volume = Number(volume.value) / 100;
    });
    fullscreen.addEventListener("click", () => {
      if (document.fullscreenElement === this) void document.exitFullscreen();
      else void this.requestFullscreen?.().catch(() => undefined);
    });
    video.addEventListener("volumechange", () => {
      volume.value = String(video.muted ? 0 : Math.round(video.volume * 100));
      this.dispatchEvent(new Event("volumechange"));
    });
  }

  connectedCallback(): void {
    this.audio.muted = this.hasAttribute("muted");
    if (this.hasAttribute("autoplay")) this.open();
    this.refresh();
  }

  disconnectedCallback(): void {
    this.close();
  }

  attributeChangedCallback(name: string, before: string | null, now: string | null): void {
    if (before === now || !this.isConnected) return;
    if (name === "muted") this.audio.muted = now !== null;
    else if (name !== "controls" && this.watching) {
      this.close();
      this.open();
    }
    this.refresh();
  }

  /** State of the stream on the page: "live", "waiting", "reconnecting", "ended" and others; "idle" before it plays. */
  get state(): string {
    return this.watching?.stage ?? "idle";
  }

  get transport(): Transport | null {
    return this.watching?.playback.transport ?? null;
  }

  /** Seconds behind live; null when it is not known. */
  get latency(): number | null {
    return this.watching?.playback.latency ?? null;
  }

  get paused(): boolean {
    return this.watching?.playback.paused ?? true;
  }

  get muted(): boolean {
    return this.view.video.muted;
  }

  set muted(muted: boolean) {
    this.audio.muted = muted;
  }

  get volume(): number {
    return this.view.video.volume;
  }

  set volume(volume: number) {
    this.audio.volume = volume;
  }

  play(): void {
    if (!this.watching) this.open();
    else if (this.watching.playback.paused) this.watching.playback.togglePlay();
    else return;
    this.dispatchEvent(new Event("play"));
    this.refresh();
  }

  pause(): void {
    if (!this.watching || this.watching.playback.paused) return;
    this.watching.playback.togglePlay();
    this.dispatchEvent(new Event("pause"));
    this.refresh();
  }

  private open(): void {
    const base = streamBase(
      this.getAttribute("src") ?? "",
      this.getAttribute("token") ?? "",
      document.baseURI,
    );
    this.problem = base === null ? "The address of the stream is missing or wrong." : "";
    if (base === null) return;
    const via = this.getAttribute("via");
    this.watching = new Watching(
      base,
      this.view.video,
      this.audio,
      via === "hls" || via === "webrtc" ? via : null,
      () => this.refresh(),
    );
  }

  private close(): void {
    this.watching?.end();
    this.watching = null;
  }

  private refresh(): void {
    const { view, watching } = this;
    const { stage, playback } = watching ?? {};
    const words = stage ? wordsFor(stage, watching?.secondsLeft ?? null) : null;
    const isAudioOnly = stage === "live" && playback?.hasPlayed === true && view.video.videoWidth === 0;
    const said = this.problem ? { title: this.problem, detail: "" } : isAudioOnly ? AUDIO_ONLY : words;
    const isCovered = this.problem !== "" || isAudioOnly || (stage !== "live" && !playback?.advancing);
    view.note.hidden = !said || !isCovered;
    setText(view.title, said?.title ?? "");
    setText(view.detail, said?.detail ?? "");
    const delay = transportWords(this.transport, watching?.reply?.latency === "low", this.latency);
    view.badge.hidden = stage !== "live";
    setText(view.badge, ["Live", delay].filter(Boolean).join(" · "));
    view.start.hidden = this.problem !== "" || (watching !== null && !this.paused);
    view.unmute.hidden = !this.audio.waitsForGesture || !playback?.hasPlayed;
    view.bar.hidden = !this.hasAttribute("controls") || !playback?.hasPlayed;
    view.bar.dataset.playing = String(!this.paused);
    label(view.play, this.paused ? "play" : "pause", this.paused ? "Play" : "Pause");
    label(view.mute, this.muted ? "muted" : "volume", this.muted ? "Unmute" : "Mute");
    this.tell();
  }

  private tell(): void {
    const { state, transport, shown } = this;
    this.shown = { state, transport };
    if (shown.state !== state) this.dispatchEvent(new CustomEvent("statechange", { detail: { state } }));
    if (shown.transport !== transport) {
      this.dispatchEvent(new CustomEvent("transportchange", { detail: { transport } }));
    }
  }
}

function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

if (!customElements.get("sluice-player")) customElements.define("sluice-player", SluicePlayer);
