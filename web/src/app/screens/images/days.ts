/** Days with deliveries as a row without gaps: a day on which nothing was delivered is a zero. */
import type { Statistics, Sums } from "./types";

const DAY_S = 86_400;

/** The last `count` days up to `now`, the oldest first; `at` is the day's begin in UTC, in Unix seconds. */
export function everyDay(days: Statistics["days"], count: number, now: Date): (Sums & { at: number })[] {
  const known = new Map(days.map((day) => [Date.parse(`${day.date}T00:00:00Z`) / 1_000, day]));
  const today = Math.floor(now.getTime() / 1_000 / DAY_S) * DAY_S;
  return Array.from({ length: count }, (_, i) => {
    const at = today - (count - 1 - i) * DAY_S;
    const { hits = 0, misses = 0, bytes = 0 } = known.get(at) ?? {};
    return { at, hits, misses, bytes };
  });
}
