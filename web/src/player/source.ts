/** One attached stream, whichever way the browser plays it. Made at attach, thrown away at detach. */

export interface SourceListener {
  /** Media entered the buffer. */
  onBuffered(): void;
  /** The source is broken beyond its own repair and must be attached again. */
  onBroken(): void;
  /** The playlist is there but lists nothing that could be played yet. */
  onTooEarly(): void;
}

export interface Source {
  /** Seconds between the newest published media and what is on the screen; null when it is not known. */
  latency(): number | null;
  /** Where playback should be; null when it is not known. */
  edge(): number | null;
  /** The wall-clock time at which the service received what is on the screen. */
  playingDate(): Date | null;
  /** The playlist has said that nothing follows. */
  complete(): boolean;
  /** The service answers again after it had been away. */
  resume(): void;
  detach(): void;
}
