import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { screenOf } from "./target";

const of = (action: string, kind: string) => screenOf({ action, target: { kind, id: "1", name: null } });

test("what is there is linked, what was deleted is not", () => {
  assert.equal(of("job.cancelled", "job"), "/activity?job=1");
  assert.equal(of("file.deleted", "file"), undefined);
  assert.equal(of("invitation.revoked", "invitation"), undefined);
  assert.equal(of("video.stream.captions_removed", "videoStream"), "/streams/1");
  assert.equal(of("share.revoked", "folder"), "/files/1");
  assert.equal(screenOf({ action: "cdn.purged", target: null }), undefined);
});

/** An output is named without its input; a session and an upload end with the entry. */
const WITHOUT_SCREEN = ["output", "session", "upload"];

test("each kind of target has a screen", () => {
  // Tests run in `web/`.
  const table = readFileSync("../src/http/audit/actions.rs", "utf8");
  const kinds = [...table.matchAll(/In(?:Path\(\s*|Answer\()"(\w+)"/g)].map(([, kind]) => kind as string);
  assert.ok(kinds.length > 20);
  for (const kind of kinds)
    if (!WITHOUT_SCREEN.includes(kind)) assert.ok(of("it.changed", kind), `${kind} has no screen`);
});
