/** The words of the publish page: states, rejections of the service, errors of cameras and microphones. Pure. */

export type Stage =
  /** Nothing is captured, or it is only previewed. */
  "setup" | "connecting" | "live" | "reconnecting";

export type SourceKind = "camera" | "screen";

export interface Problem {
  title: string;
  detail: string;
}

/** @param liveS time since the broadcast of this page began, in seconds */
export function badgeWords(stage: Stage, liveS: number): string {
  switch (stage) {
    case "setup":
      return "Not live";
    case "connecting":
      return "Connecting";
    case "live":
      return `Live · ${formatClock(liveS)}`;
    case "reconnecting":
      return "Reconnecting";
  }
}

/** What a screen reader says when the stage changes. */
export function announcementOf(stage: Stage, before: Stage): string {
  switch (stage) {
    case "setup":
      return before === "setup" ? "" : "You are not live.";
    case "connecting":
      return "Connecting.";
    case "live":
      return "You are live.";
    case "reconnecting":
      return "The connection is lost. Trying again.";
  }
}

/** Words of a rejected offer. @param message of the service, in place of words that this page does not have */
export function rejectionWords(status: number, code: string, message: string): Problem {
  switch (status) {
    case 0:
      return {
        title: "The service cannot be reached",
        detail: "Check your connection, and whether the service runs.",
      };
    case 401:
      return {
        title: "The stream key is wrong",
        detail:
          "Copy it again from the input’s page in the dashboard, Connect. A new key replaces the one before.",
      };
    case 403:
      return {
        title: "This input is disabled",
        detail: "Turn on “Accepts encoders” in the input’s settings in the dashboard.",
      };
    case 409:
      return {
        title: "Another encoder publishes to this input",
        detail: "End its stream first, in that program or in the dashboard.",
      };
    case 422:
      return {
        title: "The service cannot take what this browser sends",
        detail:
          message ||
          "Video must be H.264, H.265 or AV1, and audio Opus. Try a current Chrome, Edge or Safari.",
      };
    case 404:
      return code === "webrtc_off"
        ? {
            title: "WebRTC is turned off on this installation",
            detail: "Publish with OBS or ffmpeg instead.",
          }
        : { title: "Unknown input", detail: "Open this page again from the input’s page in the dashboard." };
    case 429:
    case 503:
      return { title: "The service is busy", detail: message || "Try again in a moment." };
    default:
      return {
        title: "The service did not accept the stream",
        detail: message || `It answered with status ${status}.`,
      };
  }
}

export const UNREACHABLE: Problem = {
  title: "No packet reached the service",
  detail:
    "A firewall is in the way, or the service does not know its own address: UDP and TCP port 8189 have to be open, see webrtc.public_addresses in the guide.",
};

export const CLOSED: Problem = {
  title: "The service has ended this stream",
  detail: "Another encoder took over, or the stream was ended in the dashboard.",
};

export const NO_WEBRTC: Problem = {
  title: "This browser cannot send video here",
  detail: "It has no WebRTC. Try a current Chrome, Edge, Firefox or Safari.",
};

/** Words of an error of `getUserMedia` or `getDisplayMedia`; null when the user cancelled a choice. */
export function captureWords(name: string, source: SourceKind): Problem | null {
  const what = source === "camera" ? "camera or microphone" : "screen";
  switch (name) {
    case "NotAllowedError":
    case "SecurityError":
      // A closed window of choice looks the same as a permission that was denied.
      if (source === "screen") return null;
      return {
        title: "The browser does not allow the camera or the microphone",
        detail:
          "Allow both beside the address of this page, and try again. The system’s settings may forbid them too.",
      };
    case "NotFoundError":
    case "DevicesNotFoundError":
      return {
        title: `No ${what} was found`,
        detail: "Connect one, choose another source, or choose “No microphone”.",
      };
    case "NotReadableError":
    case "TrackStartError":
      return {
        title: `The ${what} cannot be opened`,
        detail: "Another program may be using it. Close that program and try again.",
      };
    case "OverconstrainedError":
      return { title: `The ${what} cannot do that`, detail: "Choose another device or a lower resolution." };
    default:
      return { title: `The ${what} cannot be opened`, detail: `The browser says: ${name}.` };
  }
}

/** Minutes and seconds, with hours when there are any. */
export function formatClock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const pad = (value: number) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${pad(minutes)}:${pad(whole % 60)}`;
}

export function formatBitrate(bitsPerSecond: number): string {
  if (!(bitsPerSecond >= 0)) return "–";
  return bitsPerSecond >= 999_500
    ? `${(bitsPerSecond / 1e6).toFixed(1)} Mbit/s`
    : `${Math.round(bitsPerSecond / 1000)} kbit/s`;
}
