import assert from "node:assert/strict";
import { test } from "node:test";
import { withLeadingGap } from "./early_playlist";

const header = `#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:4
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.603
#EXT-X-PART-INF:PART-TARGET=0.201
#EXT-X-MEDIA-SEQUENCE:7
`;
const firstParts = `#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="b/init0.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T12:00:00.000Z
#EXT-X-PART:DURATION=0.2,URI="b/7.0.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="b/7.1.m4s"
`;

test("a playlist of parts alone opens with a gap of one gap part", () => {
  const gap = `#EXT-X-GAP
#EXT-X-PART:DURATION=0.201,URI="gap",GAP=YES
#EXTINF:0.201,
gap
`;
  assert.equal(withLeadingGap(header + firstParts), header.replace(":7\n", ":6\n") + gap + firstParts);
});

test("every other playlist stays as it came", () => {
  const whole = `${header}${firstParts.replace("#EXT-X-PRELOAD", "#EXTINF:2.0,\nb/7.m4s\n#EXT-X-PRELOAD")}`;
  const delta = `${header}#EXT-X-SKIP:SKIPPED-SEGMENTS=9\n${firstParts}`;
  const withoutTarget = (header + firstParts).replace(/#EXT-X-PART-INF.*\n/, "");
  const numberedFromZero = (header + firstParts).replace("SEQUENCE:7", "SEQUENCE:0");
  const multivariant = '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.42c01e"\nmedia.m3u8\n';
  for (const playlist of [
    "",
    "not a playlist",
    header,
    whole,
    delta,
    withoutTarget,
    numberedFromZero,
    multivariant,
  ]) {
    assert.equal(withLeadingGap(playlist), playlist);
  }
});
