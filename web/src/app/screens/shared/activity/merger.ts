/**
 * One list, newest first, of many lists that have cursors of their own: merged as it is read, without a gap and without
 * keeping what was read.
 *
 * The list is cut into pages. Of each page only its beginning is kept: the place in every source, as the cursor, the id and
 * the time of the item that was taken last, and the time of the item behind it. From there a page is read again after a
 * change: what was added on top belongs to the first page, which grows; what was deleted is missing from its page; no item
 * moves to another one.
 */
import type { Kind } from "../../../api/changes";
import type { ListPage } from "../../../api/pages";

export interface Timed {
  id: string;
  /** Unix milliseconds. */
  at: number;
}

/** A list by cursors, newest first. */
export interface Source<Item extends Timed> {
  key: string;
  /** Kinds of changes after which it is asked again. */
  kinds: Kind[];
  /** No item of it is newer: it is not asked before the list has come to this time. */
  upTo?: number;
  load: (cursor: string | null, signal: AbortSignal) => Promise<ListPage<Item>>;
}

/** Sources that are found page by page, ordered by the time of their newest item: one for each live input. */
export interface Family<Item extends Timed> {
  key: string;
  kinds: Kind[];
  /** `upTo` is that of the sources behind these; null when there are none. */
  load: (
    offset: number,
    signal: AbortSignal,
  ) => Promise<{ sources: Source<Item>[]; count: number; upTo: number | null }>;
}

export interface MergerOptions<Item> {
  pageSize: number;
  /** Older ones are left out. */
  since?: number;
  keep?: (item: Item) => boolean;
  /** Requests after which a page ends, however little was found. */
  mostRequests?: number;
}

/** The item that was taken last from a source, and the cursor of the answer that it was in. */
interface Taken {
  cursor: string | null;
  id: string;
  at: number;
}

/** The beginning of a page: everything newer is in the pages before. */
interface Beginning {
  at: number;
  taken: Map<string, Taken>;
  /** Times of the items that sources which were asked have next; minus infinity at their ends. */
  ahead: Map<string, number>;
}

interface FamilyState<Item extends Timed> {
  family: Family<Item>;
  offset: number;
  /** Sources that are not known yet have nothing newer. */
  upTo: number;
}

const NEVER = Number.NEGATIVE_INFINITY;
const NOW = Number.POSITIVE_INFINITY;

const MOST_PAGES_KEPT = 40;
const MOST_ANSWERS_KEPT = 120;
const MOST_BEGINNINGS = 400;
/** Sources that are asked for the first time at once. */
const STARTED_AT_ONCE = 8;
const MOST_REQUESTS = 40;
/** In pages: of how many the first one consists before the list begins again. */
const LONGEST_FIRST_PAGE = 3;

