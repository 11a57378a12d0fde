import assert from "node:assert/strict";
import { test } from "node:test";
import { readPages } from "./pages";

test("a list is read to its end, and no further than the bound", async () => {
  const asked: (string | null)[] = [];
  const load = async (cursor: string | null) => {
    asked.push(cursor);
    const page = Number(cursor ?? 0);
    return { items: [page * 2, page * 2 + 1], next: page < 2 ? String(page + 1) : null };
  };
  assert.deepEqual(await readPages(load, 10), { items: [0, 1, 2, 3, 4, 5], hasMore: false });
  assert.deepEqual(asked, [null, "1", "2"]);
  assert.deepEqual(await readPages(load, 2), { items: [0, 1, 2, 3], hasMore: true });
});
