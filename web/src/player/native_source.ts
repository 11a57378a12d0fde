/** Plays by the browser's own HLS player, where there is no Media Source Extensions: older iPhones. */
import type { Source, SourceListener } from "./source";

/** Safari reports the seekable end a little ahead of what it can show. */
const HOLD_BACK_S = 1;

export function isNativeHlsSupported(video: HTMLVideoElement): boolean {
  return video.canPlayType("application/vnd.apple.mpegurl") !== "";
}

export class NativeSource implements Source {
  readonly transport = "hls";
  private readonly ended = new AbortController();

  constructor(
    url: string,
    private readonly video: HTMLVideoElement,
    listener: SourceListener,
  ) {
    const { signal } = this.ended;
    video.addEventListener("progress", () => listener.onBuffered(), { signal });
    video.addEventListener("error", () => listener.onBroken(), { signal });
    video.src = url;
  }

  latency(): number | null {
    const end = this.seekableEnd();
    return end === null ? null : Math.max(0, end - this.video.currentTime);
  }

  edge(): number | null {
    const end = this.seekableEnd();
    return end === null ? null : end - HOLD_BACK_S;
  }

  playingDate(): Date | null {
    const start = (this.video as { getStartDate?: () => Date }).getStartDate?.();
    const startMs = start?.getTime() ?? Number.NaN;
    return Number.isNaN(startMs) ? null : new Date(startMs + this.video.currentTime * 1000);
  }

  complete(): boolean {
    return Number.isFinite(this.video.duration);
  }

  resume(): void {}

  detach(): void {
    this.ended.abort();
    this.video.removeAttribute("src");
    this.video.load();
  }

  private seekableEnd(): number | null {
    const { seekable } = this.video;
    return seekable.length > 0 ? seekable.end(seekable.length - 1) : null;
  }
}
