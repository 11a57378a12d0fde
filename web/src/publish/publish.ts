/**
 * The page at `/live/publish/{inputSlug}`: previews a camera or a screen and publishes it by WHIP. Rules: nothing is captured
 * before a click, and the stream key is in no address that is requested and in no storage.
 */
import { Broadcast } from "./broadcast";
import { Capture, NO_MICROPHONE, type Wanted } from "./capture";
import { credential, keyIn, slugIn } from "./key";
import { Level, LOUD_DB, SILENCE_DB } from "./level";
import { findPage } from "./page";
import { AUDIO_BITRATE, BITRATES, RESOLUTIONS, type Resolution, USUAL } from "./quality";
import { isPublishingSupported, type Offered } from "./session";
import {
  announcementOf,
  badgeWords,
  captureWords,
  formatBitrate,
  NO_WEBRTC,
  type Problem,
  type SourceKind,
  type Stage,
} from "./words";

const WHIP = "/live/whip";
const LEVEL_EVERY_MS = 100;
const MEASURE_EVERY_MS = 1_000;
const SHARE_WORDS: Record<SourceKind, string> = {
  camera: "Use camera and microphone",
  screen: "Choose a screen or window",
};

class Publisher {
  private readonly page = findPage();
  private readonly slug = slugIn(location.pathname);
  private readonly capture = new Capture((track) => this.onTrackEnded(track));
  private broadcast: Broadcast | null = null;
  private stage: Stage = "setup";
  private levels: { microphone: Level | null; system: Level | null } = { microphone: null, system: null };
  private measured: Record<string, unknown> = {};
  private wakeLock: WakeLockSentinel | null = null;

  run(): void {
    this.takeKey();
    if (!isSecureContext || !navigator.mediaDevices) {
      this.explainInsecure();
      return;
    }
    this.fillChoices();
    this.connect();
    void this.listDevices();
    setInterval(() => this.showLevels(), LEVEL_EVERY_MS);
    setInterval(() => void this.measure(), MEASURE_EVERY_MS);
    this.refresh();
    if (!isPublishingSupported()) this.complain(NO_WEBRTC);
  }

  /** Takes the key out of the address, so that it stays in no history and on no screen. */
  private takeKey(): void {
    const key = keyIn(location.hash);
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
    if (key) this.page.key.value = key;
  }

  private explainInsecure(): void {
    const { page } = this;
    page.insecure.hidden = false;
    page.studio.hidden = true;
    page.httpsLink.href = `https://${location.hostname}${location.pathname}`;
    page.localhostLink.textContent = `http://localhost:${location.port || 80}${location.pathname}`;
  }

  private fillChoices(): void {
    const { resolution, rate } = this.page;
    resolution.replaceChildren(...RESOLUTIONS.map(({ name }, index) => option(String(index), name)));
    resolution.value = String(USUAL);
    rate.replaceChildren(...BITRATES.map((value) => option(String(value), formatBitrate(value))));
    rate.value = String(this.resolution.bitrate);
  }

