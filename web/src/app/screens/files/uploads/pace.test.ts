import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace } from "./pace";

test("the time left follows the last ten seconds", () => {
  const pace = new Pace();
  assert.equal(pace.left(100), null);
  for (let s = 0; s <= 20; s++) pace.note(s < 10 ? s : 10 + (s - 10) * 100, s * 1_000);
  assert.equal(Math.round(pace.left(1_000) ?? 0), 10_000);
});

test("without progress nothing is said", () => {
  const pace = new Pace();
  pace.note(5, 0);
  pace.note(5, 9_000);
  assert.equal(pace.left(100), null);
});
