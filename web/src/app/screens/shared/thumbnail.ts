/** Addresses of small images of stored files. */

/** The service's own preview of a file on this origin, `width` wide; never the stored bytes, which may be an SVG. */
export function thumbnailOf(file: { preview_url?: string | null }, width: 320 | 1280): string | null {
  if (!file.preview_url) return null;
  const url = new URL(file.preview_url, location.href);
  url.searchParams.set("w", String(width));
  return url.pathname + url.search;
}
