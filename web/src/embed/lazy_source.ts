/** An HLS source whose code is loaded first. */
import type { Source, SourceListener } from "../player/source";

/** Written by the build: the address of `hls.ts` below the service's own. */
declare const HLS_MODULE: string;

interface HlsModule {
  attachHls(url: string, video: HTMLVideoElement, listener: SourceListener): Source;
}

export class LazySource implements Source {
  readonly transport = "hls";
  private source: Source | null = null;
  private isOver = false;

  /** @param host address of a file of the service, which `HLS_MODULE` is relative to */
  constructor(host: string, url: string, video: HTMLVideoElement, listener: SourceListener) {
    const load: Promise<HlsModule> = import(new URL(HLS_MODULE, host).href);
    load.then(
      ({ attachHls }) => {
        if (!this.isOver) this.source = attachHls(url, video, listener);
      },
      () => {
        if (!this.isOver) listener.onBroken();
      },
    );
  }

  latency(): number | null {
    return this.source?.latency() ?? null;
  }

  edge(): number | null {
    return this.source?.edge() ?? null;
  }

  playingDate(): Date | null {
    return this.source?.playingDate() ?? null;
  }

  complete(): boolean {
    return this.source?.complete() ?? false;
  }

  resume(): void {
    this.source?.resume();
  }

  detach(): void {
    this.isOver = true;
    this.source?.detach();
  }
}
