/** One attached stream, played by WebRTC, by hls.js or by the browser. Created at attach, dropped at detach. */
import type { Ending, Transport } from "./transport";

export interface SourceListener {
  /** Media entered the buffer. */
  onBuffered(): void;
  /** The source is broken beyond its own repair and must be attached again. */
  onBroken(): void;
  /** The playlist exists but lists no media yet. */
  onTooEarly(): void;
}

/** Listener of a WebRTC session. */
export interface SessionListener {
  /** The first frame is decoded. */
  onFirstFrame(): void;
  /** The session is over; called once, and not after `detach`. */
  onEnded(ending: Ending): void;
}

export interface Source {
  readonly transport: Transport;
  /** Seconds between the newest published media and the frame on the screen; null when it is not known. */
  latency(): number | null;
  /** Position at which playback should be; null when it is not known. */
  edge(): number | null;
  /** The wall-clock time at which the service received the frame on the screen. */
  playingDate(): Date | null;
  /** True when the playlist has ended (`EXT-X-ENDLIST`). */
  complete(): boolean;
  /** Loads again at once, after the service could not be reached. */
  resume(): void;
  detach(): void;
}
