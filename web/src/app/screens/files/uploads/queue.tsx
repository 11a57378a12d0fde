/**
 * The queue of uploads. It lasts over changes of screen, sends three files at a time by tus, and never sends a file twice:
 * an upload that was cut continues, and what arrived whole is recognized.
 */
import { effect, signal } from "@preact/signals";
import { api } from "../../../api/client";
import { offlineSince, reconnections } from "../../../api/connection";
import { ApiError, asApiError } from "../../../api/error";
import { session } from "../../../api/session";
import { formatDateTime } from "../../../parts/format";
import { announce, toast } from "../../../shell/toasts";
import { showInTray } from "../../../shell/tray";
import { isUploading } from "../refresh";
import { rejection } from "./admission";
import { Pace } from "./pace";
import { type Picked, pickedFrom, pickedOf } from "./picked";
import { forget, printOf, recall, recallAll, remember } from "./remembered";
import { resumable, send } from "./sending";
import { UploadTray } from "./tray";
import { words } from "./words";

export interface Upload {
  key: number;
  name: string;
  size: number;
  /** The folder below which `path` lies. */
  parent: string | null;
  path: string[];
  /** Undefined after a reload, until the same file is chosen again, and for an address. */
  file?: File | undefined;
  address?: string;
  /** What makes it the same one again in this queue. */
  same: string;
  /** What makes it the same one again after a reload; known once its folder is. */
  print?: string;
  /** `present`: it was there already. `lost`: begun before a reload, its file is to be chosen again. */
  state: "waiting" | "sending" | "done" | "present" | "failed" | "lost";
  sent: number;
  error?: ApiError | undefined;
  tries: number;
  stop?: (() => void) | undefined;
}

/** HTTP/1.1 gives a browser six connections; one follows changes, two are for the screen. */
const AT_ONCE = 3;
const BEAT_MS = 150;
const MOST_TRIES = 5;
const SPARED_REQUESTS = 150;
const LONGEST_WINDOW_MS = 61_000;
const MOST_RECALLED = 50;
/** When everything has gone well, the tray needs no one. */
const SHOWN_AFTER_MS = 12_000;

let uploads: Upload[] = [];
let count = 0;
let active = 0;
/** Before it there is nothing that waits. */
let next = 0;
let pausedUntil = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let closing: ReturnType<typeof setTimeout> | undefined;
const pace = new Pace();
let folders = new Map<string, Promise<string | null>>();
let removeTray: (() => void) | undefined;

/** Grows when something has changed, at most some times a second. */
export const beat = signal(0);
let beatTimer: ReturnType<typeof setTimeout> | undefined;

function changed() {
  if (beatTimer) return;
  beatTimer = setTimeout(() => {
    beatTimer = undefined;
    const { sent, isBusy } = summary();
    pace.note(sent, Date.now());
    isUploading.value = isBusy;
    beat.value += 1;
  }, BEAT_MS);
}

export const all = (): readonly Upload[] => uploads;

export interface Summary {
  files: number;
  ended: number;
  failed: number;
  lost: number;
  present: number;
  bytes: number;
  sent: number;
  isBusy: boolean;
  left: number | null;
  pausedUntil: number;
}

export function summary(): Summary {
  const sum = { files: uploads.length, ended: 0, failed: 0, lost: 0, present: 0, bytes: 0, sent: 0 };
  for (const { state, size, sent } of uploads) {
    if (state === "done" || state === "present") sum.ended += 1;
    if (state === "failed") sum.failed += 1;
    if (state === "lost") sum.lost += 1;
    if (state === "present") sum.present += 1;
    sum.bytes += size;
    sum.sent += state === "done" || state === "present" ? size : sent;
  }
  const isBusy = uploads.some(({ state }) => state === "waiting" || state === "sending");
  return { ...sum, isBusy, left: pace.left(sum.bytes - sum.sent), pausedUntil };
}

export const addDropped = async (data: DataTransfer, to: string | null) => add(await pickedFrom(data), to);
export const addChosen = (files: File[], to: string | null) => add(pickedOf(files), to);

/** Pasted images are all called "image.png": they are named by the time. */
export function addPasted(files: File[], to: string | null) {
  const at = formatDateTime(new Date()).replaceAll(/[/\\:]/g, ".");
  const named = files.map((file) => {
    const ending = /^image(\.\w+)$/.exec(file.name)?.[1];
    return ending ? new File([file], `${words.pasted} ${at}${ending}`, { type: file.type }) : file;
  });
  return add(
    named.map((file) => ({ file, path: [] })),
    to,
  );
}

