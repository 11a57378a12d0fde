/** Health, outputs, recordings and connections of a live input, as the API answers them. */
export interface Health {
  status: "idle" | "live" | "reconnecting";
  protocol: string | null;
  remoteAddress: string | null;
  encoder: string | null;
  connectedAt: string | null;
  videoCodec: string | null;
  videoProfile: string | null;
  width: number | null;
  height: number | null;
  declaredFrameRate: number | null;
  frameRate: number | null;
  videoBitrateBps: number | null;
  audioBitrateBps: number | null;
  keyFrameIntervalS: number | null;
  audioCodec: string | null;
  sampleRate: number | null;
  channels: number | null;
  driftMs: number | null;
  lostPackets: number | null;
  retransmittedPackets: number | null;
  roundTripMs: number | null;
  sessions: number;
  conflicts: number;
  stalls: number;
  viewers: number | null;
  recording: string | null;
  trouble: Record<"recording" | "disk" | "database" | "pull", string | null>;
  advice: string[];
}

type Column = (number | null)[];

/** A sample a second; null where nothing came. */
export interface HealthHistory {
  t: number[];
  videoKbps: Column;
  audioKbps: Column;
  fps: Column;
  viewers: Column;
}

export interface Connection {
  id: string;
  protocol: string;
  remoteAddress: string;
  encoder: string | null;
  connectedAt: string;
  disconnectedAt: string | null;
  duration: number;
  reason: string | null;
}

export interface Output {
  id: string;
  url: string;
  enabled: boolean;
  status: "idle" | "connecting" | "live" | "waiting";
  lastError: string | null;
  retries: number;
  lagMs: number;
  sentBytes: number;
  droppedUnits: number;
  since: string | null;
}

export interface Recording {
  id: string;
  status: "recording" | "processing" | "ready" | "failed";
  startedAt: string;
  endedAt: string | null;
  error: string | null;
  stoppedReason: string | null;
  peakViewers?: number | null;
  files: {
    fileId: string | null;
    streamId: string | null;
    filename: string;
    duration: number;
    sizeBytes: number;
    width: number | null;
    height: number | null;
  }[];
}
