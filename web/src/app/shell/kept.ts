/** What this browser keeps: choices of looks, never data, names or secrets. Without storage nothing is kept. */
type Key = "scheme" | "files.view" | "files.sort" | "live.view" | `columns.${string}` | "first_steps.hidden";

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