  private connect(): void {
    const { page } = this;
    page.share.addEventListener("click", () => void this.share());
    for (const radio of page.form.querySelectorAll<HTMLInputElement>("input[name=source]")) {
      radio.addEventListener("change", () => this.onSourceChosen());
    }
    page.camera.addEventListener("change", () => void this.recapture());
    page.microphone.addEventListener("change", () => void this.recaptureMicrophone());
    page.voice.addEventListener("change", () => void this.recaptureMicrophone());
    page.resolution.addEventListener("change", () => {
      page.rate.value = String(this.resolution.bitrate);
      this.broadcast?.setQuality(this.offered());
      void this.resize();
    });
    page.rate.addEventListener("change", () => this.broadcast?.setQuality(this.offered()));
    page.mute.addEventListener("click", () => this.toggleMute());
    page.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.goLive();
    });
    page.stop.addEventListener("click", () => this.stop());
    navigator.mediaDevices.addEventListener("devicechange", () => void this.listDevices());
    window.addEventListener("beforeunload", (event) => {
      if (this.stage !== "setup") event.preventDefault();
    });
    window.addEventListener("pagehide", () => this.broadcast?.stop());
    document.addEventListener("visibilitychange", () => void this.stayAwake());
  }

  private get source(): SourceKind {
    const chosen = this.page.form.querySelector<HTMLInputElement>("input[name=source]:checked");
    return chosen?.value === "screen" ? "screen" : "camera";
  }

  private get resolution(): Resolution {
    const chosen = RESOLUTIONS[Number(this.page.resolution.value)] ?? RESOLUTIONS[USUAL];
    if (!chosen) throw new Error("there is no resolution to choose");
    return chosen;
  }

  private get wanted(): Wanted {
    const { camera, microphone, voice } = this.page;
    return {
      source: this.source,
      camera: camera.value,
      microphone: microphone.value,
      clean: voice.checked,
      resolution: this.resolution,
    };
  }

  /** Captures what is chosen, and shows it. True when there is something to send. */
  private async share(): Promise<boolean> {
    const { source } = this;
    this.complain(null);
    try {
      await this.capture.take(this.wanted);
    } catch (error) {
      this.complain(captureWords(nameOf(error), source));
    }
    await this.onCaptured();
    return this.capture.video?.readyState === "live";
  }

  private async recapture(): Promise<void> {
    if (this.capture.video && this.source === "camera") await this.share();
  }

  private async recaptureMicrophone(): Promise<void> {
    if (!this.capture.video) return;
    this.complain(null);
    try {
      await this.capture.takeMicrophone(this.wanted);
    } catch (error) {
      this.complain(captureWords(nameOf(error), "camera"));
    }
    await this.onCaptured();
  }

  /** A screen is scaled where it is; a camera is opened again, since it may have other modes. */
  private async resize(): Promise<void> {
    const { video, source } = this.capture;
    if (!video) return;
    if (source === "camera") return this.recapture();
    const { width, height, framesPerSecond } = this.resolution;
    const scaled = { width: { max: width }, height: { max: height }, frameRate: { max: framesPerSecond } };
    await video.applyConstraints(scaled).catch(() => undefined);
  }

  private async onCaptured(): Promise<void> {
    const { capture, page } = this;
    const { video, microphone, system } = capture;
    if (page.video.srcObject instanceof MediaStream && video) {
      const [shown] = page.video.srcObject.getVideoTracks();
      if (shown !== video) page.video.srcObject = new MediaStream([video]);
    } else {
      page.video.srcObject = video && new MediaStream([video]);
    }
    this.levels.microphone?.close();
    this.levels.system?.close();
    this.levels = {
      microphone: microphone && new Level(capture.audioContext, microphone),
      system: system && new Level(capture.audioContext, system),
    };
    if (microphone) microphone.enabled = page.mute.getAttribute("aria-pressed") !== "true";
    const audio = capture.audio();
    for (const track of [video, audio]) if (track) this.broadcast?.replace(track);
    await this.listDevices();
    this.refresh();
  }

  private onSourceChosen(): void {
    // While live the one before is sent until the other is there.
    if (this.stage !== "setup") void this.share();
    else if (this.capture.video) {
      this.capture.release();
      void this.onCaptured();
    }
    this.refresh();
  }

  private onTrackEnded(track: MediaStreamTrack): void {
    const { capture } = this;
    if (track === capture.video) {
      const isScreen = capture.source === "screen";
      if (this.stage !== "setup") this.stop();
      capture.release();
      void this.onCaptured();
      if (!isScreen)
        this.complain({ title: "The camera is gone", detail: "Connect it again, or choose another." });
    } else if (track === capture.microphone) {
      this.complain({ title: "The microphone is gone", detail: "Choose another; viewers hear nothing." });
    }
  }

  /** Lists the devices; before a permission browsers give neither names nor ids. */
  private async listDevices(): Promise<void> {
    const devices = await navigator.mediaDevices.enumerateDevices().catch(() => []);
    const { camera, microphone } = this.page;
    const of = (kind: MediaDeviceKind, name: string) =>
      devices
        .filter((device) => device.kind === kind && device.deviceId !== "")
        .map(({ deviceId, label }, index) => option(deviceId, label || `${name} ${index + 1}`));
    const cameras = of("videoinput", "Camera");
    const microphones = of("audioinput", "Microphone");
    const none = option(NO_MICROPHONE, "No microphone");
    fill(camera, cameras.length > 0 ? cameras : [option("", "The browser’s choice")], this.capture.video);
    fill(
      microphone,
      [...(microphones.length > 0 ? microphones : [option("", "The browser’s choice")]), none],
      this.capture.microphone,
    );
  }

  private toggleMute(): void {
    const { microphone } = this.capture;
    const isMuted = this.page.mute.getAttribute("aria-pressed") !== "true";
    this.page.mute.setAttribute("aria-pressed", String(isMuted));
    this.page.mute.textContent = isMuted ? "Unmute" : "Mute";
    if (microphone) microphone.enabled = !isMuted;
  }

  private async goLive(): Promise<void> {
    if (this.stage !== "setup") return;
    const key = this.page.key.value.trim();
    this.complain(null);
    if (key === "") {
      this.page.key.setAttribute("aria-invalid", "true");
      this.page.key.focus();
      this.complain({
        title: "The stream key is missing",
        detail: "Copy it from the input’s page in the dashboard, Connect.",
      });
      return;
    }
    if (this.capture.video?.readyState !== "live" && !(await this.share())) return;
    this.broadcast = new Broadcast(WHIP, credential(this.slug, key), () => this.offered(), {
      onStage: (stage) => this.become(stage),
      onProblem: (problem) => this.complain(problem),
    });
    this.broadcast.start();
  }

  private stop(): void {
    this.broadcast?.stop();
    this.broadcast = null;
  }

  private offered(): Offered {
    const { video } = this.capture;
    if (!video) throw new Error("nothing is captured");
    return {
      video,
      audio: this.capture.audio(),
      videoBitrate: Number(this.page.rate.value),
      audioBitrate: AUDIO_BITRATE,
      framesPerSecond: this.resolution.framesPerSecond,
    };
  }

  private become(stage: Stage): void {
    this.page.announcement.textContent = announcementOf(stage, this.stage);
    this.stage = stage;
    this.measured = {};
    void this.stayAwake();
    this.refresh();
    // The button that was pressed has gone.
    if (stage === "connecting") this.page.stop.focus();
    if (stage === "setup") this.page.go.focus();
  }

  /** Keeps the screen on while live, where the browser can: a phone that sleeps ends the stream. */
  private async stayAwake(): Promise<void> {
    if (this.stage === "setup") {
      await this.wakeLock?.release().catch(() => undefined);
      this.wakeLock = null;
    } else if (document.visibilityState === "visible" && "wakeLock" in navigator) {
      this.wakeLock = await navigator.wakeLock.request("screen").catch(() => null);
    }
  }

  private refresh(): void {
    const { page, capture, stage } = this;
    const isBusy = stage !== "setup";
    page.root.dataset.stage = stage;
    page.root.dataset.source = capture.video ? capture.source : this.source;
    page.curtain.hidden = capture.video?.readyState === "live";
    page.share.textContent = SHARE_WORDS[this.source];
    page.cameraField.hidden = this.source !== "camera";
    page.meters.hidden = !capture.microphone && !capture.system;
    page.microphoneMeter.hidden = !capture.microphone;
    page.systemMeter.hidden = !capture.system;
    page.facts.hidden = stage === "setup";
    page.go.hidden = isBusy;
    page.stop.hidden = !isBusy;
    page.key.disabled = isBusy;
    // A session without audio gets none later.
    page.microphone.disabled = isBusy && !capture.microphone;
    this.showBadge();
  }

  private showBadge(): void {
    const since = this.broadcast?.liveSinceMs ?? null;
    const text = badgeWords(this.stage, since === null ? 0 : (performance.now() - since) / 1000);
    if (this.page.badgeText.textContent !== text) this.page.badgeText.textContent = text;
    document.title = `${text} – Sluice`;
  }

  private showLevels(): void {
    const { page, levels } = this;
    for (const [meter, level] of [
      [page.microphoneLevel, levels.microphone],
      [page.systemLevel, levels.system],
    ] as const) {
      if (!level) continue;
      const db = level.read();
      meter.style.setProperty("--level", `${(1 - db / SILENCE_DB) * 100}%`);
      meter.setAttribute("aria-valuenow", String(Math.round(db)));
      meter.setAttribute("aria-valuetext", db <= SILENCE_DB ? "silence" : `${Math.round(db)} dB`);
      meter.dataset.loud = String(db >= LOUD_DB);
    }
  }

  private async measure(): Promise<void> {
    this.showBadge();
    const measured = await this.broadcast?.measure().catch(() => null);
    if (!measured) return;
    const { bitrate, roundTripS, dropped, sent } = measured;
    const { page } = this;
    const limited: Record<string, string> = { cpu: "slow computer", bandwidth: "slow line" };
    const reason = limited[sent.limitedBy];
    page.bitrate.textContent = formatBitrate(bitrate);
    page.format.textContent =
      sent.height === 0
        ? "–"
        : `${sent.width}×${sent.height}, ${Math.round(sent.framesPerSecond)} fps${reason ? ` (${reason})` : ""}`;
    page.roundTrip.textContent = roundTripS === null ? "–" : `${Math.round(roundTripS * 1000)} ms`;
    page.dropped.textContent = dropped === null ? "–" : dropped.toLocaleString("en");
    this.measured = { bitrate, roundTripS, dropped, height: sent.height, frames: sent.encoded };
  }

  private complain(problem: Problem | null): void {
    const { page } = this;
    page.problem.hidden = problem === null;
    page.problemTitle.textContent = problem?.title ?? "";
    page.problemDetail.textContent = problem?.detail ?? "";
    if (problem === null) page.key.removeAttribute("aria-invalid");
  }

  /** A snapshot for tests and the browser's console; without the key. */
  probe(): Record<string, unknown> {
    return Object.freeze({ state: this.stage, source: this.capture.source, ...this.measured });
  }
}

function option(value: string, text: string): HTMLOptionElement {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = text;
  return made;
}

/** Replaces the choices and keeps the chosen one: by its value, else that of the track which is open. */
function fill(select: HTMLSelectElement, options: HTMLOptionElement[], track: MediaStreamTrack | null): void {
  const before = select.value;
  select.replaceChildren(...options);
  const has = (value: string | undefined) => options.some((each) => each.value === value);
  const open = track?.getSettings().deviceId;
  const kept = before !== "" && has(before) ? before : has(open) ? open : options[0]?.value;
  select.value = kept ?? "";
}

function nameOf(error: unknown): string {
  return error instanceof Error || error instanceof DOMException ? error.name : String(error);
}

const publisher = new Publisher();
Object.defineProperty(window, "sluice", { get: () => publisher.probe() });
publisher.run();
