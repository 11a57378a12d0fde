/**
 * Which uploads this browser began: their ids under a print of the file, so that an upload continues after a reload when
 * the same file is chosen again, and a file that is there already is not sent twice. Names are not kept.
 */
import { kept, keptUploads } from "../../../shell/kept";

export interface Remembered {
  print: string;
  id: string;
  /** Milliseconds. */
  at: number;
  isDone: boolean;
}

/** The service keeps an upload for a day after its last bytes. */
const KEPT_MS = 24 * 3_600_000;
const MOST = 20_000;

/** What makes a file the same one again: its name, size and time, where it goes, and whose it is. */
export function printOf(
  account: string,
  folder: string,
  file: Pick<File, "name" | "size" | "lastModified">,
): string {
  const text = [account, folder, file.name, file.size, file.lastModified].join("\u0000");
  return hash(text, 0x811c9dc5) + hash(text, 0x1b873593);
}

/** FNV-1a; `crypto.subtle` is not there on plain HTTP. */
function hash(text: string, seed: number): string {
  let value = seed;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value >>> 0).toString(36).padStart(7, "0");
}

export function remember(print: string, id: string, isDone: boolean, now = Date.now()) {
  kept(`tus.${print}`, `${id} ${now} ${isDone ? "done" : "open"}`);
}

export const forget = (print: string) => kept(`tus.${print}`, null);

export function recall(print: string, now = Date.now()): Remembered | null {
  return parsed(print, kept(`tus.${print}`) ?? "", now);
}

export function parsed(print: string, value: string, now: number): Remembered | null {
  const [id, at, state] = value.split(" ");
  if (!id || !/^[\w-]+$/.test(id) || !(now - Number(at) < KEPT_MS)) return null;
  return { print, id, at: Number(at), isDone: state === "done" };
}

/** Everything that is remembered and not too old, newest first; the rest is forgotten. */
export function recallAll(now = Date.now()): Remembered[] {
  const all: Remembered[] = [];
  for (const [print, value] of keptUploads()) {
    const found = parsed(print, value, now);
    if (found) all.push(found);
    else forget(print);
  }
  all.sort((a, b) => b.at - a.at);
  for (const { print } of all.splice(MOST)) forget(print);
  return all;
}
