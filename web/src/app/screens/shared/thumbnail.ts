/** Addresses of small images of stored files. */
import { onThisOrigin } from "../../api/base";

/** The service's own preview of a file, `width` wide; never the stored bytes, which may be an SVG. */
export const thumbnailOf = (
  file: { preview_url?: string | null },
  width: 320 | 640 | 1280 | 2560,
): string | null => (file.preview_url ? onThisOrigin(file.preview_url, { w: String(width) }) : null);
