import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { actionText, GROUPS } from "./action_text";

test("actions read as words", () => {
  for (const [action, text] of [
    ["live.input.key_rotated", "Live input: key rotated"],
    ["api_key.created", "API key: created"],
    ["cdn.purged", "CDN: purged"],
    ["renamed", "Renamed"],
    ["", ""],
  ] as const)
    assert.equal(actionText(action), text);
});

test("each group has actions of the service", () => {
  // Tests run in `web/`.
  const read = (path: string) => readFileSync(`../src/${path}`, "utf8");
  const sources = [
    "http/audit/actions.rs",
    "application/members/mod.rs",
    "application/members/invitations.rs",
  ].map(read);
  for (const { value } of GROUPS)
    assert.ok(
      sources.some((source) => source.includes(`"${value}`)),
      `nothing is noted as ${value}`,
    );
});
