import assert from "node:assert/strict";
import { test } from "node:test";
import {
  appended,
  asText,
  beginTail,
  clockError,
  counts,
  followTail,
  found,
  foundSettings,
  hitShare,
  isDiskLow,
  isOldBackup,
  MOST_LINES,
  quoted,
  requestsByKind,
  shownValue,
  withProtocol,
  worstFirst,
} from "./model";
import type { LogLine, ObjectStore, Report, Setting, System } from "./types";

const line = (number: number, text = `line ${number}`): LogLine => ({
  number,
  text,
  level: "info",
  target: "sluice::app",
  time: "2026-11-26T05:00:00.000Z",
});

test("a tail grows at its end, without doubles, up to its bound", () => {
  const lines = [line(1), line(2)];
  assert.deepEqual(
    appended(lines, [line(2), line(3)]).map(({ number }) => number),
    [1, 2, 3],
  );
  assert.equal(appended(lines, [line(1)]), lines, "nothing is new");
  const many = Array.from({ length: MOST_LINES }, (_, i) => line(i + 1));
  const grown = appended(many, [line(MOST_LINES + 1)]);
  assert.deepEqual([grown.length, grown[0]?.number], [MOST_LINES, 2]);
});

test("a tail is followed over what other levels wrote, gaps and a restart", () => {
  const answer = (numbers: number[], newest: number, oldest = 1) => ({
    lines: numbers.map((number) => line(number)),
    newest,
    oldest,
  });
  const begun = beginTail(answer([1, 2], 7));
  assert.deepEqual(begun, { lines: [line(1), line(2)], newest: 7, hasGap: false });
  const quiet = followTail(begun, answer([], 9));
  assert.deepEqual(quiet, { ...begun, newest: 9 });
  const next = followTail(begun, answer([8], 8, 8));
  assert.deepEqual(next, { lines: [line(1), line(2), line(8)], newest: 8, hasGap: false });
  const late = followTail(begun, answer([9], 9, 9));
  assert.equal(late?.hasGap, true, "8 was written and dropped");
  assert.equal(late && followTail(late, answer([10], 10, 9))?.hasGap, true, "and stays missing");
  assert.equal(followTail(begun, answer([], 6)), undefined, "numbers began again");
  assert.equal(followTail(beginTail(answer([], 0, 0)), answer([1], 1))?.hasGap, false, "the first line");
});

test("lines are found by all words, in any case", () => {
  const lines = [line(1, "Encoder connected"), line(2, "encoder gone")];
  assert.deepEqual(
    found(lines, "ENCODER app gone").map(({ number }) => number),
    [2],
  );
  assert.equal(found(lines, "  "), lines);
});

test("settings are found by key, value and variable", () => {
  const settings: Setting[] = [
    { key: "http.listen", value: "0.0.0.0:8080", source: "default", variable: null },
    { key: "http.workers", value: 3, source: "environment", variable: "SLUICE_HTTP__WORKERS" },
    { key: "outbound.allow", value: ["10.0.0.0/8", "::1"], source: "file", variable: null },
  ];
  const keys = (text: string, only = false) => foundSettings(settings, text, only).map(({ key }) => key);
  assert.deepEqual(keys("8080"), ["http.listen"]);
  assert.deepEqual(keys("sluice_http"), ["http.workers"]);
  assert.deepEqual(keys("", true), ["http.workers", "outbound.allow"]);
  assert.deepEqual(keys("::1"), ["outbound.allow"]);
  assert.equal(shownValue([]), "");
  assert.equal(shownValue(false), "false");
});

test("a report is counted and sorted by what matters", () => {
  const check = (name: string, level: string) => ({ check: name, level, message: "", advice: null });
  const report: Report = {
    ok: false,
    checks: [check("a", "ok"), check("b", "warn"), check("c", "fail"), check("d", "ok")],
  };
  assert.deepEqual(counts(report), { warned: 1, failed: 1 });
  assert.deepEqual(
    worstFirst(report).map((it) => it.check),
    ["c", "b", "a", "d"],
  );
});

test("protocols are written as their documents write them", () => {
  assert.deepEqual(["http port", "webrtc tcp port", "rtmps", "disk", "httpd"].map(withProtocol), [
    "HTTP port",
    "WebRTC tcp port",
    "RTMPS",
    "disk",
    "httpd",
  ]);
});

test("a disk is low below its reserve, and not when it cannot be measured", () => {
  const disk = (free: number | null, minFree: number | null) => ({ free, minFree }) as System["disk"];
  assert.equal(isDiskLow(disk(4, 5)), true);
  assert.equal(isDiskLow(disk(5, 5)), false);
  assert.equal(isDiskLow(disk(null, 5)), false);
});

test("the cache of the object store has a share of the reads once there are some", () => {
  const cache = (hits: number, misses: number) => ({ hits, misses, bytes: 0, bound: 20_000_000_000 });
  assert.equal(hitShare(cache(0, 0)), undefined);
  assert.equal(hitShare(cache(0, 2)), 0);
  assert.equal(hitShare(cache(3, 1)), 0.75);
});

test("requests to the object store are rows by kind", () => {
  const sent = { requests: 3, failures: 1, bytes: 16_777_216 };
  const fetched = { requests: 2, failures: 0, bytes: 8_388_608 };
  const objects: ObjectStore = {
    place: "https://s3.internal/media/",
    failure: null,
    sent,
    fetched,
    damaged: 0,
    cache: { bytes: 0, bound: 1, hits: 0, misses: 0 },
    lastSearch: null,
  };
  assert.deepEqual(requestsByKind(objects), [
    { kind: "sent", requests: 3, failures: 1, bytes: 16_777_216 },
    { kind: "fetched", requests: 2, failures: 0, bytes: 8_388_608 },
  ]);
});

test("a backup is old after a week", () => {
  const now = Date.parse("2026-11-26T00:00:00Z");
  assert.equal(isOldBackup("2026-11-20T00:00:00Z", now), false);
  assert.equal(isOldBackup("2026-11-18T00:00:00Z", now), true);
});

test("paths with anything odd are quoted for the shell", () => {
  assert.equal(quoted("/srv/sluice-1/data"), "/srv/sluice-1/data");
  assert.equal(quoted("/srv/it's here"), "'/srv/it'\\''s here'");
});

test("a log file has a line for each line", () => {
  assert.equal(asText([line(1, "ready")]), "2026-11-26T05:00:00.000Z INFO  sluice::app: ready\n");
});

test("a clock that is off is shown with its direction", () => {
  assert.equal(clockError(0), undefined);
  assert.equal(clockError(-99), undefined);
  assert.deepEqual(clockError(1_500), { seconds: "1.5 s", isBehind: true });
  assert.deepEqual(clockError(-3_600_000), { seconds: "3600.0 s", isBehind: false });
});
