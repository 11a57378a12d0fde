import assert from "node:assert/strict";
import { test } from "node:test";
import { streamBase } from "./address";

test("a stream is found by any of its addresses", () => {
  const page = "https://shop.example/a/b?c";
  const base = "https://media.example/live/v1/pb_1";
  const table: [string, string, string | null][] = [
    [base, "", base],
    [`${base}/`, "", base],
    [`${base}/index.m3u8`, "", base],
    [`${base}/whep`, "", base],
    ["https://media.example/live/pb_1", "", base],
    ["https://media.example/under/live/v1/pb_1", "", "https://media.example/under/live/v1/pb_1"],
    [base, "e30.x/y", "https://media.example/live/v1/e30.x%2Fy"],
    ["/live/v1/pb_1", "", "https://shop.example/live/v1/pb_1"],
    ["https://media.example/video/v1/pb_1", "", null],
    ["https://media.example/live/v1/", "", null],
    ["javascript:alert(1)//live/v1/pb_1", "", null],
    ["", "", null],
    ["http://[", "", null],
  ];
  for (const [src, token, expected] of table) assert.equal(streamBase(src, token, page), expected, src);
});
