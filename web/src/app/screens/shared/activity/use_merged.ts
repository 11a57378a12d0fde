/** A merged list on a screen, which is read again when something of it has changed. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Kind, onChanges } from "../../../api/changes";
import { reconnections } from "../../../api/connection";
import { useResource } from "../../../api/resource";
import type { Merger } from "./merger";
import { ACTIVITY_KINDS } from "./sources";
import type { Entry } from "./types";

/** Between two readings for changes. */
const PAUSE_MS = 900;

/** A merged list: its first page, its length so far, and a number that grows when its pages are to be read again. */
export function useMerged(make: () => Merger<Entry>, key: string, pageSize: number) {
  // Another key is another list
  const merger = useMemo(make, [key]);
  const [revision, setRevision] = useState(0);
  const [isPaused, setPaused] = useState(false);
  const [, redraw] = useState(0);
  const first = useResource((signal) => load(0, pageSize, signal), [key, revision], { keep: true });
  useEffect(() => setPaused(false), [key]);

  async function load(offset: number, limit: number, signal: AbortSignal): Promise<Entry[]> {
    const before = merger.known;
    const items = await merger.load(offset, limit, signal);
    const isShort = items.length < limit && !merger.isComplete && !merger.isFull;
    setPaused(isShort);
    // Rows that were not counted before
    if (merger.known !== before) redraw((count) => count + 1);
    return items;
  }

  useEffect(() => {
    merger.invalidate(ACTIVITY_KINDS);
    return followed((kinds) => {
      merger.invalidate(kinds);
      setRevision((count) => count + 1);
    });
  }, [merger, reconnections.value]);

  const hasMore = !merger.isComplete && !merger.isFull && !isPaused;
  return {
    first,
    load,
    revision,
    total: merger.known + (hasMore ? 1 : 0),
    isComplete: merger.isComplete,
    isPaused,
    isFull: merger.isFull,
    reached: merger.reached,
    further: async () => {
      await load(merger.known, pageSize, new AbortController().signal);
      setRevision((count) => count + 1);
    },
  };
}

/** Calls `changed` with the kinds that have changed, at most about once a second. Returns the end. */
function followed(changed: (kinds: Kind[]) => void): () => void {
  const waiting = new Set<Kind>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = 0;
  const end = onChanges(ACTIVITY_KINDS, (message) => {
    if (message.event === "progress") return;
    if (message.event === "resync") for (const kind of ACTIVITY_KINDS) waiting.add(kind);
    waiting.add(message.kind);
    timer ??= setTimeout(
      () => {
        timer = undefined;
        last = Date.now();
        const kinds = [...waiting];
        waiting.clear();
        changed(kinds);
      },
      Math.max(50, last + PAUSE_MS - Date.now()),
    );
  });
  return () => {
    clearTimeout(timer);
    end();
  };
}
