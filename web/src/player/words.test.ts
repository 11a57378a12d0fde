import assert from "node:assert/strict";
import { test } from "node:test";
import { formatLatency, secondsUntil, wordsFor } from "./words";

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
