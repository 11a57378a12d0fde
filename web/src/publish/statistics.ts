/** What a publisher's statistics say: bitrate, round trip, dropped frames. Pure. */
import type { Report } from "../webrtc/delay";

export interface Sent {
  timestampMs: number;
  bytes: number;
  /** Frames that the source gave, and those that were encoded. */
  captured: number;
  encoded: number;
  roundTripS: number | null;
  width: number;
  height: number;
  framesPerSecond: number;
  /** What the browser lowers the quality for: "cpu", "bandwidth", "none". */
  limitedBy: string;
}

type PublisherReport = Report & { frames?: number };

export function sentOf(reports: Iterable<PublisherReport>): Sent {
  const sent: Sent = {
    timestampMs: 0,
    bytes: 0,
    captured: 0,
    encoded: 0,
    roundTripS: null,
    width: 0,
    height: 0,
    framesPerSecond: 0,
    limitedBy: "none",
  };
  for (const report of reports) {
    if (report.type === "outbound-rtp") {
      sent.timestampMs = report.timestamp;
      sent.bytes += report.bytesSent ?? 0;
      if (report.kind === "video") {
        sent.encoded = report.framesEncoded ?? 0;
        sent.width = report.frameWidth ?? 0;
        sent.height = report.frameHeight ?? 0;
        sent.framesPerSecond = report.framesPerSecond ?? 0;
        sent.limitedBy = report.qualityLimitationReason ?? "none";
      }
    }
    if (report.type === "media-source" && report.kind === "video") sent.captured = report.frames ?? 0;
    if (report.type === "candidate-pair" && report.nominated && report.currentRoundTripTime !== undefined) {
      sent.roundTripS = report.currentRoundTripTime;
    }
  }
  return sent;
}

/** Bits a second between two samples; NaN when they are of one time. */
export function bitrateBetween(before: Sent, now: Sent): number {
  return ((now.bytes - before.bytes) * 8000) / (now.timestampMs - before.timestampMs);
}

/** Frames that were captured and not encoded since `first`; null where the browser does not count what it captures. */
export function droppedSince(first: Sent, now: Sent): number | null {
  if (now.captured === 0) return null;
  return Math.max(0, now.captured - first.captured - (now.encoded - first.encoded));
}
