import assert from "node:assert/strict";
import { test } from "node:test";
import { type Move, nextMove, type Observation } from "./pursuit";

const playing: Observation = {
  nowMs: 100_000,
  live: true,
  paused: false,
  following: true,
  position: 50,
  advancedAtMs: 100_000,
  bufferedAtMs: 99_900,
  movedAtMs: 0,
  nextRangeStart: null,
  edge: 50.6,
};

const none: Move = { kind: "none" };

test("the player is helped when, and only when, it needs it", () => {
  const table: [string, Partial<Observation>, Move][] = [
    ["all is well", {}, none],
    ["ten seconds behind", { edge: 60 }, none],
    ["further behind", { edge: 60.1 }, { kind: "seek", to: 60.1 }],
    ["behind on purpose", { edge: 68, following: false }, none],
    ["paused", { edge: 90, paused: true, advancedAtMs: 0, bufferedAtMs: 0 }, none],
    ["jumped a moment ago", { edge: 70, movedAtMs: 98_000 }, none],
    ["a hole, still short", { advancedAtMs: 99_000, nextRangeStart: 52 }, none],
    ["a hole", { advancedAtMs: 98_000, nextRangeStart: 52 }, { kind: "seek", to: 52 }],
    [
      "a hole before the encoder is back",
      { live: false, advancedAtMs: 98_000, nextRangeStart: 52 },
      { kind: "seek", to: 52 },
    ],
    ["standing still, the edge further on", { advancedAtMs: 95_000, edge: 51 }, { kind: "seek", to: 51 }],
    ["standing still at the edge", { advancedAtMs: 95_000, edge: 50.2 }, none],
    ["silent source", { advancedAtMs: 91_000, bufferedAtMs: 91_000 }, { kind: "reattach" }],
    ["slow line: media arrives", { advancedAtMs: 91_000, bufferedAtMs: 99_000, edge: 50.2 }, none],
    [
      "waiting for the encoder",
      { live: false, advancedAtMs: 60_000, bufferedAtMs: 60_000, edge: null },
      none,
    ],
  ];
  for (const [name, change, expected] of table) {
    assert.deepEqual(nextMove({ ...playing, ...change }), expected, name);
  }
});
