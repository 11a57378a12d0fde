/** The lists of the API that activity is merged from: jobs, runs, video streams, live streams, recordings and uploads. */
import type { Kind } from "../../../api/changes";
import { api } from "../../../api/client";
import { formatBytes } from "../../../parts/format";
import { type Family, Merger, type Source } from "./merger";
import {
  type Entry,
  type Filter,
  type Input,
  type Job,
  KINDS,
  type Recording,
  type Run,
  type State,
  type StoredFile,
  type Stream,
  type Upload,
  type UploadList,
} from "./types";
import { activityWords as words } from "./words";

/** Kinds of changes that concern the list. */
export const ACTIVITY_KINDS: Kind[] = ["job", "run", "stream", "recording", "live_input", "file", "upload"];

export const PAGE = 50;
const INPUTS_PAGE = 100;
const RECORDINGS_PAGE = 20;

/** Words of each list for the states. */
const STATES: Record<string, State> = {
  pending: "waiting",
  queued: "waiting",
  processing: "running",
  recording: "running",
  completed: "done",
  ready: "done",
  failed: "failed",
  cancelled: "cancelled",
};

const stateOf = (status: string): State => STATES[status] ?? "running";
const isActive = ({ state }: Entry) => state === "waiting" || state === "running";

/** The statuses by which a list is asked for a state; undefined once: all of them. */
function statusesOf(state: Filter["state"], words: { waiting: string; done: string; cancelled?: string }) {
  if (state === "") return [undefined];
  if (state === "active") return [words.waiting, "processing"];
  const status = { done: words.done, failed: "failed", cancelled: words.cancelled }[state];
  return status ? [status] : [];
}

const timeOf = (since: number | undefined) =>
  since === undefined ? undefined : new Date(since).toISOString();

interface Paged {
  nextCursor: string | null;
}

/** The merged list of what fits a filter. `pageSize` is smaller for a panel with few lines. */
export function activityOf(filter: Filter, pageSize = PAGE): Merger<Entry> {
  const { kinds, since, state } = filter;
  const sources = [
    ...(kinds.includes("job") ? jobs(filter, pageSize) : []),
    ...(kinds.includes("run") ? runs(filter, pageSize) : []),
    ...(kinds.includes("stream") ? streams(filter, pageSize) : []),
    ...(kinds.includes("live") && (state === "" || state === "active") ? [broadcasts()] : []),
    ...(kinds.includes("upload") && (state === "" || state === "active") ? [uploads(pageSize)] : []),
    ...(kinds.includes("upload") && (state === "" || state === "done")
      ? [files(filter, pageSize, ["uploaded"])]
      : []),
  ];
  const families = kinds.includes("recording") && state !== "cancelled" ? [recordings()] : [];
  return new Merger(sources, families, { pageSize, since, keep: (entry) => fits(entry, filter) });
}