export class Merger<Item extends Timed> {
  private readonly sources = new Map<string, Source<Item>>();
  private readonly families: FamilyState<Item>[];
  private beginnings: Beginning[] = [{ at: NOW, taken: new Map(), ahead: new Map() }];
  private sizes: number[] = [];
  private readonly pages = new Kept<number, Item[]>(MOST_PAGES_KEPT);
  private readonly answers = new Kept<string, { source: string; page: ListPage<Item> }>(MOST_ANSWERS_KEPT);
  private hasEnded = false;
  /** Of the page that is being read. */
  private requests = 0;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    sources: Source<Item>[],
    families: Family<Item>[],
    private readonly options: MergerOptions<Item>,
  ) {
    for (const source of sources) this.sources.set(source.key, source);
    this.families = families.map((family) => ({ family, offset: 0, upTo: NOW }));
  }

  /** Items that are known to be there. */
  get known(): number {
    return this.sizes.reduce((sum, size) => sum + size, 0);
  }

  /** False when older ones may follow. */
  get isComplete(): boolean {
    return this.hasEnded;
  }

  /** True when older ones may follow and are not listed: a filter leads to them. */
  get isFull(): boolean {
    return !this.hasEnded && this.sizes.length >= MOST_BEGINNINGS;
  }

  /** The time that the list has come to; null before its first item, and once it is complete. */
  get reached(): number | null {
    const at = this.beginnings[this.beginnings.length - 1]?.at ?? NOW;
    return this.hasEnded || at === NOW ? null : at;
  }

  /** Items from `offset` on: fewer than `limit` at the end, and where a page was cut short for its requests. */
  load(offset: number, limit: number, signal: AbortSignal): Promise<Item[]> {
    return this.inTurn(async () => {
      await this.extend(offset + limit, signal);
      const items: Item[] = [];
      let start = 0;
      for (let page = 0; page < this.sizes.length && start < offset + limit; page++) {
        // A page without items may have some now
        const isSought = start + (this.sizes[page] ?? 0) >= offset;
        const found = isSought ? (this.pages.get(page) ?? (await this.read(page, signal)).items) : [];
        items.push(...found.slice(Math.max(0, offset - start), offset + limit - start));
        start += isSought ? found.length : (this.sizes[page] ?? 0);
      }
      return items;
    });
  }

  /** What is there of these kinds may have changed, and more may have come. */
  invalidate(kinds: Kind[]) {
    const isOf = (of: { kinds: Kind[] }) => of.kinds.some((kind) => kinds.includes(kind));
    const stale = new Set([...this.sources.values()].filter(isOf).map(({ key }) => key));
    this.answers.drop(({ source }) => stale.has(source));
    const families = this.families.filter(({ family }) => isOf(family));
    for (const state of families) Object.assign(state, { offset: 0, upTo: NOW });
    if (stale.size + families.length > 0) this.pages.drop(() => true);
  }

  /** One at a time: each page begins where the one before ends. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = this.turn.then(work, work);
    this.turn = next.catch(() => {});
    return next;
  }

  /** Reads further pages, until `wanted` items are known or a page was cut short. */
  private async extend(wanted: number, signal: AbortSignal) {
    while (!this.hasEnded && !this.isFull && this.known < wanted) {
      const { isCut } = await this.read(this.sizes.length, signal);
      if (isCut) return;
    }
  }

  /** Reads a page, for the first time or again. */
  private async read(page: number, signal: AbortSignal): Promise<{ items: Item[]; isCut: boolean }> {
    const next = this.beginnings[page + 1];
    const merged = await this.merge(this.beginnings[page] as Beginning, next, signal);
    if (page === 0 && next && merged.items.length > LONGEST_FIRST_PAGE * this.options.pageSize) {
      this.beginnings.length = 1;
      this.sizes = [];
      this.hasEnded = false;
      this.pages.drop(() => true);
      return this.read(0, signal);
    }
    this.sizes[page] = merged.items.length;
    this.pages.put(page, merged.items);
    if (!next) this.hasEnded = merged.end === null;
    if (!next && merged.end) this.beginnings[page + 1] = merged.end;
    return merged;
  }

  /**
   * The items from one beginning to the next; without a next one as many as a page has. `end` is null when nothing follows,
   * `isCut` says that the requests of the page were used up.
   */
  private async merge(begin: Beginning, next: Beginning | undefined, signal: AbortSignal) {
    const { pageSize, since = NEVER, keep = () => true, mostRequests = MOST_REQUESTS } = this.options;
    const readers = new Map<string, Reader<Item>>();
    const taken = new Map(begin.taken);
    const seen = new Set<string>();
    const items: Item[] = [];
    let at = begin.at;
    this.requests = 0;
    for (;;) {
      const isReady = await this.start(readers, begin, next, mostRequests, signal);
      const newest = newestOf(readers);
      if (isReady && (!newest?.head || newest.head.at < since)) return { items, end: null, isCut: false };
      if (!isReady || !newest?.head || (!next && items.length >= pageSize))
        return { items, end: { at, taken, ahead: aheadOf(begin, readers) }, isCut: !isReady };
      const { head } = newest;
      taken.set(newest.source.key, newest.take());
      at = Math.min(at, head.at);
      // What changes its state meanwhile may be in two of the sources
      if (keep(head) && !seen.has(head.id)) items.push(head);
      seen.add(head.id);
    }
  }

  /** Asks what may have the next item; false when the requests of the page are used up before that is known. */
  private async start(
    readers: Map<string, Reader<Item>>,
    begin: Beginning,
    next: Beginning | undefined,
    mostRequests: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (;;) {
      const head = newestOf(readers)?.head?.at ?? NEVER;
      const bound = Math.max(head, next?.at ?? NEVER, this.options.since ?? NEVER);
      const family = this.families.find(({ upTo }) => upTo > NEVER && upTo >= bound);
      const first = Math.max(bound, family?.upTo ?? NEVER);
      const latest = ({ key, upTo = NOW }: Source<Item>) => Math.min(begin.ahead.get(key) ?? upTo, begin.at);
      const missing = [...this.sources.values()]
        .filter((source) => !readers.has(source.key) && latest(source) > NEVER && latest(source) >= first)
        .sort((a, b) => (latest(b) > latest(a) ? 1 : latest(b) < latest(a) ? -1 : 0))
        .slice(0, STARTED_AT_ONCE);
      const waiting = [...readers.values()].filter((reader) => reader.isWaiting);
      if (!family && missing.length === 0 && waiting.length === 0) return true;
      if (!next && this.requests >= mostRequests) return false;
      if (family && missing.length + waiting.length === 0) {
        await this.find(family, signal);
        continue;
      }
      for (const source of missing) {
        const ask = (cursor: string | null) => this.ask(source, cursor, signal);
        const reader = new Reader(source, begin, next, ask);
        readers.set(source.key, reader);
        if (reader.isWaiting) waiting.push(reader);
      }
      await Promise.all(waiting.map((reader) => reader.fill()));
    }
  }

  private async find(state: FamilyState<Item>, signal: AbortSignal) {
    this.requests += 1;
    const { sources, count, upTo } = await state.family.load(state.offset, signal);
    for (const source of sources) this.sources.set(source.key, source);
    state.offset += count;
    state.upTo = upTo ?? NEVER;
  }

  private async ask(source: Source<Item>, cursor: string | null, signal: AbortSignal) {
    const key = `${source.key} ${cursor ?? ""}`;
    const known = this.answers.get(key);
    if (known) return known.page;
    this.requests += 1;
    const page = await source.load(cursor, signal);
    this.answers.put(key, { source: source.key, page });
    return page;
  }
}

