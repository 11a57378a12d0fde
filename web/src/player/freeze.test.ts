import assert from "node:assert/strict";
import { test } from "node:test";
import { FROZEN_LIMIT_MS, FreezeMeter } from "./freeze";

/** Feeds samples each 250 ms; `rate` gives the frames a second at a time. */
function fed(seconds: number, rate: (s: number) => number, freezesS: (s: number) => number = () => 0) {
  const meter = new FreezeMeter();
  let frames = 0;
  for (let ms = 0; ms <= seconds * 1000; ms += 250) {
    meter.add({ nowMs: 5_000 + ms, framesDecoded: Math.floor(frames), freezesS: freezesS(ms / 1000) });
    frames += rate(ms / 1000) / 4;
  }
  return meter;
}

test("frozen time is what the browser counted and what lasts", () => {
  const steady = () => 30;
  const table: [string, FreezeMeter, boolean][] = [
    ["steady", fed(20, steady), false],
    ["a slide each second", fed(20, () => 1), false],
    ["no frame for the last 2.5 s", fed(20, (s) => (s < 17.5 ? 30 : 0)), true],
    ["no frame for the last 1.5 s", fed(20, (s) => (s < 18.5 ? 30 : 0)), false],
    ["no frame at all", fed(3, () => 0), true],
    ["many short freezes", fed(20, steady, (s) => s * 0.2), true],
    ["few short freezes", fed(20, steady, (s) => s * 0.05), false],
    ["a long one, more than 15 s ago", fed(30, steady, (s) => (s < 10 ? 0 : 5)), false],
  ];
  for (const [name, meter, expected] of table) {
    assert.equal(meter.frozenMs() > FROZEN_LIMIT_MS, expected, `${name}: ${meter.frozenMs()} ms`);
  }
});

test("a time without frames that is left out does not count", () => {
  const meter = fed(20, (s) => (s < 10 ? 30 : 0));
  meter.reset();
  assert.equal(meter.frozenMs(), 0);
  meter.add({ nowMs: 90_000, framesDecoded: 300, freezesS: 65 });
  meter.add({ nowMs: 90_250, framesDecoded: 307, freezesS: 65 });
  assert.equal(meter.frozenMs(), 0);
});
