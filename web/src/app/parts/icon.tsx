/** Icons of 24 units, drawn by strokes; always beside words or with a label on the button. */
const PATHS = {
  overview: "M4 4h7v9H4zM13 4h7v5h-7zM13 11h7v9h-7zM4 15h7v5H4z",
  live: "M12 10a2 2 0 1 0 .01 0M8 16a5.7 5.7 0 0 1 0-8M16 8a5.7 5.7 0 0 1 0 8M5 19a10 10 0 0 1 0-14M19 5a10 10 0 0 1 0 14",
  files:
    "M3 6.5A1.5 1.5 0 0 1 4.5 5H9l2 2.5h8.5A1.5 1.5 0 0 1 21 9v8.5a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 17.5z",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  images: "M4 4h16v16H4zM4 16l5-5 4 4 3-2 4 4M15 9h.01",
  webhooks: "M9 8a3 3 0 1 1 4.5 2.6L17 17M12 8l-3.6 6.4M6.5 14A3 3 0 1 0 9.6 17H17M17 17a3 3 0 1 1-1.5 2.6",
  system: "M4 4h16v6H4zM4 14h16v6H4zM7.5 7h.01M7.5 17h.01M11 7h5M11 17h5",
  settings:
    "M4 7h10M18 7h2M4 17h2M10 17h10M14 7a2 2 0 1 0 4 0 2 2 0 1 0-4 0M6 17a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  menu: "M4 7h16M4 12h16M4 17h16",
  search: "M11 4a7 7 0 1 0 .01 0M16 16l4.5 4.5",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  warn: "M12 4L2.5 20h19zM12 10v4.5M12 17.4h.01",
  error: "M12 3a9 9 0 1 0 .01 0M12 7.5v5.5M12 16.2h.01",
  info: "M12 3a9 9 0 1 0 .01 0M12 11v5.5M12 7.8h.01",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  key: "M8 12a4 4 0 1 0 .01 0M11 13l9-9M17 7l2.5 2.5M14 10l2 2",
  link: "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7l1-1",
  chart: "M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6",
  upload: "M12 16V5M7.5 9.5L12 5l4.5 4.5M5 19h14",
  download: "M12 5v11M7.5 11.5L12 16l4.5-4.5M5 19h14",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  edit: "M5 19l1-4L16 5l3 3L9 18z",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  stop: "M6 6h12v12H6z",
  reload: "M19 12a7 7 0 1 1-2-5M19 4v4h-4",
  down: "M6 9.5l6 6 6-6",
  right: "M9.5 6l6 6-6 6",
  left: "M14.5 6l-6 6 6 6",
  up: "M6 14.5l6-6 6 6",
  out: "M14 5h5v5M19 5l-8 8M17 14v5H5V7h5",
  user: "M12 4a4 4 0 1 0 .01 0M4.5 20a7.5 7.5 0 0 1 15 0",
  sun: "M12 8a4 4 0 1 0 .01 0M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1 1M17.4 17.4l1 1M18.4 5.6l-1 1M6.6 17.4l-1 1",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  grid: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  eye: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9.5a2.5 2.5 0 1 0 .01 0",
  terminal: "M4 5h16v14H4zM7.5 9.5L10 12l-2.5 2.5M12.5 15H16",
  book: "M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2zM5 18a2 2 0 0 1 2-2h12",
  audio: "M9 18V6l10-2v12M9 18a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0M19 16a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0",
  archive: "M4 8V4h16v4M5 8v12h14V8zM4 8h16M10 12h4",
  move: "M3 6.5A1.5 1.5 0 0 1 4.5 5H9l2 2.5h8.5A1.5 1.5 0 0 1 21 9v8.5a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 17.5zM9 13h6M12.5 10.5L15 13l-2.5 2.5",
  target: "M12 5a7 7 0 1 0 .01 0M12 2v5M12 17v5M2 12h5M17 12h5",
  workflow: "M5 4h5v5H5zM14 15h5v5h-5zM7.5 9v8.5H14",
  tag: "M4 4h8l8 8-8 8-8-8zM8 8h.01",
  folder_plus:
    "M3 6.5A1.5 1.5 0 0 1 4.5 5H9l2 2.5h8.5A1.5 1.5 0 0 1 21 9v8.5a1.5 1.5 0 0 1-1.5 1.5h-15A1.5 1.5 0 0 1 3 17.5zM12 10.5v5M9.5 13h5",
  clock: "M12 3a9 9 0 1 0 .01 0M12 7v5.3l3.5 2",
  video: "M3 6h12v12H3zM15 10.5l6-3v9l-6-3",
  scissors: "M6 5a2.5 2.5 0 1 0 .01 0M6 14a2.5 2.5 0 1 0 .01 0M8 9l12 8M8 15l12-8",
  code: "M8.5 7L3.5 12l5 5M15.5 7l5 5-5 5",
  branch: "M12 3v5M12 8L6 14v7M12 8l6 6v7",
  skip: "M6 12h12",
  undo: "M9 5L4 10l5 5M4 10h10a5 5 0 0 1 0 10h-3",
  redo: "M15 5l5 5-5 5M20 10H10a5 5 0 0 0 0 10h3",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  convert: "M4 8.5h14M14.5 5L18 8.5 14.5 12M20 15.5H6M9.5 12L6 15.5 9.5 19",
  help: "M12 3a9 9 0 1 0 .01 0M9.5 9.7a2.6 2.6 0 1 1 3.7 2.4c-.8.4-1.2.9-1.2 1.9M12 17h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, class: extra = "" }: { name: IconName; class?: string }) {
  return (
    <svg class={`icon ${extra}`} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The mark of the product. */
export function Waves() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b3a44" />
      <g fill="none" stroke-linecap="round" stroke-width="2.6">
        <path d="M6 11c3.3-3 6.7-3 10 0s6.7 3 10 0" stroke="#8fe3ec" />
        <path d="M6 17c3.3-3 6.7-3 10 0s6.7 3 10 0" stroke="#4bbfce" />
        <path d="M6 23c3.3-3 6.7-3 10 0s6.7 3 10 0" stroke="#1f8fa1" />
      </g>
    </svg>
  );
}
