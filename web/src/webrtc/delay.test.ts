import assert from "node:assert/strict";
import { test } from "node:test";
import { delayS, playoutMs, type Report, snapshotOf } from "./delay";

const NTP = 2_208_988_800_000;
const T = 1_800_000_000_000;
const pair = { type: "candidate-pair", timestamp: T, nominated: true, currentRoundTripTime: 0.04 };
const video = (more: Partial<Report>): Report => ({
  type: "inbound-rtp",
  kind: "video",
  timestamp: T,
  ...more,
});

test("the sender's clock gives the delay, whatever this machine's clock says", () => {
  // Here it is an hour later than at the service, whose last report came 500 ms ago.
  const HOUR = 3_600_000;
  const now = snapshotOf([
    pair,
    video({ timestamp: T + HOUR, estimatedPlayoutTimestamp: NTP + T + 420 }),
    {
      type: "remote-outbound-rtp",
      kind: "video",
      timestamp: T + HOUR - 500,
      remoteTimestamp: T,
    },
  ]);
  assert.ok(Math.abs((delayS(now, null) ?? 0) - 0.1) < 1e-9, String(delayS(now, null)));
  assert.equal(playoutMs(now), T + 420);
});

test("without it the delay is the sum of its parts since the snapshot before", () => {
  const before = snapshotOf([
    pair,
    video({ jitterBufferDelay: 90, jitterBufferEmittedCount: 30, framesDecoded: 30, totalDecodeTime: 9 }),
  ]);
  const now = snapshotOf([
    pair,
    video({ jitterBufferDelay: 91.5, jitterBufferEmittedCount: 60, framesDecoded: 60, totalDecodeTime: 9.3 }),
  ]);
  assert.ok(Math.abs((delayS(now, before) ?? 0) - (0.02 + 0.05 + 0.01)) < 1e-9, String(delayS(now, before)));
});

test("a delay that is not known, or cannot be, is none", () => {
  const table: [string, Report[]][] = [
    ["nothing", []],
    ["nothing played yet", [pair, video({})]],
    [
      "a clock that jumped",
      [
        video({ estimatedPlayoutTimestamp: NTP + T - 90_000 }),
        { type: "remote-outbound-rtp", kind: "video", timestamp: T, remoteTimestamp: T },
      ],
    ],
    ["a report without numbers", [video({ jitterBufferDelay: Number.NaN, jitterBufferEmittedCount: 4 })]],
  ];
  for (const [name, reports] of table) assert.equal(delayS(snapshotOf(reports), null), null, name);
});
