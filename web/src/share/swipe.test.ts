import assert from "node:assert/strict";
import { test } from "node:test";
import { swipeOf } from "./swipe";

test("a finger's way is a swipe when it is long and straight", () => {
  const table = [
    { way: [-120, 10], swipe: "next" },
    { way: [120, -10], swipe: "previous" },
    { way: [47, 0], swipe: null },
    { way: [60, 60], swipe: null },
    { way: [10, 140], swipe: "close" },
    { way: [10, 60], swipe: null },
    { way: [0, -200], swipe: null },
    { way: [0, 0], swipe: null },
  ] as const;
  for (const { way, swipe } of table) assert.equal(swipeOf(way[0], way[1]), swipe, String(way));
});
