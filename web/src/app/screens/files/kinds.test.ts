import assert from "node:assert/strict";
import { test } from "node:test";
import { endingOf, kindOf, previewOf } from "./kinds";
import type { FileRecord } from "./types";

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

test("a preview has a path of this origin, with its width and version", () => {
  const file = { preview_url: "https://media.example/api/files/1/preview?w=640&v=7" } as FileRecord;
  assert.equal(previewOf(file, 320), "/api/files/1/preview?w=320&v=7");
  assert.equal(previewOf({ preview_url: null } as FileRecord, 320), null);
});
