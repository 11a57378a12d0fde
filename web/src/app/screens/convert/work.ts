/** Sources and the work on them. Both last over changes of screen; three requests go out at a time. */
import { signal } from "@preact/signals";
import { address, onThisOrigin } from "../../api/base";
import { api } from "../../api/client";
import { type ApiError, asApiError, isAborted } from "../../api/error";
import { download, downloadBytes } from "../../parts/download";
import { announce, toast } from "../../shell/toasts";
import { followJob } from "../shared/follow_job";
import { joins } from "./fields";
import { outcomeOf } from "./outcome";
import { needsBytes, requestOf, type Wanted } from "./request";
import { send } from "./send";
import type { Job, ResultFile, Source } from "./types";
import { words } from "./words";

export interface Work {
  key: number;
  name: string;
  tool: string;
  sources: Source[];
  state: "waiting" | "sending" | "working" | "done" | "failed" | "cancelled";
  percent: number;
  queuePlace: number | null;
  results: ResultFile[];
  error?: ApiError | { message: string } | undefined;
  /** Files that failed, beside those that have a result. */
  errors?: { filename: string; error: string }[] | undefined;
  /** The request that made it, for another try. */
  wanted: Wanted;
}

/** HTTP/1.1 gives a browser six connections; one follows changes, two are for the screen. */
const AT_ONCE = 3;

export const sources = signal<Source[]>([]);
export const works = signal<Work[]>([]);
/** Until when the service takes no further requests, in Unix milliseconds. */
export const pausedUntil = signal(0);

let count = 0;
let active = 0;
const aborts = new Map<number, AbortController>();
const jobs = new Map<number, string>();

export function addFiles(files: File[]) {
  sources.value = [
    ...sources.peek(),
    ...files.map((file) => ({ key: ++count, name: file.name, size: file.size, mime: file.type, file })),
  ];
}

interface Stored {
  id: string;
  filename: string;
  size_bytes: number;
  mime_type: string;
  width: number | null;
  height: number | null;
  preview_url?: string | null;
}

/** Adds stored files, each once. */
export function addStored(files: Stored[]) {
  const known = new Set(sources.peek().map(({ stored }) => stored?.id));
  sources.value = [
    ...sources.peek(),
    ...files
      .filter(({ id }) => !known.has(id))
      .map((file) => ({
        key: ++count,
        name: file.filename,
        size: file.size_bytes,
        mime: file.mime_type,
        stored: file,
      })),
  ];
}

export const removeSource = (key: number) => {
  sources.value = sources.peek().filter((source) => source.key !== key);
};

export function moveSource(key: number, by: 1 | -1) {
  const list = [...sources.peek()];
  const at = list.findIndex((source) => source.key === key);
  const [moved] = list.splice(at, 1);
  if (moved) list.splice(Math.max(0, at + by), 0, moved);
  sources.value = list;
}

function update(key: number, change: Partial<Work>) {
  works.value = works.peek().map((work) => (work.key === key ? { ...work, ...change } : work));
}

/** Begins work on the sources: one job for each, or one for all of a tool that joins. */
export function start(wanted: Wanted, of: Source[]) {
  const groups = joins(wanted.tool) ? [of] : of.map((source) => [source]);
  const begun = groups.map(
    (group): Work => ({
      key: ++count,
      name: group.length > 1 ? words.results.joined(group.length) : (group[0]?.name ?? ""),
      tool: wanted.tool.name,
      sources: group,
      state: "waiting",
      percent: 0,
      queuePlace: null,
      results: [],
      wanted,
    }),
  );
  works.value = [...begun, ...works.peek()];
  pump();
}

export function tryAgain(key: number) {
  update(key, { state: "waiting", percent: 0, queuePlace: null, error: undefined, errors: [], results: [] });
  pump();
}

function pump() {
  const rest = pausedUntil.peek() - Date.now();
  if (rest > 0) return;
  pausedUntil.value = 0;
  while (active < AT_ONCE) {
    // The newest work is on top of the list, its first file is sent first
    const next = works.peek().find(({ state }) => state === "waiting");
    if (!next) return;
    active += 1;
    update(next.key, { state: "sending" });
    submit(next).finally(() => {
      active -= 1;
      pump();
    });
  }
}

