/**
 * The page at `/video/{playbackId or token}`: waits until the video is there, then plays it, with a choice of quality and
 * captions in the browser's own controls.
 */
import Hls, { Events } from "hls.js";
import { type Stage, type Verdict, verdictOf } from "./answer";

function element<T extends Element>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`watch.html has no ${kind.name} with the id ${id}`);
  return found;
}

/** Level of hls.js: it chooses by itself. */
const AUTOMATIC = -1;

class Watch {
  private readonly video = element("video", HTMLVideoElement);
  private readonly quality = element("quality", HTMLSelectElement);
  private stage: Stage = "connecting";
  private hls: Hls | null = null;

  constructor(private readonly base: string) {
    this.quality.addEventListener("change", () => {
      if (this.hls) this.hls.nextLevel = Number(this.quality.value);
    });
  }

  async run(): Promise<void> {
    for (;;) {
      const verdict = await this.ask();
      this.show(verdict);
      if (verdict.stage === "ready") return this.play();
      const { againAfterS } = verdict;
      if (againAfterS === null) return;
      await new Promise((resolve) => setTimeout(resolve, againAfterS * 1000));
    }
  }

  private async ask(): Promise<Verdict> {
    try {
      const response = await fetch(this.manifest, { cache: "no-store" });
      const body: { code?: string } = response.ok ? {} : await response.json();
      return verdictOf(response.status, body.code, response.headers.get("retry-after"));
    } catch {
      return verdictOf(0, undefined, null);
    }
  }

  private show({ stage, title, detail }: Verdict): void {
    this.stage = stage;
    element("curtain", HTMLElement).hidden = stage === "ready";
    element("title", HTMLElement).textContent = title;
    element("detail", HTMLElement).textContent = detail;
    element("announcement", HTMLElement).textContent = title;
  }

  private play(): void {
    this.video.poster = `${this.base}/poster.jpg`;
    if (!Hls.isSupported()) {
      this.video.src = this.manifest;
      return;
    }
    // startPosition 0: hls.js would start an unfinished playlist at its live edge.
    const hls = new Hls({ enableWorker: false, startPosition: 0 });
    this.hls = hls;
    hls.on(Events.MANIFEST_PARSED, () => this.offerQualities(hls));
    hls.on(Events.ERROR, (_, error) => {
      if (!error.fatal) return;
      if (error.type === Hls.ErrorTypes.MEDIA_ERROR) hls.recoverMediaError();
      else this.restart(hls);
    });
    hls.loadSource(this.manifest);
    hls.attachMedia(this.video);
  }

  /** Asks the service for the manifest again after 1 s, and plays if the video still exists. */
  private restart(hls: Hls): void {
    hls.destroy();
    this.hls = null;
    this.stage = "connecting";
    setTimeout(() => void this.run(), 1000);
  }

  private offerQualities(hls: Hls): void {
    const named = (name: string, level: number) => {
      const option = document.createElement("option");
      option.textContent = name;
      option.value = String(level);
      return option;
    };
    const levels = hls.levels
      .map(({ width, height }, level) => ({ lines: Math.min(width, height), level }))
      .sort((one, other) => other.lines - one.lines)
      .map(({ lines, level }) => named(`${lines}p`, level));
    this.quality.replaceChildren(named("Automatic", AUTOMATIC), ...levels);
    element("quality-line", HTMLElement).hidden = hls.levels.length < 2;
  }

  private get manifest(): string {
    return `${this.base}/master.m3u8`;
  }

  /** The stage; for a ready video also whether it is loading or playing. */
  private state(): Stage | "loading" | "playing" {
    const { video, stage } = this;
    if (stage !== "ready") return stage;
    if (video.readyState < video.HAVE_METADATA) return "loading";
    return !video.paused && video.readyState >= video.HAVE_FUTURE_DATA ? "playing" : stage;
  }

  /** A snapshot for tests and the browser's console. */
  probe(): Record<string, unknown> {
    const { video, hls } = this;
    return Object.freeze({
      state: this.state(),
      currentTime: video.currentTime,
      duration: video.duration,
      height: video.videoHeight,
      heights: hls?.levels.map((level) => level.height) ?? [],
      captions: [...video.textTracks].map((track) => track.language),
      paused: video.paused,
      muted: video.muted,
      hlsVersion: Hls.version,
    });
  }
}

const leave = location.pathname.split("/").filter(Boolean).pop() ?? "";
const watch = new Watch(`/video/v1/${leave}`);
Object.defineProperty(window, "sluice", { get: () => watch.probe() });
void watch.run();
