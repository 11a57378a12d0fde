/**
 * The stage of the page as one word. Pure: a function of all that the page knows (`Facts`); the words that a viewer
 * reads and the controls that are enabled follow from the stage.
 */

/** The state of a live input, as `GET /live/v1/{playbackId}/state` answers. */
export interface Reply {
  state: "idle" | "starting" | "live" | "reconnecting" | "ended";
  version: string;
  /** End of the time for which the service keeps the broadcast open for the encoder, ISO 8601. */
  reconnectUntil?: string | null;
  latency?: "low" | "standard";
  /** The broadcast on air, when the service names it. */
  broadcast?: string | null;
}

/** Status of the requests for the state. */
export type Feed = "connecting" | "following" | "failing" | "unknown" | "forbidden";

export type Stage =
  | "connecting"
  | "waiting"
  | "starting"
  | "live"
  | "stalled"
  | "reconnecting"
  | "ended"
  | "unreachable"
  | "unknown"
  | "forbidden"
  | "unsupported";

export interface Facts {
  feed: Feed;
  /** The last answer of the service, kept while the feed fails. */
  reply: Reply | null;
  /** The browser can play HLS in one way or the other. */
  supported: boolean;
  /** Playback advanced within the last second. */
  advancing: boolean;
  /** Playback has advanced since the current source was attached. */
  hasPlayed: boolean;
  /** The viewer pressed pause. */
  paused: boolean;
  /** Media that arrived before the end is still to be played. */
  draining: boolean;
}

export function stageOf(facts: Facts): Stage {
  if (!facts.supported) return "unsupported";
  switch (facts.feed) {
    case "unknown":
      return "unknown";
    case "forbidden":
      return "forbidden";
    case "failing":
      return "unreachable";
    default:
      return facts.reply ? stageOfReply(facts.reply, facts) : "connecting";
  }
}

function stageOfReply(reply: Reply, facts: Facts): Stage {
  switch (reply.state) {
    case "idle":
      return "waiting";
    case "starting":
      return "starting";
    case "reconnecting":
      return "reconnecting";
    case "ended":
      return facts.draining ? "live" : "ended";
    case "live":
      if (facts.advancing || (facts.paused && facts.hasPlayed)) return "live";
      return facts.hasPlayed ? "stalled" : "starting";
  }
}

/** Returns true for the states in which the playlist answers, so that at least the last frame can be shown. */
export function isPlayable(reply: Reply): boolean {
  return reply.state === "live" || reply.state === "reconnecting";
}

/**
 * Returns whether `next` belongs to another broadcast than `previous`, so that the source must be loaded again. Between
 * two broadcasts the input is always idle, ended or starting; a page that was offline meanwhile compares the ids.
 */
export function isNewBroadcast(previous: Reply | null, next: Reply): boolean {
  if (previous === null || !isPlayable(next)) return false;
  const isRenamed = Boolean(previous.broadcast && next.broadcast && previous.broadcast !== next.broadcast);
  return isRenamed || !isPlayable(previous);
}

/** Reads an answer of the service; null when it is not one (a proxy's page, say). */
export function parseReply(body: unknown): Reply | null {
  if (typeof body !== "object" || body === null) return null;
  const { state, version, reconnectUntil, latency, broadcast } = body as Record<string, unknown>;
  if (typeof version !== "string") return null;
  switch (state) {
    case "idle":
    case "starting":
    case "live":
    case "reconnecting":
    case "ended":
      return {
        state,
        version,
        reconnectUntil: typeof reconnectUntil === "string" ? reconnectUntil : null,
        latency: latency === "standard" ? "standard" : "low",
        broadcast: typeof broadcast === "string" ? broadcast : null,
      };
    default:
      return null;
  }
}
