/** Whether the service answers; while it does not, one probe looks for it, after 1 s at first and 15 s at last. */
import { signal } from "@preact/signals";
import { address } from "./base";

/** The time since which no request was answered, null when the connection is good. */
export const offlineSince = signal<Date | null>(null);
/** Grows each time the connection is back: everything that is shown is then loaded again. */
export const reconnections = signal(0);

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 15_000;
let probing = false;

/** Reports a request without an answer. */
export function connectionFailed() {
  if (probing) return;
  probing = true;
  probe(FIRST_PAUSE_MS);
}

async function probe(pause: number) {
  if (await answers()) {
    probing = false;
    const wasOffline = offlineSince.peek() !== null;
    offlineSince.value = null;
    if (wasOffline) reconnections.value += 1;
    return;
  }
  offlineSince.value ??= new Date();
  setTimeout(() => probe(Math.min(pause * 2, LONGEST_PAUSE_MS)), pause);
}

async function answers(): Promise<boolean> {
  try {
    const response = await fetch(address("/healthz"), {
      cache: "no-store",
      signal: AbortSignal.timeout(5_000),
    });
    return response.ok;
  } catch {
    return false;
  }
}
