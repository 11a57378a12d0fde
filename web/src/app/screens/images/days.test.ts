import assert from "node:assert/strict";
import { test } from "node:test";
import { everyDay } from "./days";

test("days without deliveries are zeros, the oldest is first", () => {
  const days = [
    { date: "2026-11-25", hits: 5, misses: 1, bytes: 60 },
    { date: "2026-11-23", hits: 2, misses: 0, bytes: 20 },
    { date: "2026-10-01", hits: 9, misses: 9, bytes: 9 },
  ];
  const shown = everyDay(days, 4, new Date("2026-11-25T23:59:00Z"));
  assert.deepEqual(
    shown.map(({ at, hits, bytes }) => [new Date(at * 1_000).toISOString().slice(0, 10), hits, bytes]),
    [
      ["2026-11-22", 0, 0],
      ["2026-11-23", 2, 20],
      ["2026-11-24", 0, 0],
      ["2026-11-25", 5, 60],
    ],
  );
});
