/** Numbers, bytes, times and durations as the user's language writes them. */

const number = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const dateOnly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

/** With a capital first letter: words of the service begin in lower case. */
export const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export const formatNumber = (value: number) => number.format(value);
export const formatCompact = (value: number) => compact.format(value);
export const formatPercent = (share: number, digits = 0) =>
  new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: digits }).format(share);

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Decimal units, as disks are sold and the service's settings count. */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toLocaleString(undefined, { maximumFractionDigits: digits })} ${UNITS[unit]}`;
}

export function formatBits(bitsPerSecond: number): string {
  if (bitsPerSecond >= 999_500)
    return `${(bitsPerSecond / 1e6).toLocaleString(undefined, { maximumFractionDigits: 1 })} Mbit/s`;
  return `${Math.round(bitsPerSecond / 1_000).toLocaleString()} kbit/s`;
}

/** "0:14", "1:12:09", "3 d 4 h". */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const hours = Math.floor(seconds / 3_600);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  const minutes = Math.floor(seconds / 60) % 60;
  const rest = String(seconds % 60).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

export const formatDateTime = (at: Date) => dateTime.format(at);
export const formatExactly = (at: Date) => exact.format(at);
export const formatDate = (at: Date) => dateOnly.format(at);
export const formatTime = (at: Date) => timeOnly.format(at);

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

/** "5 min. ago", "in 2 hr."; a date when it is more than a week away. */
export function formatAgo(at: Date, now: number): string {
  const seconds = (at.getTime() - now) / 1_000;
  const size = Math.abs(seconds);
  if (size > 7 * 86_400) return dateOnly.format(at);
  for (const [unit, length] of STEPS) {
    if (size >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return size < 10 ? "just now" : relative.format(Math.trunc(seconds), "second");
}
