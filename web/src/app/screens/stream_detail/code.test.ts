import assert from "node:assert/strict";
import { test } from "node:test";
import { addressesOf } from "./code";

const stream = { playbackId: "pb_1", access: "public", title: "A film" } as const;

test("a public stream is reached by its playback id, a signed one by a token", () => {
  assert.equal(addressesOf(stream, "https://m.example").page, "https://m.example/video/pb_1");
  assert.equal(
    addressesOf({ ...stream, access: "signed" }, "https://m.example").hls,
    "https://m.example/video/v1/TOKEN/master.m3u8",
  );
});

test("a title cannot leave its attribute", () => {
  const { iframe } = addressesOf({ ...stream, title: `"><script>x&"` }, "https://m.example");
  assert.ok(iframe.includes('title="&quot;&gt;&lt;script&gt;x&amp;&quot;"'));
});
