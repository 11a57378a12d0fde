/**
 * The delay of a received stream, out of the browser's statistics. Pure.
 *
 * Where the browser says which time of the sender it plays out (`estimatedPlayoutTimestamp`, from sender reports), the delay
 * is the sender's present time minus that: it covers everything from the reception by the service to the screen. The sender's
 * present time is that of its last report, plus the time since it arrived, plus half a round trip. Where the browser does not
 * say it, the delay is the sum of its parts: half a round trip, the jitter buffer and the decoder.
 * Neither covers the encoder and its line to the service.
 */

/** Seconds between the eras of NTP (1900) and Unix (1970) time, in milliseconds. */
const NTP_EPOCH_MS = 2_208_988_800_000;
/** A delay outside of this is an error of a clock. */
const LONGEST_S = 30;

/** The members of `RTCStats` objects that are used here; all are optional in browsers. */
export interface Report {
  type: string;
  kind?: string;
  timestamp: number;
  estimatedPlayoutTimestamp?: number;
  remoteTimestamp?: number;
  jitterBufferDelay?: number;
  jitterBufferEmittedCount?: number;
  totalDecodeTime?: number;
  framesDecoded?: number;
  framesDropped?: number;
  framesPerSecond?: number;
  totalFreezesDuration?: number;
  packetsReceived?: number;
  packetsSent?: number;
  packetsLost?: number;
  bytesReceived?: number;
  bytesSent?: number;
  responsesReceived?: number;
  nominated?: boolean;
  state?: string;
  currentRoundTripTime?: number;
  roundTripTime?: number;
  framesSent?: number;
  framesEncoded?: number;
  frameWidth?: number;
  frameHeight?: number;
  qualityLimitationReason?: string;
}

/** What of the statistics is needed at one time. */
export interface Snapshot {
  video: Report | null;
  audio: Report | null;
  sender: Report | null;
  roundTripS: number;
  /** Count that rises with every packet of the other side, also of those without media; null where browsers do not count them. */
  heard: number | null;
}

export function snapshotOf(reports: Iterable<Report>): Snapshot {
  const found: Snapshot = { video: null, audio: null, sender: null, roundTripS: 0, heard: null };
  for (const report of reports) {
    if (report.type === "inbound-rtp" && report.kind === "video") found.video = report;
    if (report.type === "inbound-rtp" && report.kind === "audio") found.audio = report;
    if (report.type === "remote-outbound-rtp" && (report.kind === "video" || !found.sender))
      found.sender = report;
    if (report.type === "candidate-pair" && report.nominated && report.currentRoundTripTime !== undefined) {
      found.roundTripS = report.currentRoundTripTime;
    }
    const heard = report.type === "transport" ? report.packetsReceived : report.responsesReceived;
    if (heard !== undefined) found.heard = (found.heard ?? 0) + heard;
  }
  return found;
}

/** The delay in seconds; null when the statistics do not say it. `before` is a snapshot of about a second ago. */
export function delayS(now: Snapshot, before: Snapshot | null): number | null {
  const delay = bySenderClock(now) ?? byParts(now, before);
  return delay !== null && delay >= 0 && delay < LONGEST_S ? delay : null;
}

/** The sender's time of what is played out, in Unix milliseconds; null when it is not known. */
export function playoutMs(now: Snapshot): number | null {
  const { estimatedPlayoutTimestamp: at } = now.video ?? now.audio ?? {};
  if (!at) return null;
  return at > NTP_EPOCH_MS ? at - NTP_EPOCH_MS : at;
}

function bySenderClock(now: Snapshot): number | null {
  const played = now.video ?? now.audio;
  const at = playoutMs(now);
  if (!played || at === null || !now.sender?.remoteTimestamp) return null;
  const { remoteTimestamp, timestamp } = now.sender;
  const sender = remoteTimestamp + (played.timestamp - timestamp) + (now.roundTripS * 1000) / 2;
  const delay = (sender - at) / 1000;
  return delay >= 0 && delay < LONGEST_S ? delay : null;
}

function byParts(now: Snapshot, before: Snapshot | null): number | null {
  const played = now.video ?? now.audio;
  const then = now.video ? before?.video : before?.audio;
  const emitted = (played?.jitterBufferEmittedCount ?? 0) - (then?.jitterBufferEmittedCount ?? 0);
  if (!played || emitted <= 0) return null;
  const buffered = ((played.jitterBufferDelay ?? 0) - (then?.jitterBufferDelay ?? 0)) / emitted;
  const decoded = (played.framesDecoded ?? 0) - (then?.framesDecoded ?? 0);
  const decoding = decoded > 0 ? ((played.totalDecodeTime ?? 0) - (then?.totalDecodeTime ?? 0)) / decoded : 0;
  return now.roundTripS / 2 + buffered + decoding;
}
