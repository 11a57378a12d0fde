import assert from "node:assert/strict";
import { test } from "node:test";
import { credential, keyIn, slugIn } from "./key";

test("slug and key", () => {
  assert.equal(slugIn("/live/publish/stage"), "stage");
  assert.equal(slugIn("/live/publish/stage/"), "stage");
  assert.equal(slugIn("/live/publish/%E0%A4%A"), "%E0%A4%A");
  const fragments: [string, string][] = [
    ["", ""],
    ["#", ""],
    ["#other=1", ""],
    ["#key=svc_live_abc", "svc_live_abc"],
    ["#key=%20stage.svc_live_abc%20", "stage.svc_live_abc"],
  ];
  for (const [hash, expected] of fragments) assert.equal(keyIn(hash), expected, hash);
  assert.equal(credential("stage", " svc_live_abc\n"), "stage.svc_live_abc");
  assert.equal(credential("stage", "stage.svc_live_abc"), "stage.svc_live_abc");
});
