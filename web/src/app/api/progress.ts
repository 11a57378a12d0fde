/** How far jobs, runs and streams are: what the change stream has reported since their records were loaded. */
import { signal } from "@preact/signals";
import { onChanges } from "./changes";

export interface Progress {
  percent: number;
  /** Place in the queue; null once it is processed. */
  queuePlace: number | null;
}

const MOST_KEPT = 200;

/** By id, the newest last. */
const reported = signal<ReadonlyMap<string, Progress>>(new Map());

onChanges(["job", "run", "stream"], (message) => {
  if (message.event === "change") return;
  if (message.event === "resync") {
    // The records that are loaded again are newer
    reported.value = new Map();
    return;
  }
  const { id, percent, queuePlace } = message;
  const others = [...reported.peek()].filter(([other]) => other !== id);
  reported.value = new Map([...others.slice(1 - MOST_KEPT), [id, { percent, queuePlace }]]);
});

export const progressOf = (id: string): Progress | undefined => reported.value.get(id);
