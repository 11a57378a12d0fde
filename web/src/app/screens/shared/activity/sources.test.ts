import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  broadcastEntry,
  fileEntry,
  fits,
  inputEntry,
  jobEntry,
  latestOf,
  recordingEntry,
  runEntry,
  streamEntry,
  uploadEntry,
} from "./sources";
import type { Entry, Filter, Input, Job, Recording, Run, Stream, Upload } from "./types";

const job: Job = {
  id: "j1",
  jobType: "convert",
  tool: null,
  status: "processing",
  progress: 40,
  queuePlace: null,
  totalFiles: 3,
  completedFiles: 1,
  failedFiles: 1,
  errorMessage: null,
  createdAt: "2026-11-26T05:00:00.250Z",
};
const run: Run = {
  id: "r1",
  workflowName: "Product photos",
  number: 7,
  inputFilename: "beach.jpg",
  status: "failed",
  error: "step `Resize`: it is no image",
  createdAt: "2026-11-26T05:00:00Z",
};
const stream: Stream = {
  id: "s1",
  title: "Intro",
  status: "pending",
  progress: 0,
  queuePlace: 2,
  error: null,
  createdAt: "2026-11-26T05:00:00Z",
};
const recording: Recording = {
  id: "e1",
  status: "ready",
  error: null,
  stoppedReason: "the disk is full",
  startedAt: "2026-11-26T05:00:00Z",
  files: [
    { fileId: "f1", sizeBytes: 1_500_000, duration: 61 },
    { fileId: "f2", sizeBytes: 500_000, duration: 9 },
  ],
};
const everything: Filter = { kinds: [], state: "", q: "" };

describe("an entry", () => {
  it("of a job has its type, its files and its progress", () => {
    const entry = jobEntry(job);
    assert.deepEqual(
      [entry.at, entry.state, entry.title, entry.note, entry.percent],
      [Date.UTC(2026, 10, 26, 5, 0, 0, 250), "running", "Conversion of 3 files", "1 of 3 done, 1 failed", 40],
    );
    assert.equal(
      jobEntry({ ...job, jobType: "tool", tool: "thumbnail", totalFiles: 1 }).title,
      "Tool thumbnail of 1 file",
    );
  });

  it("of a run has the workflow's name and the error", () => {
    assert.equal(runEntry(run).title, "Product photos #7");
    assert.equal(runEntry(run).error, run.error);
  });

  it("of a recording leads to its file once that is stored", () => {
    const input = { id: "i1", name: "Main stage" };
    const entry = recordingEntry(recording, input);
    assert.deepEqual(
      [entry.to, entry.note, entry.error],
      ["/files?file=f1", "1:10 · 2 MB", "the disk is full"],
    );
    const running = recordingEntry({ ...recording, status: "recording", files: [] }, input);
    assert.deepEqual([running.state, running.to, running.note], ["running", "/live/i1/recordings", ""]);
  });

  it("of an upload in progress has its bytes, where they are known", () => {
    const upload: Upload = {
      id: "u1",
      kind: "tus",
      filename: "a.mov",
      folderId: null,
      sizeBytes: 4_000_000,
      offsetBytes: 1_000_000,
      status: "receiving",
      createdAt: job.createdAt,
      expiresAt: job.createdAt,
    };
    const shown = (more: Partial<Upload>) => {
      const { state, note, percent } = uploadEntry({ ...upload, ...more });
      assert.equal(state, "running");
      return `${note}, ${percent}`;
    };
    assert.equal(shown({}), "1 MB of 4 MB, 25");
    assert.equal(shown({ sizeBytes: null }), "1 MB, null");
    assert.equal(shown({ sizeBytes: 0, offsetBytes: 0 }), "0 B of 0 B, null");
    assert.equal(shown({ kind: "direct", offsetBytes: 0 }), "4 MB, null");
    assert.equal(
      shown({ kind: "direct", offsetBytes: 4_000_000, status: "received" }),
      "4 MB received, to be completed by its client, 100",
    );
  });

  it("of an upload leads to its file in its folder", () => {
    const file = { id: "f1", filename: "a.png", role: "uploaded", size_bytes: 67, created_at: job.createdAt };
    assert.deepEqual(
      [fileEntry({ ...file, folder_id: null }).to, fileEntry({ ...file, folder_id: "d1" }).to],
      ["/files?file=f1", "/files/d1?file=f1"],
    );
  });
});

