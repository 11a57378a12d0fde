/**
 * What changes on the service, as it changes: one connection a tab, closed while the tab is hidden (HTTP/1.1 gives a
 * browser six). Messages are nudges without data; what shows a thing loads it again.
 */
import { effect, signal } from "@preact/signals";
import { address } from "./base";
import { currentSession } from "./client";
import { connectionFailed, offlineSince } from "./connection";
import { isSessionOver, session } from "./session";

export type Kind =
  | "account"
  | "user"
  | "session"
  | "api_key"
  | "audit"
  | "file"
  | "folder"
  | "share"
  | "upload"
  | "live_input"
  | "output"
  | "recording"
  | "stream"
  | "job"
  | "run"
  | "workflow"
  | "webhook"
  | "delivery"
  | "event"
  | "delivery_key"
  | "playback_key"
  | "preset"
  | "usage"
  | "service"
  | "system";

export type Message =
  | { event: "change"; kind: Kind; id: string | null; action: "created" | "changed" | "deleted" }
  | {
      event: "progress";
      kind: "job" | "run" | "stream";
      id: string;
      percent: number;
      queuePlace: number | null;
    }
  /** Everything of the kind may have changed. */
  | { event: "resync"; kind: Kind };

interface Subscription {
  kinds: Kind[];
  id: string | undefined;
  listener: (message: Message) => void;
}

const subscriptions = new Set<Subscription>();
/** The input whose health is wanted once a second. */
const healthOf = signal<string | null>(null);
const healthListeners = new Set<(sample: unknown) => void>();

/**
 * Calls `listener` for each change of one of the kinds (of the thing with `id`, when it is given). Returns the end of the
 * subscription.
 */
export function onChanges(kinds: Kind[], listener: (message: Message) => void, id?: string): () => void {
  const subscription = { kinds, id, listener };
  subscriptions.add(subscription);
  return () => subscriptions.delete(subscription);
}

/** Calls `listener` with the input's health once a second. One input a tab: the last one asked for. */
export function onHealth<Health>(inputId: string, listener: (sample: Health) => void): () => void {
  const taken = listener as (sample: unknown) => void;
  healthListeners.add(taken);
  healthOf.value = inputId;
  return () => {
    healthListeners.delete(taken);
    if (healthListeners.size === 0) healthOf.value = null;
  };
}

function deliver(message: Message) {
  for (const { kinds, id, listener } of [...subscriptions]) {
    if (!kinds.includes(message.kind)) continue;
    if (message.event !== "resync" && id && message.id && message.id !== id) continue;
    listener(message);
  }
}

function resync(kinds: Kind[] | null) {
  for (const { kinds: wanted, listener } of [...subscriptions]) {
    const kind = kinds ? wanted.find((each) => kinds.includes(each)) : wanted[0];
    if (kind) listener({ event: "resync", kind });
  }
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;

let source: EventSource | null = null;
let pause = FIRST_PAUSE_MS;
/** The first stream of a tab begins while its screen loads for the first time. */
let isFirst = true;
/** Grows when another stream is to be opened after an error. */
const attempt = signal(0);

/** Follows the service for as long as the page lives. */
export function followChanges() {
  const isVisible = signal(!document.hidden);
  document.addEventListener("visibilitychange", () => {
    isVisible.value = !document.hidden;
  });
  effect(() => {
    const isWanted =
      isVisible.value && session.value && !isSessionOver.value && !offlineSince.value && attempt.value >= 0;
    const input = healthOf.value;
    source?.close();
    source = isWanted ? open(input) : null;
  });
}

function open(input: string | null): EventSource {
  const opened = new EventSource(address("/api/changes", { health: input }));
  const on = (name: string, take: (data: never) => void) =>
    opened.addEventListener(name, (event) => take(JSON.parse((event as MessageEvent).data) as never));
  on("change", (data: Message) => deliver({ ...data, event: "change" } as Message));
  on("progress", (data: Message) => deliver({ ...data, event: "progress" } as Message));
  on("health", ({ health }: { health: unknown }) => {
    for (const listener of [...healthListeners]) listener(health);
  });
  on("resync", ({ kinds }: { kinds: Kind[] | null }) => {
    pause = FIRST_PAUSE_MS;
    if (!isFirst) resync(kinds);
    isFirst = false;
  });
  opened.addEventListener("error", () => {
    if (source !== opened) return;
    if (opened.readyState === EventSource.CLOSED) openLater();
    else connectionFailed();
  });
  return opened;
}

/** After an answer other than 200: the session ended, or there are too many streams, or the service is stopping. */
async function openLater() {
  try {
    if ((await currentSession()) === null) {
      isSessionOver.value = true;
      return;
    }
  } catch {
    // The connection's probe follows what comes of it.
  }
  setTimeout(() => {
    attempt.value += 1;
  }, pause);
  pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
}
