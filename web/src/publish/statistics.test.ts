import assert from "node:assert/strict";
import { test } from "node:test";
import { bitrateBetween, droppedSince, sentOf } from "./statistics";

test("a publisher's statistics", () => {
  const at = (timestamp: number, bytesSent: number, frames: number, framesEncoded: number) =>
    sentOf([
      { type: "outbound-rtp", kind: "audio", timestamp, bytesSent: 1_000 },
      {
        type: "outbound-rtp",
        kind: "video",
        timestamp,
        bytesSent,
        framesEncoded,
        frameWidth: 1280,
        frameHeight: 720,
        framesPerSecond: 30,
        qualityLimitationReason: "cpu",
      },
      { type: "media-source", kind: "video", timestamp, frames },
      { type: "candidate-pair", timestamp, nominated: false, currentRoundTripTime: 9 },
      { type: "candidate-pair", timestamp, nominated: true, currentRoundTripTime: 0.03 },
    ]);
  const before = at(1_000, 10_000, 10, 8);
  const now = at(2_000, 322_500, 40, 36);
  assert.equal(bitrateBetween(before, now), 2_500_000);
  assert.equal(droppedSince(before, now), 2);
  assert.equal(now.roundTripS, 0.03);
  assert.equal(now.limitedBy, "cpu");
  assert.ok(Number.isNaN(bitrateBetween(now, now)));
  assert.equal(droppedSince(sentOf([]), sentOf([])), null);
});
