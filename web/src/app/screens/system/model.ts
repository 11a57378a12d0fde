/** Decisions of the screen System, apart from what draws them. */
import type { LogLine, LogLines, ObjectRequests, ObjectStore, Report, Setting, System } from "./types";

/** From which age a backup is old. */
const OLD_BACKUP_MS = 7 * 24 * 60 * 60 * 1_000;
/** A difference of clocks below which none is shown. */
const UNNOTICED_MS = 100;
/** Lines that a page keeps: as many as the service. */
export const MOST_LINES = 5_000;

/** The tail with new lines at its end, without what is there already, and as long as the service's own at most. */
export function appended(lines: LogLine[], more: LogLine[]): LogLine[] {
  const last = lines.at(-1)?.number ?? 0;
  const fresh = more.filter(({ number }) => number > last);
  return fresh.length === 0 ? lines : [...lines, ...fresh].slice(-MOST_LINES);
}

/** By how much a machine's clock is off, when the database's is so far ahead of it; undefined for a difference that no one notices. */
export function clockError(offsetMs: number): { seconds: string; isBehind: boolean } | undefined {
  if (Math.abs(offsetMs) < UNNOTICED_MS) return undefined;
  return { seconds: `${(Math.abs(offsetMs) / 1_000).toFixed(1)} s`, isBehind: offsetMs > 0 };
}

/** The share of reads that the cache of the object store answered; undefined before the first read. */
export function hitShare({ hits, misses }: ObjectStore["cache"]): number | undefined {
  const reads = hits + misses;
  return reads === 0 ? undefined : hits / reads;
}

/** Requests to the object store, each kind a row. */
export const requestsByKind = ({ sent, fetched }: ObjectStore): Requests[] => [
  { kind: "sent", ...sent },
  { kind: "fetched", ...fetched },
];

interface Requests extends ObjectRequests {
  kind: "sent" | "fetched";
}

/** The log as a page has it. */
export interface LogTail {
  lines: LogLine[];
  /** The number of the newest line that the service has written, of any level. */
  newest: number;
  /** Whether lines were written and dropped between two looks. */
  hasGap: boolean;
}

export const beginTail = ({ lines, newest }: LogLines): LogTail => ({ lines, newest, hasGap: false });

/** The tail with what was written since; undefined after a restart of the service, whose numbers begin at 1 again. */
export function followTail(tail: LogTail, { lines, newest, oldest }: LogLines): LogTail | undefined {
  if (newest < tail.newest) return undefined;
  return {
    lines: appended(tail.lines, lines),
    newest,
    hasGap: tail.hasGap || oldest > tail.newest + 1,
  };
}

/** The lines that hold each of the words, in any case. */
export function found(lines: LogLine[], text: string): LogLine[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return lines;
  return lines.filter((line) => {
    const whole = `${line.level} ${line.target} ${line.text}`.toLowerCase();
    return words.every((word) => whole.includes(word));
  });
}

/** The settings that hold each of the words in key, value or variable. */
export function foundSettings(settings: Setting[], text: string, onlyChanged: boolean): Setting[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return settings.filter((setting) => {
    if (onlyChanged && setting.source === "default") return false;
    const whole = `${setting.key} ${shownValue(setting.value)} ${setting.variable ?? ""}`.toLowerCase();
    return words.every((word) => whole.includes(word));
  });
}

/** A value as the settings file has it; empty for an empty text or list. */
export function shownValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(shownValue).join(", ");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? "");
}

/** How many checks warn and fail. */
export function counts(report: Report): { warned: number; failed: number } {
  const of = (level: string) => report.checks.filter((check) => check.level === level).length;
  return { warned: of("warn"), failed: of("fail") };
}

/** Findings, the worst first; those of one level in the order of the checks. */
export function worstFirst(report: Report): Report["checks"] {
  const rank = (level: string) => ["fail", "warn", "ok"].indexOf(level);
  return [...report.checks].sort((one, other) => rank(one.level) - rank(other.level));
}

/** A text that begins with the name of a protocol, in lower case, with the name as the protocol's documents write it. */
export const withProtocol = (text: string) =>
  text.replace(/^(https?|rtmps?|rtsp|srt|webrtc)\b/, (name) =>
    name === "webrtc" ? "WebRTC" : name.toUpperCase(),
  );

export const isDiskLow = ({ free, minFree }: System["disk"]) =>
  free !== null && minFree !== null && free < minFree;

export const isOldBackup = (at: string, now: number) => now - Date.parse(at) > OLD_BACKUP_MS;

/** A path as a shell takes it. */
export const quoted = (path: string) =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;

/** Lines as a text file has them. */
export const asText = (lines: LogLine[]) =>
  lines
    .map(({ time, level, target, text }) => `${time} ${level.toUpperCase().padEnd(5)} ${target}: ${text}\n`)
    .join("");
