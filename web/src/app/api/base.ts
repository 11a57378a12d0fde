/** The path below which the service is reached: empty, or that of a proxy which passes everything below it on. */
export const BASE = new URL(import.meta.url).pathname
  .replace(/\/(assets|src)\/.*$/, "")
  .replace(/^\/.*\.m?js$/, "");

/** The address of a path of the service, with its query. Values that are empty, null or undefined are left out. */
export function address(path: string, query?: Query): string {
  const given = Object.entries(query ?? {}).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${BASE}${path}${search ? `?${search}` : ""}`;
}

/** The address under which this browser reaches the service, for commands and code of others. */
export const serviceUrl = () => location.origin + BASE;

/**
 * The address on this origin of one in an answer: those are absolute, by the name under which the service knows itself.
 * `query` is set in it.
 */
export function onThisOrigin(url: string, query: Record<string, string> = {}): string {
  const found = new URL(url, "http://any");
  for (const [name, value] of Object.entries(query)) found.searchParams.set(name, value);
  const isBelow = found.pathname.startsWith(`${BASE}/`);
  return `${isBelow ? "" : BASE}${found.pathname}${found.search}`;
}

export type Query = Record<string, string | number | boolean | null | undefined>;
