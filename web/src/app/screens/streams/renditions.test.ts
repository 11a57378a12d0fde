import assert from "node:assert/strict";
import { test } from "node:test";
import { renditionsOf } from "./renditions";

test("heights are read with and without bit rates", () => {
  assert.deepEqual(renditionsOf("360, 720p:2500\n1080"), [
    { height: 360 },
    { height: 720, bitrate: 2_500_000 },
    { height: 1080 },
  ]);
});

test("what is no height is not guessed", () => {
  for (const text of ["", " , ", "high", "720:", "-5", "720:1e6"])
    assert.equal(renditionsOf(text), undefined, text);
});