/** Whether an entry is one of those that are sought: not every list can be asked so. */
export function fits(entry: Entry, { state, q }: Filter): boolean {
  if (state === "active" ? !isActive(entry) : state && entry.state !== state) return false;
  const text = `${entry.title} ${entry.note} ${words.kinds[entry.kind]}`.toLowerCase();
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/**
 * What happened last, for a panel with few lines: recordings are those that were stored, which one request finds for all
 * inputs, and going on air is reported too.
 */
export function recentActivity(pageSize: number): Merger<Entry> {
  const all: Filter = { kinds: [...KINDS], state: "", q: "" };
  const sources = [
    ...jobs(all, pageSize),
    ...runs(all, pageSize),
    ...streams(all, pageSize),
    uploads(pageSize),
    files(all, pageSize, ["uploaded", "recording"]),
    onAir(pageSize),
  ];
  return new Merger(sources, [], { pageSize });
}

const jobs = ({ state, since }: Filter, limit: number): Source<Entry>[] =>
  statusesOf(state, { waiting: "pending", done: "completed", cancelled: "cancelled" }).map((status) => ({
    key: `jobs/${status ?? ""}`,
    kinds: ["job"],
    load: async (cursor, signal) => {
      const query = { status, since: timeOf(since), limit, cursor };
      const page = await api.get<Paged & { jobs: Job[] }>("/api/jobs", { query, signal });
      return { items: page.jobs.map(jobEntry), next: page.nextCursor };
    },
  }));

export const jobEntry = (job: Job): Entry => ({
  kind: "job",
  id: job.id,
  at: Date.parse(job.createdAt),
  state: stateOf(job.status),
  title: words.job(job.jobType, job.tool, job.totalFiles),
  note: job.totalFiles > 1 ? words.jobNote(job.completedFiles, job.failedFiles, job.totalFiles) : "",
  percent: job.progress,
  queuePlace: job.queuePlace,
  error: job.errorMessage,
  to: `/activity?job=${job.id}`,
});

const runs = ({ state, since }: Filter, limit: number): Source<Entry>[] =>
  statusesOf(state, { waiting: "queued", done: "completed", cancelled: "cancelled" }).map((status) => ({
    key: `runs/${status ?? ""}`,
    kinds: ["run"],
    load: async (cursor, signal) => {
      const query = { status, since: timeOf(since), limit, cursor };
      const page = await api.get<Paged & { runs: Run[] }>("/api/workflows/runs", { query, signal });
      return { items: page.runs.map(runEntry), next: page.nextCursor };
    },
  }));

export const runEntry = (run: Run): Entry => ({
  kind: "run",
  id: run.id,
  at: Date.parse(run.createdAt),
  state: stateOf(run.status),
  title: words.run(run.workflowName, run.number),
  note: run.inputFilename,
  percent: null,
  queuePlace: null,
  error: run.error,
  to: `/runs/${run.id}`,
});

const streams = ({ state }: Filter, limit: number): Source<Entry>[] =>
  statusesOf(state, { waiting: "pending", done: "ready" }).map((status) => ({
    key: `streams/${status ?? ""}`,
    kinds: ["stream"],
    load: async (cursor, signal) => {
      const query = { status, limit, cursor };
      const page = await api.get<Paged & { streams: Stream[] }>("/api/video/streams", { query, signal });
      return { items: page.streams.map(streamEntry), next: page.nextCursor };
    },
  }));

export const streamEntry = (stream: Stream): Entry => ({
  kind: "stream",
  id: stream.id,
  at: Date.parse(stream.createdAt),
  state: stateOf(stream.status),
  title: stream.title,
  note: "",
  percent: stream.progress,
  queuePlace: stream.queuePlace,
  error: stream.error,
  to: `/streams/${stream.id}`,
});

/** What is being sent, by any client; it becomes a file. */
const uploads = (limit: number): Source<Entry> => ({
  key: "uploads",
  kinds: ["upload"],
  load: async (cursor, signal) => {
    const page = await api.get<UploadList>("/api/uploads", { query: { limit, cursor }, signal });
    return { items: page.uploads.map(uploadEntry), next: page.nextCursor };
  },
});

export function uploadEntry(upload: Upload): Entry {
  const { id, kind, filename, sizeBytes, offsetBytes, createdAt } = upload;
  return {
    kind: "upload",
    id,
    at: Date.parse(createdAt),
    state: "running",
    title: filename,
    note: uploadNote(upload),
    percent: isCounted(upload) && sizeBytes ? (100 * offsetBytes) / sizeBytes : null,
    queuePlace: null,
    error: null,
    to: null,
    upload: kind,
  };
}

/** The bytes of a direct upload are known once all are there. */
const isCounted = ({ kind, status }: Upload) => kind === "tus" || status === "received";

function uploadNote(upload: Upload): string {
  const { sizeBytes, offsetBytes, status } = upload;
  if (status === "received") return words.uncompleted(offsetBytes);
  if (isCounted(upload)) return words.received(offsetBytes, sizeBytes);
  return sizeBytes === null ? "" : formatBytes(sizeBytes);
}

/** Stored files of these roles: what a job or a run made is its result. */
const files = ({ since, q }: Filter, limit: number, roles: string[]): Source<Entry> => ({
  key: "files",
  kinds: ["file"],
  load: async (cursor, signal) => {
    const query = {
      sort: "created",
      order: "desc",
      total: false,
      limit,
      cursor,
      createdAfter: timeOf(since),
      q: narrowing(q, words.kinds.upload),
    };
    const page = await api.get<Paged & { files: StoredFile[] }>("/api/files", { query, signal });
    return {
      items: page.files.filter(({ role }) => roles.includes(role)).map(fileEntry),
      next: page.nextCursor,
    };
  },
});

/** The longest word of a search that only names have: the service looks for it in names. */
function narrowing(q: string, label: string): string | undefined {
  const sought = q.toLowerCase().split(/\s+/);
  return sought.filter((word) => !label.toLowerCase().includes(word)).sort((a, b) => b.length - a.length)[0];
}

export const fileEntry = (file: StoredFile): Entry => ({
  kind: file.role === "recording" ? "recording" : "upload",
  id: file.id,
  at: Date.parse(file.created_at),
  state: "done",
  title: file.filename,
  note: formatBytes(file.size_bytes),
  percent: null,
  queuePlace: null,
  error: null,
  to: fileAddress(file.id, file.folder_id),
});

/** The inputs that were on air last, each by what it did last: the service has one list of it, without a second page. */
const onAir = (limit: number): Source<Entry> => ({
  key: "inputs",
  kinds: ["live_input"],
  load: async (_, signal) => {
    const query = { sort: "lastLive", limit };
    const { liveInputs } = await api.get<{ liveInputs: Input[] }>("/api/live/inputs", { query, signal });
    const items = liveInputs.filter(({ lastStartedAt }) => lastStartedAt).map(inputEntry);
    return { items: items.sort((a, b) => b.at - a.at), next: null };
  },
});

export function inputEntry({ id, name, status, lastStartedAt, lastEndedAt }: Input): Entry {
  const isOnAir = status !== "idle";
  return {
    kind: "live",
    id: `${id} on air`,
    at: Date.parse((isOnAir ? null : lastEndedAt) ?? lastStartedAt ?? ""),
    state: "done",
    title: isOnAir ? words.onAir(name) : words.offAir(name),
    note: "",
    percent: null,
    queuePlace: null,
    error: null,
    to: `/live/${id}`,
  };
}

/** Every input that is on air now. */
const broadcasts = (): Source<Entry> => ({
  key: "broadcasts",
  kinds: ["live_input"],
  load: async (_, signal) => {
    const items: Entry[] = [];
    for (let offset = 0; ; offset += INPUTS_PAGE) {
      const query = { sort: "lastLive", limit: INPUTS_PAGE, offset };
      const { liveInputs } = await api.get<{ liveInputs: Input[] }>("/api/live/inputs", { query, signal });
      // What is on air comes first
      const onAir = liveInputs.filter(({ status }) => status !== "idle");
      items.push(...onAir.map(broadcastEntry));
      if (onAir.length < INPUTS_PAGE) return { items: items.sort((a, b) => b.at - a.at), next: null };
    }
  },
});

export const broadcastEntry = (input: Input): Entry => ({
  ...inputEntry(input),
  id: input.id,
  state: "running",
  title: input.name,
  note: input.status === "reconnecting" ? words.reconnecting : "",
  viewers: input.viewers,
});

const fileAddress = (id: string, folder: string | null = null) =>
  `/files${folder ? `/${folder}` : ""}?file=${id}`;

/**
 * The recordings of every live input: a list each, ordered by the end of the input's last broadcast, after which it has no
 * recording. What is on air comes first, and may have one of this moment.
 */
const recordings = (): Family<Entry> => ({
  key: "recordings",
  kinds: ["live_input"],
  load: async (offset, signal) => {
    const query = { sort: "lastLive", limit: INPUTS_PAGE, offset };
    const { liveInputs } = await api.get<{ liveInputs: Input[] }>("/api/live/inputs", { query, signal });
    const sources = liveInputs.filter(({ lastStartedAt }) => lastStartedAt !== null).map(recordingsOf);
    const last = liveInputs[liveInputs.length - 1];
    const isEnd = liveInputs.length < INPUTS_PAGE || !last?.lastStartedAt;
    return { sources, count: liveInputs.length, upTo: isEnd ? null : latestOf(last) };
  },
});

/** The time after which an input has no recording. */
export function latestOf({ status, recordMode, lastStartedAt, lastEndedAt }: Input): number {
  if (status !== "idle" && recordMode === "automatic") return Number.POSITIVE_INFINITY;
  const end = status === "idle" ? (lastEndedAt ?? lastStartedAt) : lastStartedAt;
  return end ? Date.parse(end) : Number.NEGATIVE_INFINITY;
}

const recordingsOf = (input: Input): Source<Entry> => ({
  key: `recordings/${input.id}`,
  kinds: ["recording"],
  upTo: latestOf(input),
  load: async (cursor, signal) => {
    const path = `/api/live/inputs/${input.id}/recordings`;
    const query = { limit: RECORDINGS_PAGE, cursor };
    const page = await api.get<Paged & { recordings: Recording[] }>(path, { query, signal });
    return { items: page.recordings.map((each) => recordingEntry(each, input)), next: page.nextCursor };
  },
});

export function recordingEntry(recording: Recording, input: Pick<Input, "id" | "name">): Entry {
  const sum = (field: "duration" | "sizeBytes") =>
    recording.files.reduce((total, file) => total + file[field], 0);
  const stored = recording.files.find(({ fileId }) => fileId)?.fileId;
  const state = stateOf(recording.status);
  return {
    kind: "recording",
    id: recording.id,
    at: Date.parse(recording.startedAt),
    state,
    title: input.name,
    note: recording.files.length > 0 ? words.recorded(sum("duration"), sum("sizeBytes")) : "",
    percent: null,
    queuePlace: null,
    error: recording.error ?? recording.stoppedReason,
    to: stored && state === "done" ? fileAddress(stored) : `/live/${input.id}/recordings`,
  };
}
