/**
 * Lets hls.js start from the very first parts of a broadcast. Pure.
 *
 * hls.js 1.7.4 refuses a playlist that has parts but no whole segment yet (`levelEmptyError`, fatal), and loads parts
 * only when the segment before them had some too. So such a playlist is given a segment before its first one, marked
 * as a gap (RFC 8216bis §4.4.4.7) and made of one part that is a gap as well. It is gone again with the first whole
 * segment. That saves one segment of waiting, which is two to six seconds.
 * It needs a first media sequence number of 1 or more: hls.js reads no negative ones.
 */

/** The tags that belong to the segment that follows them; everything above the first of them is the header. */
const SEGMENT_TAG = /^#EXT-X-(PART:|MAP:|PROGRAM-DATE-TIME:|DISCONTINUITY$|KEY:|BITRATE:|DATERANGE:)/m;
const MEDIA_SEQUENCE = /^#EXT-X-MEDIA-SEQUENCE:(\d+)/m;
const PART_TARGET = /^#EXT-X-PART-INF:.*PART-TARGET=([\d.]+)/m;

/** The playlist as it came, unless it is one that needs the leading gap. */
export function withLeadingGap(playlist: string): string {
  const partTarget = PART_TARGET.exec(playlist)?.[1];
  const segmentAt = playlist.search(SEGMENT_TAG);
  const isEarly = playlist.includes("#EXT-X-PART:") && !/^#EXTINF:|^#EXT-X-SKIP:/m.test(playlist);
  const sequence = Number(MEDIA_SEQUENCE.exec(playlist)?.[1] ?? 0);
  if (!isEarly || !partTarget || segmentAt < 0 || sequence < 1) return playlist;

  const header = playlist
    .slice(0, segmentAt)
    .replace(MEDIA_SEQUENCE, `#EXT-X-MEDIA-SEQUENCE:${sequence - 1}`);
  const gap = [
    "#EXT-X-GAP",
    `#EXT-X-PART:DURATION=${partTarget},URI="gap",GAP=YES`,
    `#EXTINF:${partTarget},`,
    "gap",
    "",
  ];
  return header + gap.join("\n") + playlist.slice(segmentAt);
}
