/** Which rows of a long list are drawn, and where: pure arithmetic. */

/** Browsers cut boxes at 16.7 to 33 million pixels; above this height scroll positions are mapped to rows. */
export const LONGEST_BOX_PX = 8_000_000;

export interface Window {
  /** The height of the box that is scrolled. */
  box: number;
  /** Rows from `first` up to and without `end` are drawn. */
  first: number;
  end: number;
  /** Where row `index` begins inside of the box. */
  top: (index: number) => number;
}

/** `overscan` rows more are drawn at both ends. */
export function windowOf(
  rows: number,
  rowHeight: number,
  viewport: number,
  scrollTop: number,
  overscan = 4,
): Window {
  const whole = rows * rowHeight;
  const box = Math.min(whole, LONGEST_BOX_PX);
  const scrolled = Math.max(0, Math.min(scrollTop, box - viewport));
  const virtual = whole > box ? (scrolled / (box - viewport)) * (whole - viewport) : scrolled;
  const first = Math.max(0, Math.floor(virtual / rowHeight) - overscan);
  const end = Math.min(rows, Math.ceil((virtual + viewport) / rowHeight) + overscan);
  return { box, first, end, top: (index) => index * rowHeight - virtual + scrolled };
}

/** The scroll position at which row `index` is seen wholly, nearest to the present one. */
export function scrollTo(
  index: number,
  rows: number,
  rowHeight: number,
  viewport: number,
  scrollTop: number,
): number {
  const whole = rows * rowHeight;
  const box = Math.min(whole, LONGEST_BOX_PX);
  if (box <= viewport) return 0;
  const scale = whole > box ? (whole - viewport) / (box - viewport) : 1;
  const virtual = Math.min(scrollTop, box - viewport) * scale;
  const begin = index * rowHeight;
  if (begin < virtual) return begin / scale;
  if (begin + rowHeight > virtual + viewport) return (begin + rowHeight - viewport) / scale;
  return scrollTop;
}

const LONGEST_CACHE_PAGES = 40;

/** The pages of a list that were loaded last. */
export class PageCache<T> {
  /** In the order of use, the last one last. */
  private readonly pages = new Map<number, T[]>();
  private stale = new Set<number>();

  constructor(readonly pageSize: number) {}

  at(index: number): T | undefined {
    return this.pages.get(Math.floor(index / this.pageSize))?.[index % this.pageSize];
  }

  put(page: number, items: T[]) {
    this.pages.delete(page);
    this.pages.set(page, items);
    this.stale.delete(page);
    for (const oldest of this.pages.keys()) {
      if (this.pages.size <= LONGEST_CACHE_PAGES) break;
      this.pages.delete(oldest);
    }
  }

  /** The pages of these rows that are missing or stale; those that are there count as used. */
  wanted(first: number, end: number): number[] {
    const wanted: number[] = [];
    for (let page = Math.floor(first / this.pageSize); page * this.pageSize < end; page++) {
      const items = this.pages.get(page);
      if (items && !this.stale.has(page)) {
        this.pages.delete(page);
        this.pages.set(page, items);
      } else wanted.push(page);
    }
    return wanted;
  }

  /** What is there may have changed: shown until it is loaded again. */
  invalidate() {
    this.stale = new Set(this.pages.keys());
  }

  get size(): number {
    return this.pages.size;
  }
}