/** A number of entries, those used last. */
class Kept<Key, Value> {
  private readonly entries = new Map<Key, Value>();

  constructor(private readonly most: number) {}

  get(key: Key): Value | undefined {
    const value = this.entries.get(key);
    if (value !== undefined) this.put(key, value);
    return value;
  }

  put(key: Key, value: Value) {
    this.entries.delete(key);
    this.entries.set(key, value);
    for (const oldest of this.entries.keys()) {
      if (this.entries.size <= this.most) return;
      this.entries.delete(oldest);
    }
  }

  drop(isDropped: (value: Value) => boolean) {
    for (const [key, value] of this.entries) if (isDropped(value)) this.entries.delete(key);
  }
}

function newestOf<Item extends Timed>(readers: Map<string, Reader<Item>>): Reader<Item> | undefined {
  let newest: Reader<Item> | undefined;
  for (const reader of readers.values()) {
    if (reader.head && (!newest?.head || reader.head.at > newest.head.at)) newest = reader;
  }
  return newest;
}

/** The times of what the sources have next, those that were not asked for this page included. */
function aheadOf<Item extends Timed>(
  begin: Beginning,
  readers: Map<string, Reader<Item>>,
): Map<string, number> {
  const ahead = new Map(begin.ahead);
  for (const [key, reader] of readers) {
    if (reader.head) ahead.set(key, reader.head.at);
    else if (!reader.isWaiting) ahead.set(key, NEVER);
  }
  return ahead;
}

/** The items of one source between the beginnings of two pages. */
class Reader<Item extends Timed> {
  private buffer: Item[] = [];
  /** Of the items in the buffer. */
  private cursor: string | null;
  /** Undefined: the source has not been asked. */
  private next: string | null | undefined;
  private readonly after: Taken | undefined;
  private readonly last: Taken | undefined;
  private isSkipping = true;
  private isEnded: boolean;

  constructor(
    readonly source: Source<Item>,
    private readonly begin: Beginning,
    private readonly end: Beginning | undefined,
    private readonly ask: (cursor: string | null) => Promise<ListPage<Item>>,
  ) {
    this.after = begin.taken.get(source.key);
    this.last = end?.taken.get(source.key);
    this.cursor = this.after?.cursor ?? null;
    // Nothing was taken between the two beginnings
    this.isEnded = this.last !== undefined && this.last.id === this.after?.id;
  }

  get head(): Item | undefined {
    return this.buffer[0];
  }

  get isWaiting(): boolean {
    return this.buffer.length === 0 && !this.isEnded;
  }

  take(): Taken {
    const { id, at } = this.buffer.shift() as Item;
    return { cursor: this.cursor, id, at };
  }

  async fill() {
    const cursor = this.next === undefined ? this.cursor : this.next;
    const { items, next } = await this.ask(cursor);
    this.cursor = cursor;
    this.next = next ?? null;
    if (this.next === null) this.isEnded = true;
    // A copy: the answer is kept for others
    this.buffer = [...this.beforeEnd(this.isSkipping ? this.behindBeginning(items) : items)];
  }

  private behindBeginning(items: Item[]): Item[] {
    const { after, begin } = this;
    const found = after ? items.findIndex(({ id }) => id === after.id) : -1;
    const behind =
      found >= 0
        ? items.slice(found + 1)
        : items.filter(({ at }) => (after ? at < after.at : at <= begin.at));
    if (found >= 0 || behind.length > 0) this.isSkipping = false;
    return behind;
  }

  private beforeEnd(items: Item[]): Item[] {
    const { end, last } = this;
    if (!end) return items;
    const found = last ? items.findIndex(({ id }) => id === last.id) : -1;
    const count = found >= 0 ? found + 1 : items.findIndex(({ at }) => (last ? at < last.at : at <= end.at));
    if (count < 0) return items;
    this.isEnded = true;
    return items.slice(0, count);
  }
}
