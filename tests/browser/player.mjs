// Opens a player page in Chromium and executes commands, line by line. For the Rust integration tests, and by hand.
//
//   node tests/browser/player.mjs --url http://127.0.0.1:8080/live/pb_… [--scenario plays|waits]
//        [--width 1280] [--height 800] [--scheme light|dark] [--chromium /usr/bin/chromium]
//
// Without --scenario it reads commands from stdin. Every command is answered by one line of JSON on stdout:
// {"ok": true, "command": "…", "atMs": …, …}, or {"ok": false, …, "error": "…"}. Times are ms since the page was opened.
//
//   sample                     the page's window.sluice and the words that can be read on it
//   expect-state STATE SECS    waits for the state
//   expect-played S SECS       waits until playback has advanced by S seconds of media
//   expect-text WORDS…         waits up to 60 s for words on the page
//   expect-audio SECS          waits until it plays with audio
//   expect-height H SECS       waits until the video is H lines high
//   choose ID LABEL            chooses an entry of a list
//   click [ID]                 clicks on the video, or on the element with that id
//   key KEY                    presses a key, "m" or "ArrowUp"
//   open URL | reload          loads a page; times start again
//   size W H | scheme NAME     changes the window, the colour scheme
//   screenshot PATH            writes a PNG
//   summary                    states with their times so far, media left out while live, console errors, requests that
//                              left the origin
//   quit                       the same and the end; the end of stdin does it too
//
// Exit status 0 when every command succeeded and no request left the origin, else 1.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { openChromium } from "./chromium.mjs";
import { Observer } from "./observer.mjs";

const scenarios = {
  /** A stream is on air: it plays at once. */
  plays: ["expect-state live 15", "expect-played 3 15", "sample", "quit"],
  /** No broadcast is live yet; the caller starts the publisher when the first answer has come. */
  waits: ["expect-state waiting 10", "expect-state live 120", "expect-played 3 15", "sample", "quit"],
};

const { values: options } = parseArgs({
  options: {
    url: { type: "string" },
    scenario: { type: "string" },
    width: { type: "string", default: "1280" },
    height: { type: "string", default: "800" },
    scheme: { type: "string", default: "light" },
    chromium: { type: "string" },
  },
});
if (!options.url || (options.scenario && !scenarios[options.scenario])) {
  console.error(`usage: player.mjs --url URL [--scenario ${Object.keys(scenarios).join("|")}]`);
  process.exit(1);
}
if (options.chromium) process.env.CHROMIUM = options.chromium;

const { page, close } = await openChromium({
  width: Number(options.width),
  height: Number(options.height),
  scheme: options.scheme,
});
const observer = new Observer(page);
let failed = false;
let over = false;

const commands = {
  sample: () => observer.sample(),
  "expect-state": (state, seconds = "10") => observer.untilState(state, Number(seconds)),
  "expect-played": (media, seconds = "10") => observer.untilPlayed(Number(media), Number(seconds)),
  "expect-text": (...words) =>
    observer.until(words.join(" "), 60, (seen) => seen.text.includes(words.join(" "))),
  "expect-audio": (seconds = "10") =>
    observer.until("audio", Number(seconds), (seen) => seen.muted === false),
  "expect-height": (height, seconds = "10") =>
    observer.until(`${height} lines`, Number(seconds), (seen) => seen.height === Number(height)),
  choose: (id, ...label) => page.selectOption(`#${id}`, { label: label.join(" ") }).then(() => ({})),
  click: (id) => (id ? page.click(`#${id}`) : page.click("#screen", { position: { x: 40, y: 80 } })),
  key: (key) => page.keyboard.press(key),
  open: (url) => observer.open(url),
  reload: () => observer.open(page.url()),
  size: (width, height) => page.setViewportSize({ width: Number(width), height: Number(height) }),
  scheme: (name) => page.emulateMedia({ colorScheme: name }),
  screenshot: (path) => observer.screenshot(path),
  summary: () => observer.summary(),
  quit: () => {
    over = true;
    return observer.summary();
  },
};

async function run(line) {
  const [name, ...words] = line.trim().split(/\s+/);
  if (!name) return;
  const answer = { ok: true, command: line.trim(), atMs: observer.atMs };
  try {
    if (!commands[name]) throw new Error("no such command");
    Object.assign(answer, await commands[name](...words), { atMs: observer.atMs });
  } catch (error) {
    failed = true;
    Object.assign(answer, { ok: false, error: error.message });
  }
  console.log(JSON.stringify(answer));
}

try {
  await run(`open ${options.url}`);
  for await (const line of scenarios[options.scenario] ?? createInterface({ input: process.stdin })) {
    await run(line);
    if (over) break;
  }
  if (!over) await run("quit");
} finally {
  await close();
}
process.exit(failed || observer.foreignRequests.length > 0 ? 1 : 0);
