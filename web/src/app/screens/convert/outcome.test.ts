import assert from "node:assert/strict";
import { test } from "node:test";
import { outcomeOf } from "./outcome";
import type { Job, ResultFile } from "./types";

const job = (status: Job["status"], change: Partial<Job> = {}): Job => ({
  jobId: "j",
  status,
  progress: 100,
  queuePlace: null,
  results: null,
  errors: null,
  errorMessage: null,
  ...change,
});
const wrong = (filename: string) => ({ filename, error: `${filename} is cut off` });
const result = { filename: "a.webp" } as ResultFile;

test("a job that is done names the files that failed", () => {
  const outcome = outcomeOf(job("completed", { results: [result], errors: [wrong("b.png")] }));
  assert.deepEqual(outcome, { state: "done", results: [result], errors: [wrong("b.png")] });
  assert.deepEqual(outcomeOf(job("completed", { results: [result] })).errors, []);
});

test("a job that failed says why, and lists its files when there are several", () => {
  const one = outcomeOf(job("failed", { errors: [wrong("a.png")], errorMessage: "1 of 1 files failed" }));
  assert.deepEqual(
    [one.state, one.error?.message, one.errors],
    ["failed", "a.png is cut off", []],
    "the reason of the only file is shown once",
  );
  const two = outcomeOf(job("failed", { errors: [wrong("a.png"), wrong("b.png")] }));
  assert.equal(two.errors.length, 2);
  assert.equal(outcomeOf(job("failed", { errorMessage: "too late" })).error?.message, "too late");
  assert.equal(outcomeOf(job("failed")).error, undefined);
});

test("a cancelled job has no errors", () => {
  const outcome = outcomeOf(job("cancelled", { errors: [wrong("a.png")], errorMessage: "cancelled" }));
  assert.deepEqual([outcome.state, outcome.error, outcome.errors], ["cancelled", undefined, []]);
});
