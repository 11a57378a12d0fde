import assert from "node:assert/strict";
import { test } from "node:test";
import { AGAIN_AFTER_MS, type Ending, endingOf, TransportChoice, viaOf } from "./transport";

const T = 100_000;
const choice = (more = {}) => new TransportChoice({ suitable: true, via: null, ...more });

test("WebRTC comes first where it suits, and only while media is coming", () => {
  assert.equal(choice().pick(T, true), "webrtc");
  assert.equal(choice().pick(T, false), "hls");
  assert.equal(choice({ suitable: false }).pick(T, true), "hls");
  const late = choice({ suitable: false });
  late.suitable = true;
  assert.equal(late.pick(T, true), "webrtc");
});

test("a session without a frame, or with too few, is followed by HLS at once, and by WebRTC after a minute", () => {
  for (const why of ["late", "slow", "failed"] as const) {
    const chosen = choice();
    assert.equal(chosen.ended({ why }, T, true, 0.5), 0, why);
    assert.equal(chosen.pick(T, true), "hls", why);
    assert.deepEqual(chosen.fallback, { why, atMs: T });
    assert.equal(chosen.wantsWebRtc(T + AGAIN_AFTER_MS - 1, true), false, why);
    assert.equal(chosen.wantsWebRtc(T + AGAIN_AFTER_MS, true), true, why);
    assert.equal(chosen.wantsWebRtc(T + AGAIN_AFTER_MS, false), false, why);
  }
});

test("three failures are enough for a visit", () => {
  const chosen = choice();
  for (let failure = 0; failure < 3; failure += 1) {
    assert.equal(chosen.pick(T + failure * AGAIN_AFTER_MS, true), "webrtc", `failure ${failure}`);
    chosen.ended({ why: "late" }, T + failure * AGAIN_AFTER_MS, true, 0.5);
  }
  assert.equal(chosen.pick(T + 100 * AGAIN_AFTER_MS, true), "hls");
});

test("five minutes of playback make up for earlier failures", () => {
  const chosen = choice();
  chosen.ended({ why: "slow" }, T, true, 0.5);
  chosen.ended({ why: "slow" }, T, true, 0.5);
  chosen.played(T);
  chosen.ended({ why: "slow" }, T + 300_000, true, 0.5);
  assert.equal(chosen.pick(T + 360_000, true), "webrtc");
});

test("a lost session is replaced after a growing pause, and the fourth in a row is a failure", () => {
  const chosen = choice();
  const pauses = [0, 1, 2].map(() => chosen.ended({ why: "closed" }, T, true, 1));
  assert.deepEqual(pauses, [500, 1000, 2000]);
  assert.equal(chosen.pick(T, true), "webrtc");
  assert.equal(chosen.ended({ why: "closed" }, T, true, 1), 0);
  assert.equal(chosen.pick(T, true), "hls");
});

test("after ten seconds of playback a lost session is the first in a row again", () => {
  const chosen = choice();
  for (let time = T; time < T + 500_000; time += 20_000) {
    chosen.played(time);
    assert.equal(chosen.ended({ why: "closed" }, time + 15_000, true, 1), 500);
  }
});

test("what ends while no media is coming is no failure, and the pause grows to five seconds", () => {
  for (const why of ["late", "slow", "failed", "closed", "off-air"] as const) {
    const chosen = choice();
    const pauses = [0, 1, 2, 3, 4, 5].map(() => chosen.ended({ why }, T, false, 1));
    assert.deepEqual(pauses, [500, 1000, 2000, 4000, 5000, 5000], why);
    assert.equal(chosen.pick(T, true), "webrtc", why);
  }
});

test("a service without room is asked again when it says so, but not within a minute", () => {
  const table: [number, number][] = [
    [2, AGAIN_AFTER_MS],
    [90, 90_000],
  ];
  for (const [afterS, expected] of table) {
    const chosen = choice();
    for (let time = T; time < T + 5 * expected; time += expected) {
      assert.equal(chosen.pick(time, true), "webrtc");
      assert.equal(chosen.ended({ why: "busy", afterS }, time, true, 0.5), 0);
      assert.equal(chosen.pick(time + expected - 1, true), "hls");
    }
  }
});

test("what does not fit is not tried again", () => {
  const chosen = choice();
  assert.equal(chosen.ended({ why: "unsuitable" }, T, true, 0.5), 0);
  assert.equal(chosen.pick(T + 10 * AGAIN_AFTER_MS, true), "hls");
  assert.equal(chosen.fallback, null);
});

test("a forced transport stays", () => {
  const hls = choice({ via: "hls" });
  assert.equal(hls.pick(T, true), "hls");
  assert.equal(hls.wantsWebRtc(T, true), false);
  const webrtc = choice({ via: "webrtc", suitable: false });
  for (let failure = 0; failure < 9; failure += 1) {
    assert.equal(webrtc.pick(T, true), "webrtc");
    assert.ok(webrtc.ended({ why: "late" }, T, true, 1) >= 500);
  }
  assert.equal(webrtc.pick(T, false), "webrtc");
  assert.equal(webrtc.wantsWebRtc(T, true), false);
});

test("every answer of the service has its meaning", () => {
  const table: [number, string, Ending][] = [
    [0, "", { why: "failed" }],
    [500, "internal", { why: "failed" }],
    [502, "", { why: "failed" }],
    [503, "webrtc_busy", { why: "busy", afterS: 7 }],
    [503, "webrtc_full", { why: "busy", afterS: 7 }],
    [429, "rate_limited", { why: "busy", afterS: 7 }],
    [404, "webrtc_off", { why: "unsuitable" }],
    [404, "not_live", { why: "off-air" }],
    [404, "", { why: "off-air" }],
    [422, "no_common_codec", { why: "unsuitable" }],
    [403, "playback_token_required", { why: "unsuitable" }],
    [400, "sdp_invalid", { why: "unsuitable" }],
    [405, "", { why: "unsuitable" }],
  ];
  for (const [status, code, expected] of table) {
    assert.deepEqual(endingOf(status, code, 7), expected, `${status} ${code}`);
  }
});

test("the address may force a transport", () => {
  const table: [string, string | null][] = [
    ["", null],
    ["?via=hls", "hls"],
    ["?a=1&via=webrtc", "webrtc"],
    ["?via=smoke", null],
  ];
  for (const [search, expected] of table) assert.equal(viaOf(search), expected, search);
});
