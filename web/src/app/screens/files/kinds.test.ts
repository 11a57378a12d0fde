import assert from "node:assert/strict";
import { test } from "node:test";
import { endingOf, kindOf } from "./kinds";

test("kinds follow media types", () => {
  assert.equal(kindOf("image/svg+xml"), "image");
  assert.equal(kindOf("application/pdf"), "pdf");
  assert.equal(kindOf("application/x-7z-compressed"), "archive");
  assert.equal(kindOf("application/zip"), "archive");
  assert.equal(kindOf("text/html"), "other");
  assert.equal(kindOf(""), "other");
});

test("endings are short and plain", () => {
  assert.equal(endingOf("a.tar.gz"), "GZ");
  assert.equal(endingOf("README"), "");
  assert.equal(endingOf("a.<img onerror=1>"), "");
});
