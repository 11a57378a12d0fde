/** Delivery keys to choose from. */
import { api } from "../../api/client";
import type { DeliveryKey } from "./types";

/** As many as a choice offers, the newest ones. */
export const MOST_KEYS = 1_000;

/** Reads all pages of the list, up to `MOST_KEYS`. */
export async function deliveryKeys(signal: AbortSignal): Promise<DeliveryKey[]> {
  const keys: DeliveryKey[] = [];
  let cursor: string | null = null;
  do {
    const page: { keys: DeliveryKey[]; next_cursor: string | null } = await api.get("/api/delivery-keys", {
      query: { limit: 100, cursor },
      signal,
    });
    keys.push(...page.keys);
    cursor = page.next_cursor;
  } while (cursor && keys.length < MOST_KEYS);
  return keys;
}
