import assert from "node:assert/strict";
import { test } from "node:test";
import { fallbackWords, formatLatency, secondsUntil, transportWords, wordsFor } from "./words";

test("latency", () => {
  const table: [number | null, string][] = [
    [null, ""],
    [Number.NaN, ""],
    [Number.POSITIVE_INFINITY, ""],
    [-0.2, ""],
    [0, "0.0 s"],
    [0.84, "0.8 s"],
    [9.94, "9.9 s"],
    [9.96, "10 s"],
    [12.4, "12 s"],
  ];
  for (const [seconds, expected] of table) assert.equal(formatLatency(seconds), expected, String(seconds));
});

test("the reconnect window is counted by the service's clock", () => {
  const now = Date.parse("2026-11-21T12:00:00Z");
  assert.equal(secondsUntil("2026-11-21T12:00:30Z", now, 0), 30);
  assert.equal(secondsUntil("2026-11-21T12:00:30Z", now, 10_000), 20);
  assert.equal(secondsUntil("2026-11-21T11:59:00Z", now, 0), 0);
  for (const nothing of [null, undefined, "", "soon"]) assert.equal(secondsUntil(nothing, now, 0), null);
});

test("the reconnecting words name the time only when it is known", () => {
  assert.equal(wordsFor("reconnecting", 41.2).detail, "Waiting for it to come back (up to 42 s).");
  assert.equal(wordsFor("reconnecting", 0).detail, "Waiting for it to come back (up to 1 s).");
  assert.equal(wordsFor("reconnecting", null).detail, "Waiting for it to come back.");
});

test("the transport is named with its delay, when that is known", () => {
  assert.equal(transportWords("webrtc", true, 0.08), "WebRTC · 0.1 s behind");
  assert.equal(transportWords("webrtc", true, 0.02), "WebRTC · <0.1 s behind");
  assert.equal(transportWords("hls", true, 2.12), "Low-latency HLS · 2.1 s behind");
  assert.equal(transportWords("hls", false, 14), "HLS · 14 s behind");
  assert.equal(transportWords("webrtc", true, null), "WebRTC");
  assert.equal(transportWords(null, true, 1), "");
});

test("a change to HLS has a reason, unless the viewer cannot have noticed it", () => {
  for (const why of ["slow", "late", "busy", "closed", "failed", "off-air"] as const) {
    assert.match(fallbackWords(why), /WebRTC.*more delay\.$/, why);
  }
  for (const why of ["unsuitable", null] as const) assert.equal(fallbackWords(why), "");
});