export function addAddress(address: string, to: string | null) {
  const last = new URL(address).pathname.split("/").at(-1);
  enter({ name: decode(last || address), size: 0, parent: to, path: [], address, same: address });
  begin();
}

const decode = (text: string) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const userId = () => session.peek()?.user.id ?? "";

async function add(picked: Picked[], parent: string | null) {
  const known = new Map(uploads.map((upload) => [upload.same, upload]));
  const lost = uploads.filter(({ state }) => state === "lost");
  const fresh = new Map<string, Picked>();
  for (const { file, path } of picked) {
    const same = JSON.stringify([parent, ...path, file.name, file.size, file.lastModified]);
    const before = known.get(same) ?? lost.find((upload) => isOf(upload, file));
    if (before?.state === "failed" || before?.state === "lost") {
      before.file = file;
      wait(before);
    } else if (!before || before.state === "done" || before.state === "present")
      fresh.set(same, { file, path });
  }
  let bytes = 0;
  for (const { file } of fresh.values()) bytes += file.size;
  const reject = fresh.size > 0 ? await rejection(fresh.size, bytes, summary()) : null;
  if (reject) await reject();
  else {
    // What this queue has ended makes way: it is asked for again, and is "present" when it is still there
    uploads = uploads.filter(({ same }) => !fresh.has(same));
    for (const [same, { file, path }] of fresh)
      enter({ name: file.name, size: file.size, parent, path, file, same });
  }
  next = 0;
  if (uploads.length > 0) begin();
}

/** Whether an upload that a reload has cut is of this file. */
const isOf = ({ name, size, parent, print }: Upload, file: File) =>
  name === file.name && size === file.size && print === printOf(userId(), parent ?? "", file);

function enter(upload: Omit<Upload, "key" | "state" | "sent" | "tries">, state: Upload["state"] = "waiting") {
  const entered: Upload = { ...upload, key: ++count, state, sent: 0, tries: 0 };
  uploads.push(entered);
  return entered;
}

function wait(upload: Upload) {
  upload.state = "waiting";
  upload.error = undefined;
  next = Math.max(0, Math.min(next, uploads.indexOf(upload)));
}

function begin() {
  clearTimeout(closing);
  removeTray ??= showInTray("uploads", UploadTray);
  pump();
  changed();
}

function pump() {
  const pause = pausedUntil - Date.now();
  if (pause > 0) {
    clearTimeout(timer);
    timer = setTimeout(pump, pause);
    return;
  }
  while (active < AT_ONCE && next < uploads.length) {
    const upload = uploads[next];
    if (upload?.state === "waiting") run(upload);
    next += 1;
  }
}

async function run(upload: Upload) {
  active += 1;
  upload.state = "sending";
  try {
    if (upload.address) await fetchAddress(upload);
    else await sendFile(upload);
  } catch (thrown) {
    if (upload.state === "sending") failed(upload, asApiError(thrown));
  }
  active -= 1;
  upload.stop = undefined;
  changed();
  pump();
  if (active === 0 && !summary().isBusy) ended();
}

async function fetchAddress(upload: Upload) {
  await api.post("/api/files", { sourceUrl: upload.address, folderId: upload.parent });
  upload.state = "done";
}

async function sendFile(upload: Upload) {
  const { file } = upload;
  if (!file) throw new ApiError(0, words.chooseAgain);
  const folder = await folderOf(upload);
  const print = printOf(userId(), folder ?? "", file);
  upload.print = print;
  const known = recall(print);
  const before = known && (await resumable(known.id));
  if (before?.fileId) {
    upload.state = "present";
    remember(print, before.id, true);
    return;
  }
  if (known && !before) forget(print);
  await send({
    file,
    folder,
    resume: before?.id,
    onId: (id) => remember(print, id, false),
    onSent: (bytes) => {
      upload.sent = bytes;
      changed();
    },
    onLimit,
    onStop: (stop) => {
      upload.stop = stop;
    },
    isStopped: () => upload.state !== "sending",
  }).then((id) => id && remember(print, id, true));
  if (upload.state === "sending") upload.state = "done";
}

/** Pauses before the minute's requests of uploads (`sign_in.upload_requests_per_minute`) are used up. */
function onLimit(remaining: number, resetsAt: number) {
  if (remaining >= SPARED_REQUESTS) return;
  const wait = Math.max(1_000, Math.min(LONGEST_WINDOW_MS, resetsAt * 1_000 - Date.now()));
  pausedUntil = Math.max(pausedUntil, Date.now() + wait);
}

