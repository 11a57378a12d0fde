/** Turns the service's answer for the manifest into a stage and words for the viewer. Pure. */

export type Stage = "connecting" | "waiting" | "ready" | "forbidden" | "unknown" | "unreachable";

export interface Verdict {
  stage: Stage;
  title: string;
  detail: string;
  /** Seconds until it is worth asking again; null: never. */
  againAfterS: number | null;
}

const WAITING_S = 2;

/**
 * @param status of the answer; 0 when none came
 * @param code the stable word of an error, where it has one
 * @param retryAfter the header, in seconds
 */
export function verdictOf(status: number, code: string | undefined, retryAfter: string | null): Verdict {
  if (status === 200) return { stage: "ready", title: "", detail: "", againAfterS: null };
  if (status === 404 && code === "not_ready") {
    return {
      stage: "waiting",
      title: "The video is still being prepared",
      detail: "This page will show it by itself.",
      againAfterS: Number(retryAfter) || WAITING_S,
    };
  }
  if (status === 404) {
    return {
      stage: "unknown",
      title: "Unknown video",
      detail: "Nothing is published at this address. Please check the link.",
      againAfterS: null,
    };
  }
  if (status === 403) {
    return {
      stage: "forbidden",
      title: titleOfRejection(code),
      detail: "Please ask for a new link.",
      againAfterS: null,
    };
  }
  return {
    stage: "unreachable",
    title: "The service cannot be reached",
    detail: "Trying again.",
    againAfterS: WAITING_S,
  };
}

function titleOfRejection(code: string | undefined): string {
  switch (code) {
    case "playback_token_expired":
      return "This link has expired";
    case "playback_token_required":
    case "playback_token_invalid":
      return "This video needs a link of its own";
    default:
      return "This video may not be shown here";
  }
}
