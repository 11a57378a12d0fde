import assert from "node:assert/strict";
import { test } from "node:test";
import { isWorthAnotherTry } from "./broadcast";

test("what a moment may change is tried again", () => {
  const table: [number, number, boolean][] = [
    [0, 600_000, true],
    [429, 600_000, true],
    [502, 600_000, true],
    [503, 600_000, true],
    // The lost session itself
    [409, 5_000, true],
    [409, 40_000, false],
    [401, 0, false],
    [403, 0, false],
    [404, 0, false],
    [422, 0, false],
  ];
  for (const [status, lostForMs, expected] of table) {
    assert.equal(isWorthAnotherTry(status, lostForMs), expected, `${status} after ${lostForMs} ms`);
  }
});
