/** Builds the viewer's content for one file, and releases it. */
import type { Item } from "./item";

export interface Shown {
  element: HTMLElement;
  /** Stops playback and loading. */
  release(): void;
}

type Stream = typeof import("./stream");

/** Address of the built `stream.ts`. */
const streamUrl = document.querySelector<HTMLScriptElement>("script[data-stream]")?.dataset.stream;

/** @param onBroken called at each failed load, possibly more than once */
export function show(item: Item, onBroken: () => void): Shown {
  switch (item.kind) {
    case "image":
      return item.largeUrl || item.inlineUrl ? image(item, onBroken) : plain(item);
    case "video":
      return item.streamUrl || item.inlineUrl ? video(item, onBroken) : plain(item);
    case "audio":
      return item.inlineUrl ? audioPlayer(item, item.inlineUrl, onBroken) : plain(item);
    case "pdf":
      return item.largeUrl ? firstPage(item, onBroken) : plain(item);
    default:
      return plain(item);
  }
}

/**
 * Shows the list's small preview at once, the large one when it has loaded, and the file itself when there is no
 * preview.
 */
function image(item: Item, onBroken: () => void): Shown {
  const element = document.createElement("img");
  element.className = "viewer-image";
  element.alt = item.name;
  element.draggable = false;
  const sources = [item.largeUrl, item.inlineUrl].filter((url) => url !== null);
  let released = false;
  const shown: Shown = {
    element,
    release() {
      released = true;
    },
  };
  const next = () => {
    const url = sources.shift();
    if (released) return;
    if (url === undefined) {
      if (!item.previewUrl) shown.element = replaced(shown.element, plain(item).element);
      // Only the small preview exists, so it must not look like a draft.
      delete element.dataset.draft;
      return;
    }
    const loading = new Image();
    loading.addEventListener("error", () => {
      if (released) return;
      onBroken();
      next();
    });
    loading.addEventListener("load", () => {
      if (released) return;
      delete element.dataset.draft;
      element.src = url;
    });
    loading.src = url;
  };
  if (item.previewUrl) {
    element.dataset.draft = "";
    element.src = item.previewUrl;
  }
  next();
  return shown;
}

function replaced(old: HTMLElement, element: HTMLElement): HTMLElement {
  old.replaceWith(element);
  return element;
}

function video(item: Item, onBroken: () => void): Shown {
  const element = document.createElement("video");
  element.className = "viewer-video";
  element.controls = true;
  element.playsInline = true;
  element.preload = "metadata";
  element.setAttribute("aria-label", item.name);
  if (item.largeUrl) element.poster = item.largeUrl;

  let released = false;
  let releaseStream = () => {};
  const shown: Shown = {
    element,
    release() {
      released = true;
      releaseStream();
      silence(element);
    },
  };
  const playFile = () => {
    if (released) return;
    const url = item.inlineUrl;
    if (url === null) {
      onBroken();
      shown.element = replaced(element, plain(item).element);
      return;
    }
    element.addEventListener("error", () => {
      if (released) return;
      onBroken();
      shown.element = replaced(element, plain(item).element);
    });
    element.src = url;
    start(element);
  };
  const manifest = item.streamUrl;
  if (manifest === null || streamUrl === undefined) {
    playFile();
    return shown;
  }
  const address = new URL(streamUrl, document.baseURI).href;
  import(address).then((stream: Stream) => {
    if (released) return;
    releaseStream = stream.play(element, new URL(manifest, document.baseURI).href, playFile);
    start(element);
  }, playFile);
  return shown;
}

function audioPlayer(item: Item, url: string, onBroken: () => void): Shown {
  const element = document.createElement("div");
  element.className = "viewer-audio";
  const audio = document.createElement("audio");
  audio.controls = true;
  audio.setAttribute("aria-label", item.name);
  audio.src = url;
  element.append(icon("audio"), audio);
  const failed = () => {
    onBroken();
    audio.replaceWith(note(item));
  };
  audio.addEventListener("error", failed, { once: true });
  start(audio);
  const release = () => {
    audio.removeEventListener("error", failed);
    silence(audio);
  };
  return { element, release };
}

/** Shows a preview of the first page; the document itself opens in a new tab, in the browser's own reader. */
function firstPage(item: Item, onBroken: () => void): Shown {
  const page = image({ ...item, inlineUrl: null }, onBroken);
  const element = document.createElement("div");
  element.className = "viewer-document";
  element.append(page.element);
  if (item.inlineUrl) {
    const open = document.createElement("a");
    open.className = "button button-quiet";
    open.href = item.inlineUrl;
    open.target = "_blank";
    open.rel = "noopener";
    open.textContent = "Open all pages";
    element.append(open);
  }
  return { element, release: () => page.release() };
}

/** A file that cannot be shown. */
function plain(item: Item): Shown {
  const element = document.createElement("div");
  element.className = "viewer-plain";
  element.append(icon(item.kind), note(item));
  return { element, release() {} };
}

function note(item: Item): HTMLElement {
  const words = document.createElement("p");
  words.textContent = item.downloadUrl
    ? "This file cannot be shown here. It can be downloaded."
    : "This file cannot be shown here.";
  return words;
}

function icon(name: string): SVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon icon-xl");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** Plays what the viewer opened; where the browser's autoplay policy forbids it, its play button remains. */
function start(media: HTMLMediaElement): void {
  media.play().catch(() => undefined);
}

function silence(media: HTMLMediaElement): void {
  media.pause();
  media.removeAttribute("src");
  media.load();
}