async function submit(work: Work) {
  const abort = new AbortController();
  aborts.set(work.key, abort);
  try {
    const of = needsBytes(work.wanted, work.sources)
      ? await Promise.all(work.sources.map((source) => withBytes(source, abort.signal)))
      : work.sources;
    const { jobId } = await send<{ jobId: string }>({
      ...requestOf(work.wanted, of),
      signal: abort.signal,
      onSent: (share) => update(work.key, { percent: Math.floor(100 * share) }),
    });
    jobs.set(work.key, jobId);
    update(work.key, { state: "working", percent: 0 });
    follow(work.key, jobId);
  } catch (thrown) {
    if (isAborted(thrown)) return update(work.key, { state: "cancelled" });
    const error = asApiError(thrown);
    if (error.status === 429 && error.retryAfter) return pause(work.key, error.retryAfter);
    update(work.key, { state: "failed", error });
  } finally {
    aborts.delete(work.key);
  }
}

/** Waits as long as the service says, then continues with the same work. */
function pause(key: number, seconds: number) {
  update(key, { state: "waiting", percent: 0 });
  pausedUntil.value = Date.now() + seconds * 1_000;
  setTimeout(pump, seconds * 1_000 + 50);
}

async function withBytes(source: Source, signal: AbortSignal): Promise<Source> {
  if (!source.stored) return source;
  const answer = await fetch(address(`/api/files/${source.stored.id}`), { signal });
  if (!answer.ok) throw new Error(words.results.zipFailed);
  return { ...source, file: new File([await answer.blob()], source.name, { type: source.mime }) };
}

const follow = (key: number, jobId: string) =>
  followJob<Job>(
    jobId,
    (progress) => update(key, progress),
    (job) => {
      jobs.delete(key);
      update(key, { ...outcomeOf(job), queuePlace: null });
      announceEnd();
    },
  );

/** Says once that everything has ended. */
function announceEnd() {
  const all = works.peek();
  if (all.some(isRunning)) return;
  const failed = all.filter(({ state }) => state === "failed").length;
  const done = all.filter(({ state }) => state === "done").length;
  announce(
    [words.results.done(done), failed > 0 ? words.results.failed(failed) : ""].filter(Boolean).join(", "),
  );
}

export const isRunning = ({ state }: Work) =>
  state === "waiting" || state === "sending" || state === "working";

export async function cancel(key: number) {
  aborts.get(key)?.abort();
  const job = jobs.get(key);
  if (job) await api.delete(`/api/jobs/${job}`);
  else update(key, { state: "cancelled" });
}

export const dismiss = (key: number) => {
  works.value = works.peek().filter((work) => work.key !== key);
};

export const clearEnded = () => {
  works.value = works.peek().filter(isRunning);
};

export const resultUrl = ({ downloadUrl }: ResultFile) => (downloadUrl ? onThisOrigin(downloadUrl) : null);

/** Stores a result that was not stored when it was made. */
export async function store(key: number, result: ResultFile) {
  const answer = await fetch(resultUrl(result) ?? "");
  if (!answer.ok) throw new Error(words.results.zipFailed);
  const form = new FormData();
  form.append("file", await answer.blob(), result.filename);
  const { file } = await api.post<{ file: { id: string } }>("/api/files", form);
  const work = works.peek().find((each) => each.key === key);
  update(key, {
    results: (work?.results ?? []).map((each) =>
      each === result ? { ...each, storedFileId: file.id } : each,
    ),
  });
  toast(words.results.storedToast(result.filename), "good");
}

/** Every result of the list, as one archive: by the service when all are stored, else made here. */
export async function downloadAll() {
  const results = works.peek().flatMap((work) => work.results);
  const ids = results.flatMap(({ storedFileId }) => storedFileId ?? []);
  if (ids.length === results.length) {
    const { url } = await api.post<{ url: string }>("/api/files/zip", { ids });
    return download(onThisOrigin(url), words.results.zipName);
  }
  const { MOST_BYTES, zipOf } = await import("./zip");
  if (results.reduce((sum, { finalSize }) => sum + (finalSize ?? 0), 0) > MOST_BYTES)
    throw new Error(words.results.zipTooLarge);
  const members = [];
  for (const result of results) {
    const url = resultUrl(result);
    const answer = url ? await fetch(url) : null;
    if (!answer?.ok) throw new Error(words.results.zipFailed);
    members.push({ name: result.filename, data: new Uint8Array(await answer.arrayBuffer()) });
  }
  downloadBytes(zipOf(members), "application/zip", words.results.zipName);
}
