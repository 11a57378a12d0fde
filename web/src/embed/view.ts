/**
 * The inside of the element. Rules: nothing is made from text as HTML and no style is inline, so that it works under a
 * content policy without `unsafe-inline` and with trusted types.
 */

const SHEET = `
:host { display: block; container-type: inline-size; position: relative; aspect-ratio: 16 / 9; overflow: hidden; background: #06161c; color: #eaf6f8;
  font: 500 0.875rem/1.4 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
:host([hidden]), [hidden] { display: none !important; }
video { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain; }
.note { position: absolute; inset: 0; display: grid; place-content: center; gap: 0.25rem; padding: 1rem; margin: 0;
  text-align: center; text-wrap: balance; background: #06161c; }
.note strong { font-size: 1.125rem; font-weight: 600; }
.note span { color: #a9c4cb; }
.badge { position: absolute; top: 0.5rem; left: 0.5rem; max-width: calc(100% - 1rem); box-sizing: border-box; margin: 0;
  padding: 0.125rem 0.625rem; border-radius: 99px; background: rgb(4 16 21 / 0.72); font-size: 0.75rem; font-weight: 600;
  font-variant-numeric: tabular-nums; }
.badge::before { content: ""; display: inline-block; width: 0.5em; height: 0.5em; margin-right: 0.5em; border-radius: 50%;
  background: #ff5a63; }
button { display: inline-grid; place-items: center; min-width: 2.75rem; min-height: 2.75rem; padding: 0; border: 0;
  border-radius: 99px; background: transparent; color: inherit; font: inherit; font-weight: 600; cursor: pointer; }
button:hover { background: rgb(255 255 255 / 0.16); }
:focus-visible { outline: 2px solid #58c9d8; outline-offset: -3px; }
svg { width: 1.5rem; height: 1.5rem; fill: none; stroke: currentColor; stroke-width: 1.9; stroke-linecap: round;
  stroke-linejoin: round; }
.solid { fill: currentColor; }
.start { position: absolute; inset: 0; margin: auto; width: 4.5rem; height: 4.5rem; background: #eaf6f8; color: #06161c; }
.start:hover { background: #fff; }
.start svg { width: 2.25rem; height: 2.25rem; }
.unmute { position: absolute; bottom: 4rem; left: 50%; transform: translateX(-50%); padding: 0 1rem; background: #eaf6f8;
  color: #06161c; white-space: nowrap; }
.unmute:hover { background: #fff; }
.bar { position: absolute; inset: auto 0 0; display: flex; align-items: center; gap: 0.25rem; padding: 1.5rem 0.5rem 0.25rem;
  background: linear-gradient(to top, rgb(4 16 21 / 0.78), transparent); transition: opacity 200ms; }
:host(:not(:hover):not(:focus-within)) .bar[data-playing="true"] { opacity: 0; }
.space { flex: 1; }
input { width: 5rem; accent-color: #eaf6f8; }
@container (max-width: 22rem) { input { display: none; } }
@media (prefers-reduced-motion: reduce) { .bar { transition: none; } }
`;

const ICONS = {
  play: "M8 5.5v13l11-6.5z",
  pause: "M8.5 6v12M15.5 6v12",
  volume: "M4 9.5v5h3.5L12 18V6L7.5 9.5zM15.5 9a4 4 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11",
  muted: "M4 9.5v5h3.5L12 18V6L7.5 9.5zM16 9l5 6M21 9l-5 6",
  fullscreen: "M9 5H5v4M15 5h4v4M9 19H5v-4M15 19h4v-4",
};

export type Icon = keyof typeof ICONS;

const SVG = "http://www.w3.org/2000/svg";

export interface View {
  video: HTMLVideoElement;
  note: HTMLElement;
  title: HTMLElement;
  detail: HTMLElement;
  badge: HTMLElement;
  start: HTMLButtonElement;
  unmute: HTMLButtonElement;
  bar: HTMLElement;
  play: HTMLButtonElement;
  mute: HTMLButtonElement;
  volume: HTMLInputElement;
  fullscreen: HTMLButtonElement;
}

export function makeView(root: ShadowRoot): View {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(SHEET);
  root.adoptedStyleSheets = [sheet];
  const video = make("video", "");
  video.playsInline = true;
  video.disableRemotePlayback = true;
  video.setAttribute("aria-label", "Live video");
  const [title, detail] = [make("strong", ""), make("span", "")];
  const note = make("p", "note");
  // Without the detail, which counts seconds.
  title.setAttribute("role", "status");
  note.append(title, detail);
  const badge = make("p", "badge");
  const start = button("start", "play", "Play");
  const unmute = make("button", "unmute");
  unmute.type = "button";
  unmute.textContent = "Tap to unmute";
  const bar = make("div", "bar");
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Playback controls");
  const play = button("", "pause", "Pause");
  const mute = button("", "volume", "Mute");
  const volume = make("input", "");
  Object.assign(volume, { type: "range", min: "0", max: "100", step: "5", value: "100" });
  volume.setAttribute("aria-label", "Volume");
  const fullscreen = button("", "fullscreen", "Full screen");
  bar.append(play, mute, volume, make("span", "space"), fullscreen);
  root.replaceChildren(video, note, badge, bar, start, unmute);
  return { video, note, title, detail, badge, start, unmute, bar, play, mute, volume, fullscreen };
}

/** Gives a button another icon and name, when they have changed. */
export function label(target: HTMLButtonElement, icon: Icon, name: string): void {
  if (target.getAttribute("aria-label") === name) return;
  target.setAttribute("aria-label", name);
  target.title = name;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[icon]);
  if (icon === "play") path.setAttribute("class", "solid");
  if (icon === "pause") path.setAttribute("stroke-width", "3");
  svg.append(path);
  target.replaceChildren(svg);
}

function button(name: string, icon: Icon, words: string): HTMLButtonElement {
  const made = make("button", name);
  made.type = "button";
  label(made, icon, words);
  return made;
}

function make<K extends keyof HTMLElementTagNameMap>(tag: K, name: string): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (name) made.className = name;
  return made;
}
