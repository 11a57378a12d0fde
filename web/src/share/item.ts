/** One file of the page, read from its entry in the list that the server rendered. */

export type Kind = "image" | "video" | "audio" | "pdf" | "other";

export interface Item {
  id: string;
  kind: Kind;
  name: string;
  /** Type, size and measures, as a person reads them. */
  facts: string;
  /** The bytes, to be shown; null where they may only be downloaded. */
  inlineUrl: string | null;
  /** The bytes, to be kept; null where that is not allowed. */
  downloadUrl: string | null;
  /** The small preview that the list has loaded, and a large one; null where there is none. */
  previewUrl: string | null;
  largeUrl: string | null;
  /** The multivariant playlist of a video that has one. */
  streamUrl: string | null;
}

const KINDS: readonly string[] = ["image", "video", "audio", "pdf"] satisfies Kind[];

export function readItem(entry: HTMLElement): Item {
  const { dataset } = entry;
  const download = entry.querySelector<HTMLAnchorElement>(".file-download");
  return {
    id: dataset.id ?? "",
    kind: isKind(dataset.kind) ? dataset.kind : "other",
    name: entry.querySelector(".file-name")?.textContent?.trim() ?? "",
    facts: [entry.querySelector(".file-facts")?.textContent?.trim(), dataset.pixels]
      .filter(Boolean)
      .join(" · "),
    inlineUrl: dataset.inline ?? null,
    downloadUrl: download?.href ?? null,
    previewUrl: shownPreview(entry),
    largeUrl: dataset.preview ? `${dataset.preview}?w=${largeWidth()}` : null,
    streamUrl: dataset.stream ?? null,
  };
}

/** Width of the smallest preview of the service that fills the screen, in pixels. */
function largeWidth(): number {
  return Math.max(screen.width, screen.height) * devicePixelRatio > 1400 ? 2560 : 1280;
}

function isKind(word: string | undefined): word is Kind {
  return word !== undefined && KINDS.includes(word);
}

/** Address of the preview that the list has loaded, which can be shown at once. */
function shownPreview(entry: HTMLElement): string | null {
  const image = entry.querySelector("img");
  return image?.complete && image.naturalWidth > 0 ? image.currentSrc : null;
}
