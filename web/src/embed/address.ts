/** The address of a stream as a page embeds it. Pure. */

/**
 * Returns the base of a stream's public addresses, `https://host/live/v1/{playbackId or token}`: of that address, of the
 * watch page's, of the playlist's or the WHEP address. Null when it is none of them.
 *
 * @param token takes the place of the playback id
 */
export function streamBase(src: string, token: string, documentUrl: string): string | null {
  let url: URL;
  try {
    url = new URL(src, documentUrl);
  } catch {
    return null;
  }
  const match = /^(.*\/live)\/(?:v1\/)?(?!v1\/?$)([^/]+)(?:\/(?:index\.m3u8|whep|state))?\/?$/.exec(
    url.pathname,
  );
  if (!match || !/^https?:$/.test(url.protocol)) return null;
  const [, before = "", name = ""] = match;
  return `${url.origin}${before}/v1/${token === "" ? name : encodeURIComponent(token)}`;
}
