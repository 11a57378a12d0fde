// Plays and publishes by WebRTC in pages of Chromium, and executes commands, line by line. For the Rust integration tests, and
// by hand.
//
//   node tests/browser/webrtc.mjs
//
// Viewing pages are the 25 lines of docs/guide/webrtc.md, on an origin of their own. Every command is answered by one line of
// JSON on stdout: {"ok": true, "command": "…", …}, or {"ok": false, …, "error": "…"}.
//
//   view NAME URL [tcp]        opens a WHEP address in a page; with `tcp` the page does not use UDP
//   page NAME URL              opens any page of the service
//   embed NAME BASE ID [hls]   opens a page of another site with the service's element; with `hls` it does not use WebRTC
//   publish NAME URL           opens the service's publish page and goes live with a made-up camera and microphone
//   stop NAME                  ends its broadcast by the page's button
//   report NAME                the page's connection: state, frames, audio (see observed.js)
//   expect NAME FIELD N SECS   waits until a number of the report is at least N
//   expect-state NAME STATE SECS   waits until its connection is in this state
//   expect-closed NAME SECS    waits until the other side has closed it
//   probe NAME FIELD VALUE SECS    waits until a field of the page's `window.sluice` has this value
//   played NAME FRAMES SECS    waits until so many frames of the clip have passed; what was decoded meanwhile
//   leave NAME                 leaves the page for an empty one
//   quit                       the end; the end of stdin does it too
//
// Exit status 0 when every command succeeded, else 1.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { openChromium } from "./chromium.mjs";

const POLL_MS = 50;
const FLAGS = [
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
  // Audio has energy only where it is not muted.
  "--autoplay-policy=no-user-gesture-required",
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding",
];

const here = (name) => new URL(name, import.meta.url);
const observed = readFileSync(here("observed.js"), "utf8");

/** The player of the guide, with another address and not muted. */
function viewingPage(url) {
  const guide = readFileSync(here("../../docs/guide/webrtc.md"), "utf8");
  const blocks = guide.split("```html\n").slice(1);
  const block = blocks.find((it) => it.includes("new RTCPeerConnection"))?.split("```")[0];
  if (!block) throw new Error("the guide has no WHEP player");
  return block.replace(/"https:[^"]*\/whep"/, JSON.stringify(url)).replace(" muted", "");
}

/** A page with the element, and with the element's state as the service's own pages tell theirs. */
function embeddingPage(base, playbackId, via = "") {
  return `<script src="${base}/embed/sluice-player.js"></script>
    <sluice-player src="${base}/live/v1/${playbackId}" via="${via}" autoplay muted></sluice-player>
    <script>
      const player = document.querySelector("sluice-player");
      const account = () => ({ state: player.state, transport: player.transport, latency: player.latency });
      Object.defineProperty(globalThis, "sluice", { get: account });
    </script>`;
}

const served = new Map();
const server = createServer((request, response) => {
  const html = served.get(request.url);
  response.writeHead(html ? 200 : 404, { "Content-Type": "text/html; charset=utf-8" });
  response.end(html ? `<!doctype html><meta charset="utf-8">${html}` : "");
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

const { page: first, close } = await openChromium({ flags: FLAGS });
const context = first.context();
const pages = new Map();

async function openPage(name, url, before = "") {
  await pages.get(name)?.close();
  const page = await context.newPage();
  pages.set(name, page);
  await page.addInitScript({ content: `${before}\n${observed}` });
  await page.goto(url, { waitUntil: "domcontentloaded" });
  return {};
}

function openHtml(name, html, before) {
  served.set(`/${name}`, html);
  return openPage(name, `${origin}/${name}`, before);
}

function pageOf(name) {
  const page = pages.get(name);
  if (!page) throw new Error(`no page ${name}`);
  return page;
}

const report = (name) => pageOf(name).evaluate(() => globalThis.sluiceReport());

async function until(name, what, seconds, condition) {
  const deadline = performance.now() + Number(seconds) * 1000;
  let seen = null;
  while (performance.now() < deadline) {
    seen = await report(name);
    if (condition(seen)) return seen;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`not within ${seconds} s: ${what}; last seen ${JSON.stringify(seen)}`);
}

const commands = {
  view: (name, url, how) =>
    openHtml(name, viewingPage(url), how === "tcp" ? "globalThis.sluiceWithoutUdp = true;" : ""),
  page: (name, url) => openPage(name, url),
  embed: (name, base, playbackId, via) => openHtml(name, embeddingPage(base, playbackId, via)),
  async publish(name, url) {
    await openPage(name, url);
    const page = pageOf(name);
    await page.click("#share");
    await page.waitForFunction(() => document.getElementById("video").videoWidth > 0);
    await page.click("#go");
    return {};
  },
  async stop(name) {
    await pageOf(name).click("#stop");
    return {};
  },
  report,
  expect: (name, field, least, seconds) =>
    until(name, `${field} ${least}`, seconds, (seen) => seen[field] !== null && seen[field] >= Number(least)),
  "expect-state": (name, state, seconds) =>
    until(name, `state ${state}`, seconds, (seen) => seen.state === state),
  "expect-closed": (name, seconds) =>
    until(
      name,
      "closed",
      seconds,
      (seen) => seen.dtls === "closed" || ["failed", "closed"].includes(seen.state),
    ),
  async probe(name, field, value, seconds) {
    const page = pageOf(name);
    const seen = await page.waitForFunction(
      ([field, value]) => String(globalThis.sluice?.[field]) === value && { ...globalThis.sluice },
      [field, value],
      { timeout: Number(seconds) * 1000 },
    );
    return seen.jsonValue();
  },
  async played(name, frames, seconds) {
    const from = await until(name, "a frame of the clip", seconds, (seen) => seen.last !== null);
    const to = await until(
      name,
      `${frames} frames of the clip`,
      seconds,
      (seen) => seen.last - from.last >= Number(frames),
    );
    return { ...to, passed: to.last - from.last, decodedMeanwhile: to.decoded - from.decoded, from };
  },
  leave: (name) =>
    pageOf(name)
      .goto("about:blank")
      .then(() => ({})),
  quit: () => ({}),
};

let failed = false;

async function run(line) {
  const [name, ...words] = line.trim().split(/\s+/);
  if (!name) return;
  const answer = { ok: true, command: line.trim() };
  try {
    if (!commands[name]) throw new Error("no such command");
    Object.assign(answer, await commands[name](...words));
  } catch (error) {
    failed = true;
    Object.assign(answer, { ok: false, error: error.message });
  }
  console.log(JSON.stringify(answer));
}

try {
  console.log(JSON.stringify({ ok: true, command: "open" }));
  for await (const line of createInterface({ input: process.stdin })) {
    await run(line);
    if (line.trim() === "quit") break;
  }
} finally {
  await close();
  server.close();
}
process.exit(failed ? 1 : 0);
