/** Shows the stage: curtain, badge, notice, announcement. Writes to the page only what has changed. */
import type { Page } from "./page";
import type { Stage } from "./stage";
import type { Ending, Transport } from "./transport";
import { AUDIO_ONLY, fallbackWords, transportWords, wordsFor } from "./words";

export interface Shown {
  stage: Stage;
  /** Playback advances, so that nothing may cover the video in any stage. */
  advancing: boolean;
  /** Seconds that the service still waits for the encoder. */
  secondsLeft: number | null;
  transport: Transport | null;
  isLowLatency: boolean;
  /** Reason of a change from WebRTC to HLS a moment ago. */
  fallback: Ending["why"] | null;
  latency: number | null;
  paused: boolean;
  /** The viewer watches behind the live edge. */
  behind: boolean;
  muted: boolean;
  /** Muted only until the first click. */
  waitsForGesture: boolean;
  hasMedia: boolean;
  /** The stream has no video. */
  audioOnly: boolean;
}

const BADGE_TEXT: Partial<Record<Stage, string>> = {
  live: "Live",
  reconnecting: "Reconnecting",
  stalled: "Live",
};

export class View {
  private announced = "";

  constructor(private readonly page: Page) {}

  show(shown: Shown): void {
    const { page } = this;
    const words = wordsFor(shown.stage, shown.secondsLeft);
    const covered = shown.stage !== "live" && !shown.advancing;
    const onCurtain = covered ? words : AUDIO_ONLY;

    setData(page.screen, "stage", shown.stage);
    setData(page.screen, "paused", String(shown.paused));
    setData(page.screen, "audioOnly", String(shown.audioOnly));
    page.curtain.hidden = !covered && !shown.audioOnly;
    setText(page.title, onCurtain.title);
    setText(page.detail, onCurtain.detail);
    const notice =
      shown.stage === "live"
        ? fallbackWords(shown.fallback)
        : [words.title, words.detail].filter(Boolean).join(". ");
    page.notice.hidden = covered || notice === "";
    setText(page.notice, notice);

    const badge = BADGE_TEXT[shown.stage];
    page.badge.hidden = badge === undefined;
    const transport =
      shown.stage === "live" ? transportWords(shown.transport, shown.isLowLatency, shown.latency) : "";
    setText(page.badgeText, [badge, transport].filter(Boolean).join(" · "));

    page.unmute.hidden = !(shown.waitsForGesture && shown.hasMedia);
    page.bar.hidden = !shown.hasMedia;
    page.goLive.hidden = !shown.behind;
    label(page.play, shown.paused ? "Play" : "Pause", "k");
    setData(page.play, "icon", shown.paused ? "play" : "pause");
    label(page.mute, shown.muted ? "Unmute" : "Mute", "m");
    setData(page.mute, "icon", shown.muted ? "muted" : "volume");
    this.announce(shown.stage, words.title);
  }

  /** Announces every stage once to screen readers, without its countdown. */
  private announce(stage: Stage, title: string): void {
    if (stage === this.announced) return;
    this.announced = stage;
    setText(
      this.page.announcement,
      wordsFor(stage, null).detail ? `${title}. ${wordsFor(stage, null).detail}` : title,
    );
    document.title = `${title} – Sluice`;
  }
}

function label(button: HTMLButtonElement, text: string, key: string): void {
  if (button.getAttribute("aria-label") === text) return;
  button.setAttribute("aria-label", text);
  button.title = `${text} (${key})`;
}

function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function setData(element: HTMLElement, name: string, value: string): void {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}
