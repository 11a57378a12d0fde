/**
 * A list or grid of up to hundreds of thousands of items of one height, of which only the visible ones are in the page.
 * Pages are loaded by offset where the user stops scrolling. One item takes part in the tab order; arrows, Home, End,
 * Page Up and Page Down move in the list, and the focused item stays in the page wherever the user scrolls.
 */
import type { ComponentChildren, HTMLAttributes } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { reconnections } from "../api/connection";
import { type ApiError, asApiError, isAborted } from "../api/error";
import { ErrorState } from "./states";
import { PageCache, scrollTo, windowOf } from "./windowing";

export interface VirtualListProps<T> {
  label: string;
  /** How many there are; known from the first page or a count. */
  total: number;
  rowHeight: number;
  /** More than one makes a grid. */
  columns?: number;
  pageSize?: number;
  load: (offset: number, limit: number, signal: AbortSignal) => Promise<T[]>;
  /** Another one: other items, from the top. */
  query: string;
  /** Another one: the same items, which may have changed. */
  revision?: number;
  /** The cells of an item; undefined while it loads. In a list: `<span role="gridcell">`s; in a grid: the inside of the one cell. */
  children: (item: T | undefined, index: number) => ComponentChildren;
  /** Column heads of a list. */
  head?: ComponentChildren;
  isSelected?: (item: T) => boolean;
  onOpen?: (item: T, index: number) => void;
  /** Every other key on an item, and moves with Shift: for selection, preview, deletion. */
  onKey?: (event: KeyboardEvent, item: T | undefined, index: number) => void;
  onPointer?: (event: MouseEvent, item: T, index: number) => void;
  /** The item that a key moved the focus to. */
  onActive?: (index: number, event: KeyboardEvent, item: T | undefined) => void;
  /** Set to what finds an item that is loaded. */
  lookup?: { current: (index: number) => T | undefined };
  /** Rows that are drawn beyond what is seen, at both ends. */
  overscan?: number;
  itemProps?: (item: T | undefined, index: number) => HTMLAttributes<HTMLDivElement>;
  class?: string;
}

/** Loading waits for so long at one place. */
const SETTLE_MS = 60;

