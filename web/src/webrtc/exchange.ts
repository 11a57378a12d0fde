/** Exchange of an offer for an answer over HTTP: WHEP for viewers, WHIP (RFC 9725) for publishers. */
import { iceServersOf, retryAfterS, withStereo } from "./sdp";

/** Time for the answer of the service, which makes it without waiting for the network. */
const ANSWER_WITHIN_MS = 10_000;
/** Wait after a rejection that asks for one and does not say how long. */
const BUSY_S = 5;

/** The service did not answer an offer with a session. */
export class Rejection extends Error {
  /**
   * @param status of the answer; 0 when none came
   * @param code the stable word of the error
   * @param afterS time after which it is worth asking again
   */
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly afterS: number,
  ) {
    super(message);
  }
}

/** A session that the service holds until it is deleted. */
export interface Resource {
  delete(): void;
}

export interface Terms {
  headers?: Record<string, string>;
  signal: AbortSignal;
  /** Changes the answer before the browser reads it. */
  adapt?(answer: string): string;
}

/**
 * Negotiates `pc` with the service. The offer becomes the local description only when the answer is there, because the
 * answer names the ICE servers, and they count for candidates that are gathered later. The service needs no candidates in
 * the offer.
 *
 * Throws a `Rejection` when the service has not made a session.
 */
export async function exchange(
  pc: RTCPeerConnection,
  url: string,
  { headers = {}, signal, adapt = (answer) => answer }: Terms,
): Promise<Resource> {
  const { sdp: offered = "" } = await pc.createOffer();
  const sdp = withStereo(offered);
  const response = await post(url, sdp, headers, signal);
  const answer = await response.text();
  const resource = resourceOf(response, url, headers);
  try {
    signal.throwIfAborted();
    const iceServers = iceServersOf(response.headers.get("link"));
    if (iceServers.length > 0) pc.setConfiguration({ ...pc.getConfiguration(), iceServers });
    // A browser that lets no page change its offer plays mono.
    await pc
      .setLocalDescription({ type: "offer", sdp })
      .catch(() => pc.setLocalDescription({ type: "offer", sdp: offered }));
    await pc.setRemoteDescription({ type: "answer", sdp: adapt(answer) });
    return resource;
  } catch (error) {
    resource.delete();
    throw error;
  }
}

async function post(
  url: string,
  sdp: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Response> {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), ANSWER_WITHIN_MS);
  const stop = () => giveUp.abort();
  signal.addEventListener("abort", stop);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/sdp" },
      body: sdp,
      cache: "no-store",
      signal: giveUp.signal,
    });
    if (response.ok) return response;
    const body: { code?: unknown; error?: unknown } = await response.json().catch(() => ({}));
    throw new Rejection(
      response.status,
      typeof body.code === "string" ? body.code : "",
      typeof body.error === "string" ? body.error : "",
      retryAfterS(response.headers.get("retry-after"), Date.now(), BUSY_S),
    );
  } catch (error) {
    throw error instanceof Rejection ? error : new Rejection(0, "", String(error), BUSY_S);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

function resourceOf(response: Response, url: string, headers: Record<string, string>): Resource {
  const location = response.headers.get("location");
  let isDeleted = location === null;
  return {
    delete() {
      if (isDeleted || location === null) return;
      isDeleted = true;
      // Only the path: the page reaches the service by the host that it posted to, also when the service has another name.
      const base = new URL(url, document.baseURI);
      const { pathname, search } = new URL(location, base);
      // A page that is being left cancels its requests, unless they may outlive it.
      fetch(new URL(pathname + search, base), { method: "DELETE", headers, keepalive: true }).catch(
        () => undefined,
      );
    },
  };
}
