import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTook } from "../shared/run_time";
import type { Definition, LogEntry, Run } from "../shared/workflow_types";
import { noteOf, sizesOf, skippedWhy, stepsOf } from "./path";

const definition: Definition = {
  nodes: [
    { id: "upload", data: { kind: "upload" } },
    { id: "wide", data: { kind: "branch", title: "Wide?" } },
    { id: "large", data: { kind: "resize" } },
    { id: "small", data: { kind: "resize" } },
    { id: "keep", data: { kind: "storage" } },
  ],
  edges: [
    { source: "upload", target: "wide" },
    { source: "wide", target: "large", kind: "true" },
    { source: "wide", target: "small", kind: "false" },
    { source: "large", target: "keep" },
    { source: "small", target: "keep" },
  ],
};
const entry = (nodeId: string, status: LogEntry["status"], more: Partial<LogEntry> = {}): LogEntry => ({
  nodeId,
  kind: "",
  title: nodeId,
  status,
  message: "",
  ...more,
});
const run = (status: Run["status"], log: LogEntry[]) => ({ status, log }) as Run;
const states = (of: Run) =>
  stepsOf(definition, of)
    .map(({ nodeId, state }) => `${nodeId} ${state}`)
    .join(", ");

test("a run that waits has nothing done", () => {
  assert.equal(
    states(run("queued", [])),
    "upload waiting, wide waiting, large waiting, small waiting, keep waiting",
  );
});

test("behind a branch only its way is ahead", () => {
  const log = [entry("upload", "completed"), entry("wide", "completed", { branch: false })];
  assert.equal(
    states(run("processing", log)),
    "upload done, wide done, small running, keep waiting, large skipped",
  );
});

test("before the branch both ways are open", () => {
  assert.equal(
    states(run("processing", [entry("upload", "completed")])),
    "upload done, wide running, large waiting, small waiting, keep waiting",
  );
});

test("an ended run is its log, also when that lacks steps", () => {
  const log = [entry("upload", "completed"), entry("wide", "failed"), entry("large", "skipped")];
  assert.equal(
    states(run("failed", log)),
    "upload done, wide failed, large skipped, small skipped, keep skipped",
  );
});

test("a branch without an edge for its result ends the run there", () => {
  const cut = { ...definition, edges: definition.edges.filter(({ kind }) => kind !== "false") };
  const log = [entry("upload", "completed"), entry("wide", "completed", { branch: false })];
  assert.equal(
    stepsOf(cut, run("processing", log))
      .map(({ state }) => state)
      .join(),
    "done,done,skipped,skipped,skipped",
  );
});

test("a definition in other spellings has the same path", () => {
  const spelled = {
    nodes: [
      { id: "upload", data: { type: "Upload" } },
      { id: "wide", data: { type: "BRANCH", label: "Wide?" } },
      { id: "large", kind: "Strip-Metadata" },
      { id: 4, type: "resize" },
    ],
    edges: [
      { source: "upload", target: "wide" },
      { source: "wide", target: "large", sourceHandle: "TRUE" },
      { source: "wide", target: 4 },
    ],
  } as unknown as Definition;
  const log = [entry("upload", "completed")];
  const steps = (log: LogEntry[]) =>
    stepsOf(spelled, run("processing", log)).map(({ nodeId, title, state }) => `${nodeId} ${title} ${state}`);
  assert.deepEqual(steps(log), [
    "upload upload done",
    "wide Wide? running",
    "large Strip metadata waiting",
    "4 Resize waiting",
  ]);
  assert.deepEqual(steps([...log, entry("wide", "completed", { branch: false })]).slice(1), [
    "wide wide done",
    "4 Resize running",
    "large Strip metadata skipped",
  ]);
});

test("a circle in a definition ends", () => {
  const circle: Definition = {
    nodes: definition.nodes.slice(0, 2),
    edges: [
      { source: "upload", target: "wide" },
      { source: "wide", target: "upload" },
    ],
  };
  const log = [entry("upload", "completed"), entry("wide", "completed")];
  assert.equal(stepsOf(circle, run("processing", log)).length, 2);
});

test("a skipped step says why, and by which step", () => {
  const why = (more: Partial<LogEntry>) => {
    const log = [entry("wide", "completed", { title: "Wide?" }), entry("large", "skipped", more)];
    const steps = stepsOf(definition, run("completed", log));
    return skippedWhy(steps[1] as (typeof steps)[0], steps);
  };
  assert.equal(why({ skipReason: "otherPath", skippedBy: "wide" }), "the branch “Wide?” took the other path");
  assert.equal(why({ skipReason: "failure", skippedBy: "wide" }), "the step “Wide?” before it failed");
  assert.equal(why({ skipReason: "failure", skippedBy: "gone" }), "a step before it failed");
  assert.equal(why({ skipReason: "gate", skippedBy: null }), "the upload did not meet the gate");
  assert.equal(why({}), undefined);
});

test("times and sizes in words", () => {
  assert.deepEqual([3, 4_240, 125_400, 3_725_000].map(formatTook), ["3 ms", "4.2 s", "2:05", "1:02:05"]);
  assert.equal(
    sizesOf(entry("a", "completed", { bytesIn: 3_100_000, bytesOut: 240_000 })),
    "3.1 MB → 240 kB",
  );
  assert.equal(sizesOf(entry("a", "completed", { bytesIn: 5, bytesOut: 5 })), "5 B");
  assert.equal(sizesOf(entry("a", "skipped")), "");
  const timed = entry("a", "completed", {
    bytesIn: 5,
    bytesOut: 5,
    startedAt: "2026-01-01T00:00:00.000Z",
    finishedAt: "2026-01-01T00:00:00.031Z",
  });
  assert.equal(noteOf({ nodeId: "a", kind: "", title: "", state: "done", entry: timed }), "31 ms");
});
