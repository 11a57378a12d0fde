/** Video streams as the API writes them, as far as both screens read them. */
export interface Rendition {
  id: string;
  width: number | null;
  height: number | null;
  bitrate: number;
  averageBitrate: number | null;
  codec: string | null;
  audioCodec: string | null;
  segmentCount: number;
}

export interface Caption {
  language: string;
  label: string;
  isDefault: boolean;
  url: string;
}

export interface Stream {
  id: string;
  playbackId: string;
  title: string;
  status: "pending" | "processing" | "ready" | "failed";
  progress: number;
  queuePlace: number | null;
  playable: boolean;
  error: string | null;
  errorCode: string | null;
  profile: string;
  segmentDuration: number;
  access: "public" | "signed";
  allowedDomains: string[];
  tokenTtlSeconds: number | null;
  captions: Caption[];
  renditions: Rendition[];
  duration: number | null;
  width: number | null;
  height: number | null;
  manifestUrl: string | null;
  posterUrl: string | null;
  sourceFileId: string | null;
  createdAt: string;
  readyAt: string | null;
}

export interface StreamList {
  streams: Stream[];
  nextCursor: string | null;
}

export interface StreamAnswer {
  stream: Stream;
}