describe("an input that was on air", () => {
  const input: Input = {
    id: "i1",
    name: "Main stage",
    status: "live",
    recordMode: "off",
    lastStartedAt: "2026-11-26T05:00:00Z",
    lastEndedAt: "2026-11-26T03:00:00Z",
    viewers: 3,
  };

  it("is in progress while it is on air", () => {
    const { id, state, title, note, at } = broadcastEntry(input);
    assert.deepEqual(
      [id, state, title, note, at],
      ["i1", "running", "Main stage", "", Date.UTC(2026, 10, 26, 5)],
    );
    assert.match(broadcastEntry({ ...input, status: "reconnecting" }).note, /reconnecting/);
  });

  it("is said with the time since which it is so", () => {
    const [live, idle] = [
      inputEntry(input),
      inputEntry({ ...input, status: "idle", lastEndedAt: "2026-11-26T06:00:00Z" }),
    ];
    assert.deepEqual([live.title, live.at], ["Main stage is on air", Date.UTC(2026, 10, 26, 5)]);
    assert.deepEqual([idle.title, idle.at], ["Main stage is off air", Date.UTC(2026, 10, 26, 6)]);
  });
});

describe("a filter", () => {
  const entries = [jobEntry(job), runEntry(run), streamEntry(stream)];
  const found = (filter: Partial<Filter>) =>
    entries.filter((entry) => fits(entry, { ...everything, ...filter })).map(({ id }) => id);

  it("finds what is in progress, and what has ended so", () => {
    assert.deepEqual(found({ state: "active" }), ["j1", "s1"]);
    assert.deepEqual(found({ state: "failed" }), ["r1"]);
    assert.deepEqual(found({ state: "cancelled" }), []);
    assert.deepEqual(found({}), ["j1", "r1", "s1"]);
  });

  it("finds words in any order and case, in the name, the file and the kind", () => {
    assert.deepEqual(found({ q: "photos PRODUCT" }), ["r1"]);
    assert.deepEqual(found({ q: "beach run" }), ["r1"]);
    assert.deepEqual(found({ q: "video stream" }), ["s1"]);
    assert.deepEqual(found({ q: "nothing" }), []);
  });

  it("takes a hostile search for text", () => {
    const entry: Entry = { ...streamEntry(stream), title: "<b>.*(" };
    assert.ok(fits(entry, { ...everything, q: ".*(" }));
  });
});

describe("the time after which an input has no recording", () => {
  const input: Input = {
    id: "i1",
    name: "Main stage",
    status: "idle",
    recordMode: "automatic",
    lastStartedAt: "2026-11-26T04:00:00Z",
    lastEndedAt: "2026-11-26T05:00:00Z",
    viewers: 0,
  };

  it("is the end of its last broadcast", () => {
    assert.equal(latestOf(input), Date.parse("2026-11-26T05:00:00Z"));
    assert.equal(latestOf({ ...input, lastEndedAt: null }), Date.parse("2026-11-26T04:00:00Z"));
    assert.equal(latestOf({ ...input, lastEndedAt: null, lastStartedAt: null }), Number.NEGATIVE_INFINITY);
  });

  it("is to come while it is recorded", () => {
    assert.equal(latestOf({ ...input, status: "live" }), Number.POSITIVE_INFINITY);
    assert.equal(
      latestOf({ ...input, status: "live", recordMode: "off" }),
      Date.parse("2026-11-26T04:00:00Z"),
    );
  });
});
