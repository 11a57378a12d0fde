/**
 * Starts playback within the browser's autoplay policy: with audio where that is allowed, else muted until the
 * viewer's first click or key. Rule: the viewer's own choice of audio outlives every change of source, because it
 * is kept here and in the video element and not in the source.
 */

const REMEMBERED = "sluice.volume";
/** A press of the mute control this soon after the first gesture is that same gesture, which has already unmuted. */
const SAME_GESTURE_MS = 500;

export class AudioPolicy {
  /** Muted by the browser's policy alone; the first gesture undoes it. */
  private mutedByPolicy = false;
  /** Time at which a gesture last undid that. */
  private allowedAtMs = Number.NEGATIVE_INFINITY;

  /** @param onChange called whenever what the viewer hears, or could hear, has changed */
  constructor(
    private readonly video: HTMLVideoElement,
    private readonly onChange: () => void,
  ) {
    video.volume = rememberedVolume();
    video.addEventListener("volumechange", () => {
      rememberVolume(video.volume);
      onChange();
    });
    const gesture = () => this.allow();
    document.addEventListener("pointerup", gesture);
    document.addEventListener("keydown", gesture);
  }

  /** True when the page is muted only by the autoplay policy, until the first gesture. */
  get waitsForGesture(): boolean {
    return this.mutedByPolicy;
  }

  /** Starts playing, muted if the policy requires it. May be called again. */
  async start(): Promise<void> {
    if (this.mutedByPolicy && navigator.userActivation?.hasBeenActive) this.allow();
    try {
      await this.video.play();
    } catch (error) {
      if (!isPolicy(error) || this.video.muted) return;
      this.mutedByPolicy = true;
      this.video.muted = true;
      this.onChange();
      await this.video.play().catch(() => undefined);
    }
  }

  /** Unmutes what only the policy had muted, after the viewer's first gesture. */
  allow(): void {
    if (!this.mutedByPolicy) return;
    this.mutedByPolicy = false;
    this.allowedAtMs = performance.now();
    this.video.muted = false;
    if (this.video.paused) void this.video.play().catch(() => undefined);
    this.onChange();
  }

  toggle(): void {
    const isSameGesture = performance.now() - this.allowedAtMs < SAME_GESTURE_MS;
    if (isSameGesture) return;
    this.video.muted = !this.video.muted;
    if (!this.video.muted && this.video.volume === 0) this.video.volume = 0.5;
  }

  setVolume(volume: number): void {
    this.mutedByPolicy = false;
    this.video.volume = Math.min(1, Math.max(0, volume));
    this.video.muted = this.video.volume === 0;
  }
}

function isPolicy(error: unknown): boolean {
  return error instanceof DOMException && error.name === "NotAllowedError";
}

function rememberedVolume(): number {
  try {
    const volume = Number.parseFloat(localStorage.getItem(REMEMBERED) ?? "1");
    return volume >= 0 && volume <= 1 ? volume : 1;
  } catch {
    return 1;
  }
}

function rememberVolume(volume: number): void {
  try {
    localStorage.setItem(REMEMBERED, String(volume));
  } catch {
    // Without storage (private window, blocked by the user) the volume is not remembered, and playback works.
  }
}
