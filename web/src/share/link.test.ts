import assert from "node:assert/strict";
import { test } from "node:test";
import { type End, endOf, Link } from "./link";

test("a status ends the link or does not", () => {
  const table = [
    { status: 200, end: null },
    { status: 404, end: "gone" },
    { status: 403, end: "locked" },
    { status: 503, end: null },
    { status: null, end: null },
  ] as const;
  for (const { status, end } of table) assert.equal(endOf(status), end, String(status));
});

test("doubts that come together ask once, and an end is reported once", async (context) => {
  const address = "https://pictures.example/sub/share/folder/token";
  Object.assign(globalThis, { location: new URL(`${address}?view=list`) });
  const asked = context.mock.method(globalThis, "fetch", async () => new Response(null, { status: 404 }));
  const ends: End[] = [];
  const link = new Link((end) => ends.push(end));
  await Promise.all([link.doubt(), link.doubt(), link.doubt()]);
  await link.doubt();
  assert.deepEqual(ends, ["gone"]);
  assert.deepEqual(
    asked.mock.calls.map((call) => call.arguments[0]),
    ["https://pictures.example/sub/api/share/folder/token"],
  );
});