/** The folder that a file goes into; each is made once. */
function folderOf({ parent, path }: Upload): Promise<string | null> {
  if (path.length === 0) return Promise.resolve(parent);
  const key = JSON.stringify([parent, ...path]);
  const made =
    folders.get(key) ??
    api
      .post<{ folder: { id: string } }>("/api/folders/path", { path, parentId: parent })
      .then(({ folder }) => folder.id);
  folders.set(key, made);
  made.catch(() => folders.delete(key));
  return made;
}

/** What is asked to wait waits; what the connection cut continues when it is back; the rest is for the user. */
function failed(upload: Upload, error: ApiError) {
  upload.tries += 1;
  const isAskedToWait = error.status === 429 || (error.status === 503 && upload.tries < MOST_TRIES);
  // A file continues at its offset; what was fetched from an address may be stored already
  const mayBeThere = error.code === "outcome_unknown" && upload.address !== undefined;
  if (isAskedToWait && !mayBeThere) {
    pausedUntil = Math.max(pausedUntil, Date.now() + (error.retryAfter ?? 2) * 1_000);
    return wait(upload);
  }
  upload.state = "failed";
  upload.error = error;
  const isFull = error.status === 507 || error.status === 402 || error.code === "storage_used_up";
  // The others would be rejected as well
  if (isFull) for (const other of uploads) if (other.state === "waiting") fail(other, error);
}

function fail(upload: Upload, error: ApiError) {
  upload.state = "failed";
  upload.error = error;
}

function ended() {
  pace.reset();
  folders = new Map();
  const { ended, failed, lost } = summary();
  clearTimeout(closing);
  if (failed + lost === 0) closing = setTimeout(() => summary().isBusy || close(), SHOWN_AFTER_MS);
  if (failed > 0) announce(words.someFailed(failed));
  else if (ended > 0) announce(words.allDone(ended));
}

export function retryFailed() {
  for (const upload of uploads) if (upload.state === "failed") retry(upload);
  begin();
}

export function retry(upload: Upload) {
  upload.tries = 0;
  wait(upload);
  begin();
}

/** Ends one, and what the service has of it. */
export function cancel(upload: Upload) {
  const { state, print } = upload;
  upload.stop?.();
  upload.state = "failed";
  uploads = uploads.filter((other) => other !== upload);
  next = 0;
  const known = print && state !== "done" && state !== "present" ? recall(print) : null;
  if (print && known && !known.isDone) {
    api.delete(`/api/uploads/tus/${known.id}`, { headers: { "tus-resumable": "1.0.0" } }).catch(() => {});
    forget(print);
  }
  if (uploads.length === 0) close();
  changed();
}

export function cancelAll() {
  for (const upload of [...uploads])
    if (upload.state !== "done" && upload.state !== "present") cancel(upload);
  close();
}

/** Takes what has ended out of sight. */
export function close() {
  uploads = uploads.filter(({ state }) => state === "waiting" || state === "sending");
  next = 0;
  if (uploads.length > 0) return;
  removeTray?.();
  removeTray = undefined;
}

/** Shows the uploads that a reload or a closed window has cut. */
export async function recallCut() {
  const open = recallAll().filter(
    ({ isDone, print }) => !isDone && !uploads.some((upload) => upload.print === print),
  );
  for (const { print, id } of open.slice(0, MOST_RECALLED)) {
    const before = await resumable(id).catch(() => undefined);
    if (before === undefined) continue;
    if (before === null || before.fileId) {
      if (before) remember(print, id, true);
      else forget(print);
      continue;
    }
    const { name, size, sent, folder } = before;
    if (uploads.some((upload) => upload.print === print)) continue;
    const upload = enter({ name, size, parent: folder, path: [], print, same: print }, "lost");
    upload.sent = sent;
  }
  if (uploads.some(({ state }) => state === "lost")) begin();
}

// What the connection cut continues by itself
effect(() => {
  if (reconnections.value === 0 || offlineSince.value) return;
  const cut = uploads.filter(({ state, error }) => state === "failed" && error?.status === 0);
  for (const upload of cut) retry(upload);
  if (cut.length > 0) toast(words.continues(cut.length));
});

addEventListener("beforeunload", (event) => summary().isBusy && event.preventDefault());
