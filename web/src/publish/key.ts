/** The input's slug and the stream key, as they come to the publish page. Pure. */

/** Reads the slug out of `/live/publish/{inputSlug}`. */
export function slugIn(pathname: string): string {
  const name = pathname.split("/").filter(Boolean).pop() ?? "";
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Reads the key out of a fragment, `#key=…`; empty when there is none. */
export function keyIn(hash: string): string {
  return new URLSearchParams(hash.replace(/^#/, "")).get("key")?.trim() ?? "";
}

/** The credential of WHIP, `{inputSlug}.{streamKey}`; what was pasted may have the slug already, as OBS wants it. */
export function credential(slug: string, pasted: string): string {
  const key = pasted.trim();
  return key.startsWith(`${slug}.`) ? key : `${slug}.${key}`;
}
