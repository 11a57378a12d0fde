/** Durations of steps and runs: pure. */

/** The duration of a step or a run, in milliseconds. */
export function tookMs(of: { startedAt?: string | null; finishedAt?: string | null }): number | undefined {
  if (!of.startedAt || !of.finishedAt) return undefined;
  return Math.max(0, Date.parse(of.finishedAt) - Date.parse(of.startedAt));
}

/** "31 ms", "4.2 s", "2:05". */
export function formatTook(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toLocaleString(undefined, { maximumFractionDigits: 1 })} s`;
  const seconds = Math.round(ms / 1_000);
  const rest = String(seconds % 60).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes}:${rest}`
    : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}
