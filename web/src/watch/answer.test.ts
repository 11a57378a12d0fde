import assert from "node:assert/strict";
import { test } from "node:test";
import { verdictOf } from "./answer";

test("every answer has its words, and only what may change is asked for again", () => {
  const table = [
    { answer: [200, undefined, null], stage: "ready", again: null },
    { answer: [404, "not_ready", "5"], stage: "waiting", again: 5 },
    { answer: [404, "not_ready", "soon"], stage: "waiting", again: 2 },
    { answer: [404, "not_found", null], stage: "unknown", again: null },
    { answer: [403, "playback_token_expired", null], stage: "forbidden", again: null },
    { answer: [403, undefined, null], stage: "forbidden", again: null },
    { answer: [503, undefined, "1"], stage: "unreachable", again: 2 },
    { answer: [0, undefined, null], stage: "unreachable", again: 2 },
  ] as const;
  for (const { answer, stage, again } of table) {
    const verdict = verdictOf(answer[0], answer[1], answer[2]);
    assert.equal(verdict.stage, stage, String(answer));
    assert.equal(verdict.againAfterS, again, String(answer));
    assert.equal(verdict.title === "", stage === "ready", String(answer));
  }
});
