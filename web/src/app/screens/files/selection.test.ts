import assert from "node:assert/strict";
import { test } from "node:test";
import { anchoredAt, MOST_CHOSEN, NONE, toggled, withAll, without, withRange } from "./selection";
import type { FileRecord } from "./types";

const file = (n: number) => ({ id: `f${n}`, size_bytes: n }) as FileRecord;
const ids = (selection: typeof NONE) => [...selection.files.keys()].join();

test("a range grows and shrinks, and keeps what was chosen before", () => {
  let selection = toggled(NONE, file(9), 9);
  selection = toggled(selection, file(2), 2);
  selection = withRange(selection, [file(2), file(3), file(4)]);
  assert.equal(ids(selection), "f9,f2,f3,f4");
  selection = withRange(selection, [file(2), file(3)]);
  assert.equal(ids(selection), "f9,f2,f3");
});

test("choosing again takes away, and moving begins another range", () => {
  let selection = toggled(toggled(NONE, file(1), 1), file(1), 1);
  assert.equal(ids(selection), "");
  selection = anchoredAt(toggled(selection, file(5), 5), 7);
  selection = withRange(selection, [file(7), file(8)]);
  assert.equal(ids(selection), "f5,f7,f8");
  assert.equal(ids(without(selection, ["f7", "unknown"])), "f5,f8");
});

test("no more are chosen than the bound", () => {
  const many = Array.from({ length: MOST_CHOSEN + 5 }, (_, n) => file(n));
  assert.equal(withAll(many).files.size, MOST_CHOSEN);
  assert.equal(withRange(NONE, many).files.size, MOST_CHOSEN);
});
