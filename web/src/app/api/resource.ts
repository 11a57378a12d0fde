/** What a screen shows of the service: loaded, refreshed when it changes, with its error. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Kind, onChanges } from "./changes";
import { reconnections } from "./connection";
import { type ApiError, asApiError, isAborted } from "./error";
import { type ListPage, type Pages, readPages } from "./pages";

export interface Resource<T> {
  /** The last data that came; stays while it is loaded again. */
  data: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
  reload: () => void;
  /** Shows what a change answered with, before the service has been asked again. */
  set: (data: T | ((before: T | undefined) => T | undefined)) => void;
}

export interface ResourceOptions {
  /** Kinds of changes (`changes.ts`) after which it is loaded again. */
  on?: Kind[];
  /** Only changes of this one. */
  id?: string;
  /** Keep showing the old data while other dependencies load: for filters and pages, not for another thing. */
  keep?: boolean;
  /** False: do not load now. */
  when?: boolean;
}

/** Between two refreshes for changes, so that a busy installation is not asked at each of them. */
const REFRESH_PAUSE_MS = 900;

/** Time to leave a screen for the tab that has deleted what it shows. */
const GONE_PAUSE_MS = 2_000;

/**
 * Loads by `load` at first and whenever one of `deps` changes; after "too many requests" again when its time is over.
 *
 *     const inputs = useResource((signal) => api.get<Inputs>("/api/live/inputs", { query: { q }, signal }), [q], { on: ["live_input"] });
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  deps: unknown[],
  { on, id, keep = false, when = true }: ResourceOptions = {},
): Resource<T> {
  const [state, setState] = useState<{
    data?: T | undefined;
    error?: ApiError | undefined;
    isLoading: boolean;
  }>({
    isLoading: when,
  });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  const loader = useRef(load);
  loader.current = load;
  const identity = useRef<unknown[] | null>(null);

  // The caller names what its loader depends on
  useEffect(() => {
    if (!when) return;
    const abort = new AbortController();
    let again: ReturnType<typeof setTimeout> | undefined;
    const isOther = identity.current?.some((value, i) => value !== deps[i]);
    identity.current = deps;
    setState((before) => ({
      data: isOther && !keep ? undefined : before.data,
      error: undefined,
      isLoading: true,
    }));
    loader.current(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, isLoading: false }),
      (thrown) => {
        if (abort.signal.aborted || isAborted(thrown)) return;
        const error = asApiError(thrown);
        setState((before) => ({ data: before.data, error, isLoading: false }));
        if (error.retryAfter) again = setTimeout(reload, error.retryAfter * 1_000);
      },
    );
    return () => {
      abort.abort();
      clearTimeout(again);
    };
  }, [...deps, round, when, reconnections.value]);

  const kinds = on?.join();
  useEffect(() => {
    if (!kinds || !when) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const end = onChanges(
      kinds.split(",") as Kind[],
      (message) => {
        if (message.event === "progress") return;
        const isGone = id !== undefined && message.event === "change" && message.action === "deleted";
        if (timer && !isGone) return;
        // A refresh for an earlier change would ask for what is gone.
        clearTimeout(timer);
        const pause = isGone ? GONE_PAUSE_MS : Math.max(50, last + REFRESH_PAUSE_MS - Date.now());
        timer = setTimeout(() => {
          timer = undefined;
          last = Date.now();
          reload();
        }, pause);
      },
      id,
    );
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [kinds, id, when, reload]);

  const set = useCallback((next: T | ((before: T | undefined) => T | undefined)) => {
    setState((before) => ({
      ...before,
      data: typeof next === "function" ? (next as (data: T | undefined) => T | undefined)(before.data) : next,
    }));
  }, []);
  return { data: state.data, error: state.error, isLoading: state.isLoading, reload, set };
}

/**
 * The pages of a list by cursors, from the first to the one that `more` asked for last. Another `key` is another list, which
 * begins at its first page; `on` as for `useResource`.
 *
 *     const shares = usePages(async (cursor, signal) => {
 *       const { shares, nextCursor } = await api.get<Shares>("/api/shares", { query: { limit: 100, cursor }, signal });
 *       return { items: shares, next: nextCursor };
 *     }, "shares", ["share"]);
 */
export function usePages<Item>(
  load: (cursor: string | null, signal: AbortSignal) => Promise<ListPage<Item>>,
  key: string,
  on: Kind[],
): Resource<Pages<Item>> & { more: () => void } {
  const [asked, setAsked] = useState({ key, pages: 1 });
  const pages = asked.key === key ? asked.pages : 1;
  const all = (signal: AbortSignal) => readPages((cursor) => load(cursor, signal), pages);
  const list = useResource(all, [key, pages], { on, keep: true });
  return { ...list, more: () => setAsked({ key, pages: pages + 1 }) };
}

/** A number that grows with each new answer, so that the pages of a virtual list are asked for again. */
export function useRevision(data: unknown): number {
  const state = useRef({ data, count: 0 });
  if (state.current.data !== data) state.current = { data, count: state.current.count + 1 };
  return state.current.count;
}

/** Whether `active` has lasted for `delay` ms: skeletons appear late, so that fast answers do not flash. */
export function useDelayed(active: boolean, delay = 150): boolean {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!active) return setShown(false);
    const timer = setTimeout(() => setShown(true), delay);
    return () => clearTimeout(timer);
  }, [active, delay]);
  return active && shown;
}
