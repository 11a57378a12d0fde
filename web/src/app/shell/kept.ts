/**
 * What this browser keeps: choices of looks, and which uploads were begun; never data, names or secrets. Without storage
 * nothing is kept.
 */
type Key =
  | "scheme"
  | "files.view"
  | "files.sort"
  | "live.view"
  | "workflows.view"
  | "convert.choice"
  | `columns.${string}`
  | "first_steps.hidden"
  | `tus.${string}`;

/** Reads a choice, or writes it (null removes it). */
export function kept(key: Key, value?: string | null): string | null {
  try {
    const name = `sluice.${key}`;
    if (value === undefined) return localStorage.getItem(name);
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
    return value;
  } catch {
    return null;
  }
}

/** What is kept below `tus.`: the rest of the keys, with their values. */
export function keptUploads(): [name: string, value: string][] {
  const prefix = "sluice.tus.";
  try {
    return Object.entries(localStorage)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), String(value)]);
  } catch {
    return [];
  }
}
