/** Starts the element within the browser's autoplay policy; keeps nothing in the storage of the page's site. */

export class EmbedAudio {
  /** Muted by the policy alone, until the viewer asks for audio. */
  waitsForGesture = false;

  constructor(
    private readonly video: HTMLVideoElement,
    private readonly onChange: () => void,
  ) {}

  set muted(muted: boolean) {
    this.waitsForGesture = false;
    this.video.muted = muted;
    this.onChange();
  }

  set volume(volume: number) {
    this.video.volume = Math.min(1, Math.max(0, volume));
    this.muted = this.video.volume === 0;
  }

  async start(): Promise<void> {
    try {
      await this.video.play();
    } catch (error) {
      const isPolicy = error instanceof DOMException && error.name === "NotAllowedError";
      if (!isPolicy || this.video.muted) return;
      this.video.muted = true;
      this.waitsForGesture = true;
      this.onChange();
      await this.video.play().catch(() => undefined);
    }
  }

  allow(): void {
    this.muted = false;
    if (this.video.paused) void this.video.play().catch(() => undefined);
  }
}
