import assert from "node:assert/strict";
import { test } from "node:test";
import { parsed, printOf } from "./remembered";

const file = { name: "a.jpg", size: 7, lastModified: 1 };

test("prints differ by whose, where, and what", () => {
  const prints = [
    printOf("account", "folder", file),
    printOf("other", "folder", file),
    printOf("account", "other", file),
    printOf("account", "folder", { ...file, size: 8 }),
    printOf("account", "folder", { ...file, name: "b.jpg" }),
    printOf("account", "folder", { ...file, lastModified: 2 }),
  ];
  assert.equal(new Set(prints).size, prints.length);
  assert.equal(printOf("account", "folder", { ...file }), prints[0]);
  assert.match(prints[0] ?? "", /^[0-9a-z]{14}$/);
});

test("what is old or damaged is not remembered", () => {
  const now = 1_000_000_000_000;
  assert.deepEqual(parsed("p", `u-1 ${now - 5} open`, now), {
    print: "p",
    id: "u-1",
    at: now - 5,
    isDone: false,
  });
  assert.equal(parsed("p", `u-1 ${now - 25 * 3_600_000} done`, now), null);
  assert.equal(parsed("p", "", now), null);
  assert.equal(parsed("p", "<script> 1 open", now), null);
  assert.equal(parsed("p", "u-1 yesterday open", now), null);
});