export function VirtualList<T>(props: VirtualListProps<T>) {
  const { label, total, rowHeight, columns = 1, pageSize = 100, query, revision = 0, head } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState(0);
  const [error, setError] = useState<ApiError>();
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  // Another query has pages of its own
  const cache = useMemo(() => new PageCache<T>(pageSize), [query, pageSize]);
  const rows = Math.ceil(total / columns);
  const shown = windowOf(rows, rowHeight, view.height, view.top, props.overscan);
  if (props.lookup) props.lookup.current = (index) => cache.at(index);
  const moved = useRef(false);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  // Another query begins at the top
  useLayoutEffect(() => {
    if (scroller.current) scroller.current.scrollTop = 0;
    setActive(0);
  }, [query]);

  // A new revision or connection makes what is there stale
  useEffect(() => cache.invalidate(), [revision, reconnections.value]);

  const [first, end] = [shown.first * columns, Math.min(total, shown.end * columns)];
  const load = useRef(props.load);
  load.current = props.load;
  // The ranges and what makes them stale
  useEffect(() => {
    if (end === 0) return;
    const abort = new AbortController();
    const timer = setTimeout(
      () => {
        for (const page of cache.wanted(first, end)) {
          load.current(page * pageSize, pageSize, abort.signal).then(
            (items) => {
              if (abort.signal.aborted) return;
              cache.put(page, items);
              setError(undefined);
              redraw(undefined);
            },
            (thrown) => {
              if (!abort.signal.aborted && !isAborted(thrown)) setError(asApiError(thrown));
            },
          );
        }
      },
      cache.size === 0 ? 0 : SETTLE_MS,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [cache, first, end, revision, reconnections.value, error === undefined]);

  const goTo = (index: number, event: KeyboardEvent) => {
    const next = Math.max(0, Math.min(total - 1, index));
    const element = scroller.current;
    if (element)
      element.scrollTop = scrollTo(
        Math.floor(next / columns),
        rows,
        rowHeight,
        view.height,
        element.scrollTop,
      );
    moved.current = true;
    setActive(next);
    props.onActive?.(next, event, cache.at(next));
  };

  // Another number of columns puts items into other rows: the active one stays in view, and keeps the focus
  const hadFocus = Boolean(scroller.current?.contains(document.activeElement));
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && active > 0)
      element.scrollTop = scrollTo(
        Math.floor(active / columns),
        rows,
        rowHeight,
        view.height,
        element.scrollTop,
      );
  }, [columns]);
  useLayoutEffect(() => {
    const isLost = hadFocus && !scroller.current?.contains(document.activeElement);
    if (!moved.current && !isLost) return;
    moved.current = false;
    scroller.current?.querySelector<HTMLElement>(`[data-index="${active}"]`)?.focus({ preventScroll: true });
  });

  const onKeyDown = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (!target.matches("[data-index]") || event.ctrlKey || event.metaKey || event.altKey) {
      if (target.matches("[data-index]")) props.onKey?.(event, cache.at(active), active);
      return;
    }
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1) * columns;
    const isRtl = getComputedStyle(target).direction === "rtl";
    const steps: Record<string, number> = {
      ArrowDown: columns,
      ArrowUp: -columns,
      ...(columns > 1 ? { ArrowRight: isRtl ? -1 : 1, ArrowLeft: isRtl ? 1 : -1 } : {}),
      PageDown: page,
      PageUp: -page,
      Home: -total,
      End: total,
    };
    const step = steps[event.key];
    const item = cache.at(active);
    if (step !== undefined) {
      event.preventDefault();
      goTo(active + step, event);
    } else if (event.key === "Enter" && item !== undefined && props.onOpen) {
      event.preventDefault();
      props.onOpen(item, active);
    } else props.onKey?.(event, item, active);
  };

  const drawn = Array.from({ length: Math.max(0, shown.end - shown.first) }, (_, i) => shown.first + i);
  const activeRow = Math.floor(active / columns);
  if (total > 0 && activeRow < rows && (activeRow < shown.first || activeRow >= shown.end))
    drawn.push(activeRow);

  const item = (index: number) => {
    const value = cache.at(index);
    const extra = props.itemProps?.(value, index) ?? {};
    return {
      ...extra,
      "data-index": index,
      tabIndex: index === Math.min(active, total - 1) ? 0 : -1,
      "aria-selected": props.isSelected ? value !== undefined && props.isSelected(value) : undefined,
      onFocus: () => setActive(index),
      onClick: (event: MouseEvent) => value !== undefined && props.onPointer?.(event, value, index),
      onDblClick: () => value !== undefined && props.onOpen?.(value, index),
    };
  };

  return (
    <div class={`vlist ${props.class ?? ""}`}>
      {error && <ErrorState error={error} retry={() => setError(undefined)} />}
      <div
        class="vlist-grid"
        role="grid"
        aria-label={label}
        aria-rowcount={rows + (head ? 1 : 0)}
        aria-multiselectable={props.isSelected ? true : undefined}
        onKeyDown={onKeyDown}
      >
        {head && (
          <div class="vlist-head" role="row" aria-rowindex={1}>
            {head}
          </div>
        )}
        <div
          class="vlist-scroll"
          role="rowgroup"
          tabIndex={-1}
          ref={scroller}
          onScroll={(event) =>
            setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })
          }
        >
          <div class="vlist-box" role="presentation" style={{ height: `${shown.box}px` }}>
            {drawn.map((row) => {
              const place = { transform: `translateY(${shown.top(row)}px)`, height: `${rowHeight}px` };
              const rowIndex = row + (head ? 2 : 1);
              if (columns === 1) {
                const { class: extra, ...rest } = item(row) as { class?: string };
                return (
                  <div
                    key={row}
                    class={`vlist-row ${extra ?? ""}`}
                    role="row"
                    aria-rowindex={rowIndex}
                    style={place}
                    {...rest}
                  >
                    {props.children(cache.at(row), row)}
                  </div>
                );
              }
              const cells = Array.from(
                { length: Math.min(columns, total - row * columns) },
                (_, i) => row * columns + i,
              );
              return (
                <div
                  key={row}
                  class="vlist-row vlist-cells"
                  role="row"
                  aria-rowindex={rowIndex}
                  style={{ ...place, "--columns": String(columns) }}
                >
                  {cells.map((index) => {
                    const { class: extra, ...rest } = item(index) as { class?: string };
                    return (
                      <div key={index} class={`vlist-cell ${extra ?? ""}`} role="gridcell" {...rest}>
                        {props.children(cache.at(index), index)}
                      </div>
                    );
                  })}
                </div>
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}
