import assert from "node:assert/strict";
import { test } from "node:test";
import { BITRATES, preferred, RESOLUTIONS, USUAL, videoConstraints } from "./quality";

test("the usual choice is 720p with 30 frames at 2.5 Mbit/s, and every resolution's bitrate can be chosen", () => {
  const usual = RESOLUTIONS[USUAL];
  assert.deepEqual([usual?.height, usual?.framesPerSecond, usual?.bitrate], [720, 30, 2_500_000]);
  for (const { name, bitrate } of RESOLUTIONS) assert.ok(BITRATES.includes(bitrate), name);
});

test("H.264 comes first, with packets of every size before single ones, and the rest in its order", () => {
  const codecs = [
    { mimeType: "video/VP8" },
    { mimeType: "video/rtx" },
    { mimeType: "video/H264", sdpFmtpLine: "packetization-mode=0" },
    { mimeType: "video/AV1" },
    { mimeType: "video/H264", sdpFmtpLine: "level-asymmetry-allowed=1;packetization-mode=1" },
  ];
  assert.deepEqual(
    preferred(codecs).map((codec) => codecs.indexOf(codec)),
    [4, 2, 0, 1, 3],
  );
});

test("a chosen camera is asked for by its id, and a screen is made smaller", () => {
  const [first] = RESOLUTIONS;
  assert.ok(first);
  assert.deepEqual(videoConstraints(first, "camera", "x").deviceId, { exact: "x" });
  assert.equal(videoConstraints(first, "camera", "").deviceId, undefined);
  assert.deepEqual(videoConstraints(first, "screen", "x").width, { max: 1920 });
  assert.equal(videoConstraints(first, "screen", "x").deviceId, undefined);
});
