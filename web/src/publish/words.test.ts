import assert from "node:assert/strict";
import { test } from "node:test";
import {
  announcementOf,
  badgeWords,
  captureWords,
  formatBitrate,
  formatClock,
  rejectionWords,
} from "./words";

test("time and bitrate", () => {
  const clocks: [number, string][] = [
    [-1, "00:00"],
    [0, "00:00"],
    [9.9, "00:09"],
    [61, "01:01"],
    [3599, "59:59"],
    [3600, "1:00:00"],
    [36_061, "10:01:01"],
  ];
  for (const [seconds, expected] of clocks) assert.equal(formatClock(seconds), expected);
  const rates: [number, string][] = [
    [Number.NaN, "–"],
    [0, "0 kbit/s"],
    [640_400, "640 kbit/s"],
    [999_600, "1.0 Mbit/s"],
    [2_512_000, "2.5 Mbit/s"],
  ];
  for (const [rate, expected] of rates) assert.equal(formatBitrate(rate), expected);
});

test("every stage has a badge and is announced once", () => {
  assert.equal(badgeWords("live", 75), "Live · 01:15");
  assert.equal(badgeWords("setup", 75), "Not live");
  assert.equal(announcementOf("setup", "setup"), "", "not when the page opens");
  assert.equal(announcementOf("setup", "live"), "You are not live.");
});

test("every rejection says what to do", () => {
  const table: [number, string, RegExp][] = [
    [0, "", /cannot be reached/],
    [401, "stream_key_invalid", /key is wrong/],
    [403, "input_disabled", /is disabled/],
    [404, "webrtc_off", /turned off/],
    [404, "not_found", /Unknown input/],
    [409, "publisher_conflict", /Another encoder/],
    [422, "no_common_codec", /cannot take/],
    [429, "", /busy/],
    [503, "webrtc_full", /busy/],
    [500, "internal", /did not accept/],
  ];
  for (const [status, code, expected] of table) {
    const { title, detail } = rejectionWords(status, code, "");
    assert.match(title, expected, `${status} ${code}`);
    assert.match(detail, /\.$/, `${status} ${code}`);
  }
  assert.equal(rejectionWords(500, "", "the disk is full").detail, "the disk is full");
});

test("a denied permission has words, a cancelled choice of screen has none", () => {
  assert.match(captureWords("NotAllowedError", "camera")?.title ?? "", /does not allow/);
  assert.equal(captureWords("NotAllowedError", "screen"), null);
  for (const name of ["NotFoundError", "NotReadableError", "OverconstrainedError", "Odd"]) {
    for (const source of ["camera", "screen"] as const) assert.ok(captureWords(name, source)?.detail, name);
  }
});
