import assert from "node:assert/strict";
import { test } from "node:test";
import { stateOf } from "./state";
import type { Invitation } from "./types";

const at = (hours: number) => new Date(Date.UTC(2026, 10, 21, hours)).toISOString();
const invitation = (more: Partial<Invitation>): Invitation => ({
  id: "1",
  role: "member",
  note: null,
  createdAt: at(0),
  expiresAt: at(10),
  createdBy: "ann",
  usedAt: null,
  usedBy: null,
  ...more,
});

test("an invitation is open until it is used or expires", () => {
  for (const [more, hour, expected] of [
    [{}, 9, "open"],
    [{}, 10, "expired"],
    [{ usedAt: at(1), usedBy: "bob" }, 9, "used"],
    [{ usedAt: at(1), usedBy: "bob" }, 11, "used"],
  ] as const)
    assert.equal(stateOf(invitation(more), Date.parse(at(hour))), expected);
});
