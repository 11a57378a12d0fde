/** Changes to offers, and what the headers of an answer say. Pure. */

/**
 * Adds `stereo=1` to Opus in an offer. Chromium plays stereo only when its own offer asks for it (RFC 7587 §6.1); without
 * it a stereo stream becomes mono.
 */
export function withStereo(sdp: string): string {
  const opus = [...sdp.matchAll(/^a=rtpmap:(\d+) opus\/48000\/2\s*$/gim)].map((match) => match[1]);
  return sdp.replace(/^(a=fmtp:(\d+) )([^\r\n]*)/gm, (line, head: string, type: string, rest: string) =>
    opus.includes(type) && !/(^|;)\s*stereo=/.test(rest) ? `${head}${rest};stereo=1;sprop-stereo=1` : line,
  );
}

/**
 * Asks Chromium, in an answer, to begin to send video at this rate; it would begin at 300 kbit/s, and with a small or stuttering
 * image for the first seconds. Others leave the parameter unread.
 */
export function withStartBitrate(sdp: string, bitsPerSecond: number): string {
  const parameter = `;x-google-start-bitrate=${Math.round(bitsPerSecond / 1000)}`;
  return sdp
    .split(/(?=^m=)/m)
    .map((section) =>
      // A type with `apt` is of retransmissions.
      section.startsWith("m=video ")
        ? section.replace(/^a=fmtp:\d+ (?!apt=)[^\r\n]+/gm, `$&${parameter}`)
        : section,
    )
    .join("");
}

/** Reads the ICE servers of an answer's `Link` header (RFC 9725 §4.6); what is none is left out. */
export function iceServersOf(link: string | null): RTCIceServer[] {
  const servers: RTCIceServer[] = [];
  for (const match of (link ?? "").matchAll(/<([^>]*)>([^<]*)/g)) {
    const [, target = "", rest = ""] = match;
    const parameters = new Map(
      [...rest.matchAll(/;\s*([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]+))/g)].map(
        ([, name = "", quoted, plain = ""]) => [
          name.toLowerCase(),
          quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1"),
        ],
      ),
    );
    if (parameters.get("rel") !== "ice-server" || !/^(stuns?|turns?):/.test(target)) continue;
    const username = parameters.get("username");
    const credential = parameters.get("credential");
    servers.push(
      username === undefined || credential === undefined
        ? { urls: target }
        : { urls: target, username, credential },
    );
  }
  return servers;
}

/** Seconds of a `Retry-After` header, as a number or a date; `otherwise` when it is neither. */
export function retryAfterS(header: string | null, nowMs: number, otherwise: number): number {
  const text = header?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text);
  // Dates only: a browser reads "-3" as one.
  const at = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? otherwise : Math.max(0, (at - nowMs) / 1000);
}
