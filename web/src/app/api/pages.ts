/** Lists by cursors: pure. */

/** One answer; `next` is the cursor of the page after it, null at the end. */
export interface ListPage<Item> {
  items: Item[];
  next: string | null | undefined;
}

export interface Pages<Item> {
  items: Item[];
  hasMore: boolean;
}

/** Reads at most so many pages, from the first on. */
export async function readPages<Item>(
  load: (cursor: string | null) => Promise<ListPage<Item>>,
  most: number,
): Promise<Pages<Item>> {
  const items: Item[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < most; page++) {
    const answer: ListPage<Item> = await load(cursor);
    items.push(...answer.items);
    cursor = answer.next ?? null;
    if (!cursor) break;
  }
  return { items, hasMore: cursor !== null };
}
