import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAgo, formatBits, formatBytes, formatDuration } from "./format";

test("bytes have three digits at most and the unit that fits", () => {
  const cases: [number, string][] = [
    [0, "0 B"],
    [-1, "0 B"],
    [999, "999 B"],
    [1_000, "1 kB"],
    [999_999, "1 MB"],
    [3_140_000, "3.1 MB"],
    [10_000_000_000, "10 GB"],
    [2e18, "2,000 PB"],
  ];
  for (const [bytes, text] of cases) assert.equal(formatBytes(bytes), text);
});

test("rates are in bits of a second", () => {
  assert.equal(formatBits(160_400), "160 kbit/s");
  assert.equal(formatBits(6_120_000), "6.1 Mbit/s");
});

test("durations read as a clock, and as days when they are long", () => {
  const cases: [number, string][] = [
    [-5, "0:00"],
    [14_900, "0:14"],
    [4_329_000, "1:12:09"],
    [273_600_000, "3 d 4 h"],
  ];
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text);
});

test("times are relative for a week", () => {
  const now = Date.UTC(2026, 10, 25, 12);
  assert.equal(formatAgo(new Date(now - 2_000), now), "just now");
  assert.equal(formatAgo(new Date(now - 300_000), now), "5 min. ago");
  assert.equal(formatAgo(new Date(now + 7_200_000), now), "in 2 hr.");
  assert.match(formatAgo(new Date(now - 30 * 86_400_000), now), /2026/);
});
