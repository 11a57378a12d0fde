/** Buttons, pointer and keys, turned into the few things a viewer can want. Holds no state of playback. */
import type { Page } from "./page";

export interface Wishes {
  togglePlay(): void;
  toggleMute(): void;
  setVolume(volume: number): void;
  /** Seconds, negative for back. */
  skip(seconds: number): void;
  goLive(): void;
}

const VOLUME_STEP = 0.1;
const SKIP_S = 5;
/** Time without pointer, key or focus input after which the control bar is hidden. */
const IDLE_AFTER_MS = 2500;

export function connectControls(page: Page, wishes: Wishes): void {
  page.play.addEventListener("click", () => wishes.togglePlay());
  page.mute.addEventListener("click", () => wishes.toggleMute());
  page.goLive.addEventListener("click", () => wishes.goLive());
  page.fullscreen.addEventListener("click", () => toggleFullscreen(page));
  page.volume.addEventListener("input", () => wishes.setVolume(Number(page.volume.value) / 100));
  page.video.addEventListener("dblclick", () => toggleFullscreen(page));
  page.video.addEventListener("volumechange", () => {
    page.volume.value = String(page.video.muted ? 0 : Math.round(page.video.volume * 100));
  });
  page.volume.value = String(Math.round(page.video.volume * 100));
  document.addEventListener("fullscreenchange", () => {
    page.fullscreen.setAttribute(
      "aria-label",
      document.fullscreenElement ? "Leave full screen" : "Full screen",
    );
  });
  document.addEventListener("keydown", (event) => {
    if (onKey(event, page, wishes)) event.preventDefault();
  });
  hideWhenIdle(page.screen);
}

/** True when the key meant something here. */
function onKey(event: KeyboardEvent, page: Page, wishes: Wishes): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  const target = event.target instanceof HTMLElement ? event.target : null;
  const onButton =
    target instanceof HTMLButtonElement || target?.tagName === "SUMMARY" || target?.tagName === "A";
  switch (event.key) {
    case " ":
      if (onButton) return false;
      wishes.togglePlay();
      return true;
    case "k":
      wishes.togglePlay();
      return true;
    case "m":
      wishes.toggleMute();
      return true;
    case "f":
      toggleFullscreen(page);
      return true;
    case "l":
      wishes.goLive();
      return true;
    case "ArrowUp":
    case "ArrowDown":
      if (target instanceof HTMLInputElement) return false;
      wishes.setVolume(
        (page.video.muted ? 0 : page.video.volume) + (event.key === "ArrowUp" ? VOLUME_STEP : -VOLUME_STEP),
      );
      return true;
    case "ArrowLeft":
    case "ArrowRight":
      if (target instanceof HTMLInputElement) return false;
      wishes.skip(event.key === "ArrowRight" ? SKIP_S : -SKIP_S);
      return true;
    default:
      return false;
  }
}

/** iPhones let only the video element itself fill the screen. */
function toggleFullscreen(page: Page): void {
  const video = page.video as HTMLVideoElement & { webkitEnterFullscreen?: () => void };
  if (document.fullscreenElement) {
    void document.exitFullscreen();
  } else if (page.screen.requestFullscreen) {
    void page.screen.requestFullscreen().catch(() => undefined);
  } else {
    video.webkitEnterFullscreen?.();
  }
}

function hideWhenIdle(screen: HTMLElement): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stir = () => {
    screen.dataset.idle = "false";
    clearTimeout(timer);
    timer = setTimeout(() => {
      screen.dataset.idle = "true";
    }, IDLE_AFTER_MS);
  };
  for (const event of ["pointermove", "pointerdown", "keydown", "focusin"])
    screen.addEventListener(event, stir);
  stir();
}
