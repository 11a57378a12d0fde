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

export type Query = Record<string, string | number | boolean | null | undefined>;
