import assert from "node:assert/strict";
import { test } from "node:test";
import { LONGEST_BOX_PX, PageCache, scrollTo, windowOf } from "./windowing";

const ROW = 40;
const VIEW = 600;

test("rows in view are drawn with a margin, at their places", () => {
  const shown = windowOf(100_000, ROW, VIEW, 4_000);
  assert.equal(shown.box, 4_000_000);
  assert.deepEqual([shown.first, shown.end], [96, 119]);
  assert.equal(shown.top(100), 4_000);
});

test("nothing and little are drawn without holes", () => {
  assert.deepEqual({ ...windowOf(0, ROW, VIEW, 0), top: null }, { box: 0, first: 0, end: 0, top: null });
  const few = windowOf(3, ROW, VIEW, 500);
  assert.deepEqual([few.first, few.end, few.top(2)], [0, 3, 80]);
});

test("above the longest box every row can still be reached, at its place on the screen", () => {
  const rows = 1_000_000;
  for (const share of [0, 0.001, 0.25, 0.5, 0.9999, 1]) {
    const scrolled = share * (LONGEST_BOX_PX - VIEW);
    const shown = windowOf(rows, ROW, VIEW, scrolled);
    assert.equal(shown.box, LONGEST_BOX_PX);
    assert.ok(shown.top(shown.first) <= scrolled || shown.first === 0);
    assert.ok(shown.top(shown.end - 1) + ROW >= scrolled + VIEW - 0.001);
    assert.ok(shown.end - shown.first <= VIEW / ROW + 10);
  }
  const last = windowOf(rows, ROW, VIEW, LONGEST_BOX_PX);
  assert.equal(last.end, rows);
  assert.ok(Math.abs(last.top(rows - 1) + ROW - LONGEST_BOX_PX) < 0.01);
});

test("going to a row shows it wholly and moves no further than needed", () => {
  for (const rows of [1_000, 1_000_000]) {
    for (const index of [0, 1, 499, rows - 1]) {
      const position = scrollTo(index, rows, ROW, VIEW, 10_000);
      const top = windowOf(rows, ROW, VIEW, position).top(index);
      assert.ok(top >= position - 0.01 && top + ROW <= position + VIEW + 0.01, `row ${index} of ${rows}`);
    }
  }
  assert.equal(scrollTo(260, 1_000, ROW, VIEW, 10_000), 10_000);
  assert.equal(scrollTo(5, 10, ROW, VIEW, 0), 0);
});

test("the cache keeps the pages that were used last", () => {
  const cache = new PageCache<number>(10);
  assert.deepEqual(cache.wanted(5, 25), [0, 1, 2]);
  for (let page = 0; page < 40; page++) cache.put(page, [page * 10]);
  assert.deepEqual(cache.wanted(0, 10), []);
  cache.put(40, [400]);
  assert.equal(cache.size, 40);
  assert.equal(cache.at(0), 0);
  assert.equal(cache.at(10), undefined);
});

test("stale pages are shown and asked for again", () => {
  const cache = new PageCache<string>(2);
  cache.put(0, ["a", "b"]);
  cache.invalidate();
  assert.equal(cache.at(1), "b");
  assert.deepEqual(cache.wanted(0, 2), [0]);
  cache.put(0, ["a", "c"]);
  assert.deepEqual(cache.wanted(0, 2), []);
});
