import assert from "node:assert/strict";
import { test } from "node:test";
import { peakDb, SILENCE_DB } from "./level";

test("levels are peaks in decibels", () => {
  assert.equal(peakDb(new Float32Array(4)), SILENCE_DB);
  assert.equal(peakDb(Float32Array.of(0.1, -1, 0.5)), 0);
  assert.equal(peakDb(Float32Array.of(4)), 0);
  assert.ok(Math.abs(peakDb(Float32Array.of(0.5)) + 6.02) < 0.01);
  assert.equal(peakDb(Float32Array.of(1e-9)), SILENCE_DB);
});
