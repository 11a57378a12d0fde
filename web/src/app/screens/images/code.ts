/** What is pasted into pages and programs for an address of the builder. */
import { type Place, pathOf, queryOf, type Values } from "./address";
import type { Catalogue } from "./types";

export type Language = "url" | "srcset" | "picture" | "next" | "curl";

export interface Built {
  place: Place;
  values: Values;
  /** Delivered by this preset; `values` are then without meaning. */
  preset?: string | undefined;
  catalogue: Catalogue;
  /** The source in pixels, where that is known. */
  source: { width: number | null; hasAlpha: boolean };
  /** The result in CSS pixels, once it was shown. */
  result: { width: number; height: number } | undefined;
  alt: string;
  /** Facts or a placeholder, which no image element shows. */
  isText: boolean;
}

/** The languages that can say it: a preset has one size, so there is nothing to choose from by width or format. */
export function languagesOf(built: Built): Language[] {
  if (built.isText) return ["url", "curl"];
  return built.preset ? ["url", "srcset", "curl"] : ["url", "srcset", "picture", "next", "curl"];
}

export function codeOf(built: Built, language: Language): string {
  switch (language) {
    case "url":
      return addressOf(built, built.values);
    case "srcset":
      return image(built, built.values);
    case "picture":
      return picture(built);
    case "next":
      return loader(built);
    case "curl":
      return `curl -sS -OJ -H 'Accept: image/avif,image/webp,*/*' \\\n  '${addressOf(built, built.values)}'`;
  }
}

export function addressOf({ place, preset, catalogue }: Built, values: Values): string {
  return (
    place.base + pathOf(place, { query: queryOf(values, catalogue.cdnParameters), preset: preset ?? "" })
  );
}

/** Widths of a page's whole row, from phones to large screens. */
const LADDER = [320, 640, 960, 1280, 1920, 2560];
const MOST_PIXELS = 8192;

/** Widths to offer to a browser: around the asked one, else a ladder; none above the source's, which would be the same image. */
export function widthsOf(asked: number | undefined, natural: number | null, mayGrow: boolean): number[] {
  const wished = asked ? [asked / 2, asked, asked * 1.5, asked * 2] : LADDER;
  const most = mayGrow || !natural ? MOST_PIXELS : natural;
  const widths = wished.map((width) => Math.min(Math.round(width), most)).filter((width) => width > 0);
  return [...new Set(widths)].sort((a, b) => a - b);
}

/** The same image `width` wide. Pixels for each CSS pixel are the browser's to choose. */
function atWidth(values: Values, width: number, asked: number | undefined): Values {
  const { dpr: _, h, ...others } = values;
  const next: Values = { ...others, w: String(width) };
  // A height alone only scales, as the width now does.
  if (h && values.w && asked) next.h = String(Math.max(1, Math.round((Number(h) * width) / asked)));
  return next;
}

function candidates(built: Built, values: Values): { srcset: string; asked: number | undefined } {
  const asked = Number(values.w) || (values.h ? built.result?.width : undefined) || undefined;
  const widths = widthsOf(asked, built.source.width, values.enlarge === "1");
  const lines = widths.map((width) => `${addressOf(built, atWidth(values, width, asked))} ${width}w`);
  return { srcset: lines.join(",\n          "), asked };
}

const sizes = (asked: number | undefined) => (asked ? `(min-width: ${asked}px) ${asked}px, 100vw` : "100vw");

function image(built: Built, values: Values, indent = ""): string {
  const { result } = built;
  const sides = result ? ` width="${result.width}" height="${result.height}"` : "";
  const { dpr: _, ...plain } = values;
  const src = `src="${html(addressOf(built, plain))}"`;
  const end = `${sides} alt="${html(built.alt)}" loading="lazy">`;
  if (built.preset) return `<img ${src}${end}`;
  const { srcset, asked } = candidates(built, values);
  return [`<img ${src}`, `     srcset="${html(srcset)}"`, `     sizes="${sizes(asked)}"`, `    ${end}`].join(
    `\n${indent}`,
  );
}

/** The formats that `auto` chooses from, each by its name: the markup then varies by nothing, which suits every cache. */
function picture(built: Built): string {
  const { catalogue, values, source } = built;
  const known = catalogue.cdnParameters.find(({ name }) => name === "format")?.values ?? [];
  const sources = ["avif", "webp"]
    .filter((format) => known.includes(format))
    .map((format) => {
      const mime = catalogue.formats.find(({ name }) => name === format)?.mime ?? `image/${format}`;
      // The same number means more bytes in AVIF, so that the service chooses it.
      const q: Values = format === "avif" && !values.q ? { q: "auto" } : {};
      const { srcset, asked } = candidates(built, { ...values, ...q, format });
      return `  <source type="${mime}"\n     srcset="${html(srcset)}"\n     sizes="${sizes(asked)}">`;
    });
  const last = image(built, { ...values, format: source.hasAlpha ? "png" : "jpg" }, "  ");
  return ["<picture>", ...sources, `  ${last}`, "</picture>"].join("\n");
}

/** A loader of `next/image`: `src` is a file's id, width and quality are the component's. */
function loader({ place, values, catalogue }: Built): string {
  const { w: _w, h: _h, q, dpr: _dpr, ...others } = values;
  const rest = queryOf(others, catalogue.cdnParameters);
  const begin = `${place.base}/cdn/v1/${encodeURIComponent(place.key)}`;
  return [
    `// <Image loader={loader} src="${place.file}" … />`,
    "export default ({ src, width, quality }) =>",
    `  \`${begin}/\${src}?w=\${width}&q=\${quality ?? ${JSON.stringify(q || "auto")}}${rest ? `&${rest}` : ""}\``,
  ].join("\n");
}

const html = (text: string) =>
  text.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
