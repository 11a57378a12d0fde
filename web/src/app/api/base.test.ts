import assert from "node:assert/strict";
import { test } from "node:test";
import { onThisOrigin } from "./base";

test("an address of an answer keeps its path and query, not its host", () => {
  const url = "https://media.example/api/files/1/preview?w=640&v=a%20b";
  assert.equal(onThisOrigin(url), "/api/files/1/preview?w=640&v=a%20b");
  assert.equal(onThisOrigin("/api/files/1"), "/api/files/1");
  assert.equal(onThisOrigin("https://media.example/a?w=640&v=7", { w: "320" }), "/a?w=320&v=7");
});
