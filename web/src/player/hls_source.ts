/** Plays by hls.js on Media Source Extensions (ManagedMediaSource on iPhones that have it). */
import Hls, {
  type ErrorData,
  ErrorDetails,
  ErrorTypes,
  Events,
  type FragLoadingData,
  type HlsConfig,
  type LevelUpdatedData,
  type LoaderConfig,
  type RetryConfig,
} from "hls.js/light";
import type { Source, SourceListener } from "./source";

/** A second media error this soon after a repair means that repairing does not help. */
const REPAIR_PAUSE_MS = 5000;

export const hlsVersion: string = Hls.version;

export function isHlsSupported(): boolean {
  return Hls.isSupported();
}

/**
 * `liveSyncDurationCount` and `liveSyncDuration` stay unset: with either of them hls.js ignores the playlist's
 * PART-HOLD-BACK. A rate of 1.5 wins back a second in two; speech stays intelligible and pitch is kept.
 */
function settings(): Partial<HlsConfig> {
  return {
    lowLatencyMode: true,
    maxLiveSyncPlaybackRate: 1.5,
    liveSyncOnStallIncrease: 0.25,
    liveDurationInfinity: true,
    backBufferLength: 20,
    maxBufferLength: 20,
    enableWorker: false,
    manifestLoadPolicy: { default: patientPolicy(10_000) },
    playlistLoadPolicy: { default: patientPolicy(30_000) },
    fragLoadPolicy: { default: patientPolicy(10_000) },
  };
}

/**
 * Retries while the source is attached, also when the connection is refused, which hls.js by itself treats as final:
 * a service that restarts refuses connections. The page's state feed decides when to stop.
 *
 * @param firstByteMs how long an answer may take; a blocked playlist reload is held until the next part exists
 */
function patientPolicy(firstByteMs: number): LoaderConfig {
  const retry: RetryConfig = {
    maxNumRetry: Number.MAX_SAFE_INTEGER,
    retryDelayMs: 250,
    maxRetryDelayMs: 2000,
    backoff: "exponential",
    shouldRetry: (_config, _count, isTimeout, response) => isTimeout || !isRefusal(response?.code ?? 0),
  };
  return { maxTimeToFirstByteMs: firstByteMs, maxLoadTimeMs: 60_000, timeoutRetry: retry, errorRetry: retry };
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500;
}

export class HlsSource implements Source {
  readonly transport = "hls";
  private readonly hls = new Hls(settings());
  private repairedAtMs = Number.NEGATIVE_INFINITY;
  /** The last segment that loading entered: its media sequence number and the first part that was requested. */
  private entry = { msn: -1, part: 0 };

  constructor(
    url: string,
    video: HTMLVideoElement,
    private readonly listener: SourceListener,
  ) {
    this.hls.on(Events.ERROR, (_, error) => this.onError(error));
    this.hls.on(Events.BUFFER_APPENDED, () => listener.onBuffered());
    this.hls.on(Events.FRAG_LOADING, (_, loading) => this.noteEntry(loading));
    this.hls.on(Events.LEVEL_UPDATED, (_, level) => this.skipBeforeEntry(level));
    this.hls.loadSource(url);
    this.hls.attachMedia(video);
  }

  latency(): number | null {
    return this.hls.latency || null;
  }

  edge(): number | null {
    return this.hls.liveSyncPosition;
  }

  playingDate(): Date | null {
    return this.hls.playingDate;
  }

  complete(): boolean {
    return this.hls.latestLevelDetails?.live === false;
  }

  resume(): void {
    this.hls.startLoad(-1);
  }

  detach(): void {
    this.hls.destroy();
  }

  private noteEntry({ frag, part }: FragLoadingData): void {
    if (typeof frag.sn === "number" && frag.sn !== this.entry.msn) {
      this.entry = { msn: frag.sn, part: part?.index ?? 0 };
    }
  }

  /**
   * Audio alone may be entered at any part. hls.js 1.7 then waits for the parts before the entry, which it never loads,
   * and stops at the segment's end; parts that count as gaps are not waited for.
   */
  private skipBeforeEntry({ details }: LevelUpdatedData): void {
    for (const part of details.partList ?? []) {
      if (part.fragment.sn === this.entry.msn && part.index < this.entry.part && !part.loaded)
        part.gap = true;
    }
  }

  private onError(error: ErrorData): void {
    if (error.details === ErrorDetails.LEVEL_EMPTY_ERROR) {
      this.listener.onTooEarly();
      return;
    }
    if (!error.fatal) return;
    const now = performance.now();
    if (error.type === ErrorTypes.MEDIA_ERROR && now - this.repairedAtMs > REPAIR_PAUSE_MS) {
      this.repairedAtMs = now;
      this.hls.recoverMediaError();
      return;
    }
    this.listener.onBroken();
  }
}
