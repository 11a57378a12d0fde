/** The words for each stage: plain language, no codes. Pure. */
import type { Stage } from "./stage";
import type { Ending, Transport } from "./transport";

export interface Words {
  /** The one sentence of the stage; also what a screen reader announces. */
  title: string;
  /** The next step of the service or of the viewer. Empty when there is nothing to add. */
  detail: string;
}

/** The words in place of the video when the stream has none. */
export const AUDIO_ONLY: Words = { title: "Audio only", detail: "This stream has no video." };

/** @param secondsLeft time for which the service still waits for the encoder; null when it is not known */
export function wordsFor(stage: Stage, secondsLeft: number | null): Words {
  switch (stage) {
    case "connecting":
      return { title: "Connecting", detail: "" };
    case "waiting":
      return { title: "Waiting for the stream to start", detail: "This page will play by itself." };
    case "starting":
      return { title: "Starting", detail: "" };
    case "live":
      return { title: "Live", detail: "" };
    case "stalled":
      return { title: "Waiting for data", detail: "Playback continues as soon as enough has arrived." };
    case "reconnecting":
      return {
        title: "The encoder lost its connection",
        detail: `Waiting for it to come back${upTo(secondsLeft)}.`,
      };
    case "ended":
      return { title: "The stream has ended", detail: "This page will play by itself when it starts again." };
    case "unreachable":
      return { title: "The service is restarting", detail: "Trying again." };
    case "unknown":
      return {
        title: "Unknown stream",
        detail: "Nothing is published at this address. Please check the link.",
      };
    case "forbidden":
      return {
        title: "This link does not open the stream",
        detail: "It has expired, or it is meant for another site.",
      };
    case "unsupported":
      return {
        title: "This browser cannot play the stream",
        detail: "Please try a current Chrome, Edge, Firefox or Safari.",
      };
  }
}

function upTo(secondsLeft: number | null): string {
  return secondsLeft === null ? "" : ` (up to ${Math.max(1, Math.ceil(secondsLeft))} s)`;
}

/** A latency as the badge shows it: tenths below ten seconds, whole seconds above; empty when it is not known. */
export function formatLatency(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds) || seconds < 0) return "";
  return seconds < 9.95 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}

/** The transport in use and how far behind live it is: "WebRTC · 0.1 s behind". */
export function transportWords(
  transport: Transport | null,
  isLowLatency: boolean,
  latency: number | null,
): string {
  if (transport === null) return "";
  const name = transport === "webrtc" ? "WebRTC" : isLowLatency ? "Low-latency HLS" : "HLS";
  const isTiny = latency !== null && latency >= 0 && latency < 0.05;
  const seconds = isTiny ? "<0.1 s" : formatLatency(latency);
  return seconds === "" ? name : `${name} · ${seconds} behind`;
}

/** The sentence on a change from WebRTC to HLS; empty when the viewer need not know the reason. */
export function fallbackWords(why: Ending["why"] | null): string {
  switch (why) {
    case "slow":
      return "Your connection is too slow for WebRTC. Playing with more delay.";
    case "late":
      return "WebRTC is blocked on this network. Playing with more delay.";
    case "busy":
      return "All places for WebRTC are taken. Playing with more delay.";
    case "closed":
    case "failed":
    case "off-air":
      return "WebRTC is not available now. Playing with more delay.";
    case "unsuitable":
    case null:
      return "";
  }
}

/**
 * Seconds from now until `until`.
 *
 * @param clockOffsetMs the service's clock minus this machine's
 */
export function secondsUntil(
  until: string | null | undefined,
  nowMs: number,
  clockOffsetMs: number,
): number | null {
  const untilMs = until ? Date.parse(until) : Number.NaN;
  return Number.isNaN(untilMs) ? null : Math.max(0, (untilMs - nowMs - clockOffsetMs) / 1000);
}
