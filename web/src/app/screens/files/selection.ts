/** Which files are chosen. A range begins at the item that was chosen last and keeps what was chosen before. */
import type { FileRecord } from "./types";

export interface Selection {
  files: ReadonlyMap<string, FileRecord>;
  /** Where a range begins, and what was chosen besides it. */
  anchor: number;
  base: ReadonlyMap<string, FileRecord>;
}

export const NONE: Selection = { files: new Map(), anchor: 0, base: new Map() };

/** What one request of a bulk act may name is less; more requests follow one another. */
export const MOST_CHOSEN = 5_000;

export function toggled({ files }: Selection, file: FileRecord, index: number): Selection {
  const next = new Map(files);
  if (!next.delete(file.id) && next.size < MOST_CHOSEN) next.set(file.id, file);
  return { files: next, anchor: index, base: next };
}

export function withRange({ anchor, base }: Selection, range: FileRecord[]): Selection {
  const next = new Map(base);
  for (const file of range) if (next.size < MOST_CHOSEN) next.set(file.id, file);
  return { files: next, anchor, base };
}

/** Moves without Shift begin a range where they end, and leave what is chosen. */
export const anchoredAt = (selection: Selection, index: number): Selection => ({
  ...selection,
  anchor: index,
  base: selection.files,
});

export function withAll(files: FileRecord[]): Selection {
  const all = new Map(files.slice(0, MOST_CHOSEN).map((file) => [file.id, file]));
  return { files: all, anchor: 0, base: all };
}

export function without({ files, anchor }: Selection, ids: Iterable<string>): Selection {
  const next = new Map(files);
  for (const id of ids) next.delete(id);
  return { files: next, anchor, base: next };
}

export const bytesOfAll = (files: Iterable<FileRecord>) => {
  let bytes = 0;
  for (const file of files) bytes += file.size_bytes;
  return bytes;
};
