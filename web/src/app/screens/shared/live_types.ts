/** A live input as the API answers it. */
export interface LiveInput {
  id: string;
  name: string;
  status: "idle" | "live" | "reconnecting";
  /** Null: not counted. */
  viewers: number | null;
  inputSlug: string;
  playbackId: string;
  enabled: boolean;
  reconnectWindowSeconds: number;
  requireSignedPlayback: boolean;
  allowedDomains: string[];
  recordMode: "off" | "automatic";
  latency: "low" | "standard";
  pullUrl: string | null;
  streamKeyPrefix: string;
  /** False: the key was made before keys could be shown again. */
  streamKeyRevealable: boolean;
  ingest: {
    rtmpUrl: string;
    srtUrl: string | null;
    obsServer: string;
    obsStreamKey: string;
    srtPassphrase: string | null;
    srtServer: string | null;
    whipUrl?: string | null;
  };
  playback: { hlsUrl: string; webRtcUrl?: string | null; posterUrl: string; watchUrl: string };
  startedAt: string | null;
  reconnectUntil: string | null;
  lastStartedAt: string | null;
  lastEndedAt: string | null;
  createdAt: string;
}

/** A page of inputs; `counts` are of all of them. */
export interface LiveInputs {
  liveInputs: LiveInput[];
  pagination: { total: number };
  counts: { idle: number; live: number; reconnecting: number; disabled: number; total: number };
}

export interface LiveInputAnswer {
  liveInput: LiveInput;
}

/** The answer of those calls that show the key in plain. */
export interface LiveInputWithKey extends LiveInputAnswer {
  streamKey: string;
}
