import assert from "node:assert/strict";
import { test } from "node:test";
import { addressesOf, baseOf } from "./code";

const stream = { playbackId: "pb_1", access: "public", title: "A film" } as const;

test("a public stream is reached by its playback id, a signed one by a token", () => {
  assert.equal(addressesOf(stream, "https://m.example").page, "https://m.example/video/pb_1");
  assert.equal(
    addressesOf({ ...stream, access: "signed" }, "https://m.example").hls,
    "https://m.example/video/v1/TOKEN/master.m3u8",
  );
});

test("addresses begin as others reach the service", () => {
  for (const [url, base] of [
    ["https://media.example/video/v1/pb_1/master.m3u8", "https://media.example"],
    ["https://media.example/below/video/v1/pb_1/master.m3u8", "https://media.example/below"],
    ["https://here.example/video/v1/pb_1/master.m3u8", "https://here.example/sluice"],
    ["https://here.example/sluice/video/v1/pb_1/master.m3u8", "https://here.example/sluice"],
    [null, "https://here.example/sluice"],
  ] as const)
    assert.equal(baseOf(url, "https://here.example", "/sluice"), base);
  assert.equal(
    addressesOf(stream, "https://a.example/b").poster,
    "https://a.example/b/video/v1/pb_1/poster.jpg",
  );
});

test("a title cannot leave its attribute", () => {
  const { iframe } = addressesOf({ ...stream, title: `"><script>x&"` }, "https://m.example");
  assert.ok(iframe.includes('title="&quot;&gt;&lt;script&gt;x&amp;&quot;"'));
});
