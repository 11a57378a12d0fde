/** Delivery keys to choose from. */
import { api } from "../../api/client";
import { readPages } from "../../api/pages";
import type { DeliveryKey } from "./types";

/** As many as a choice offers, the newest ones. */
export const MOST_KEYS = 1_000;
const PAGE = 100;

/** Reads all pages of the list, up to `MOST_KEYS`. */
export async function deliveryKeys(signal: AbortSignal): Promise<DeliveryKey[]> {
  const list = await readPages(async (cursor) => {
    const page = await api.get<{ keys: DeliveryKey[]; next_cursor: string | null }>("/api/delivery-keys", {
      query: { limit: PAGE, cursor },
      signal,
    });
    return { items: page.keys, next: page.next_cursor };
  }, MOST_KEYS / PAGE);
  return list.items;
}
