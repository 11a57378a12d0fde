// Measures glass to glass: frames carry the time at which they were drawn, and a page of Chromium that plays them by WebRTC
// compares it with the time at which it shows them. Everything is on this machine, so both clocks are one.
//
//   node benches/latency.mjs [--program target/release/sluice] [--ffmpeg target/tools/ffmpeg/ffmpeg] [--seconds 30]
//        [--size 1280x720] [--cases rtmp,rtmp-opus,srt,obs,obs-srt,whip,hls] [--joins 20] [--json FILE]
//
//   rtmp       x264 zerolatency without B-frames, AAC, by RTMP         srt   the same by SRT
//   rtmp-opus  the same with Opus, so that nothing is re-encoded       obs   x264 veryfast with B-frames, AAC, by RTMP
//   whip       x264 baseline zerolatency and Opus, by WHIP             hls   as rtmp, played by the page with ?via=hls
//   obs-srt    as obs, by SRT, with audio at 44.1 kHz
//
// It prints a row for each case: latency at the median, 95 % and most; what the encoder itself delays (its 95 %, measured apart); time
// from the page's start to its first frame; frames decoded, frozen time, audio samples that were concealed, skew of audio and video.
// With --joins it opens that many pages one after the other at random times, with a key frame each 4 s, and prints the time to the first
// frame and the latency between 2 and 3 s after it; "cold": each starts the branch that re-encodes, which ends 10 s after its last page.
import { spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openChromium } from "../tests/browser/chromium.mjs";

const FPS = 30;
/** Bits of a frame's time in milliseconds. */
const BARS = 40;
const API_KEY = "svc_LoadHarnessLoadHarnessLoadHarnessLoadHarnes";
/** Seconds that are left out at the beginning: joining, and buffers that settle. */
const SETTLE_S = 5;
/** Time of the first frame: B-frames have decode times before it, and no muxer takes them below 0. */
const OFFSET_S = 1;
const START_MS = 20_000;
/** Seconds from key frame to key frame where joins are measured. */
const JOIN_GROUP_S = 4;
/** Time after which nothing of a branch is left: the service keeps it for 10 s. */
const COLD_MS = 11_000;
const FLAGS = ["--autoplay-policy=no-user-gesture-required"];

const { values: options } = parseArgs({
  options: {
    program: { type: "string", default: "target/release/sluice" },
    ffmpeg: { type: "string", default: "target/tools/ffmpeg/ffmpeg" },
    seconds: { type: "string", default: "30" },
    size: { type: "string", default: "1280x720" },
    cases: { type: "string", default: "rtmp,rtmp-opus,srt,obs,whip,hls" },
    joins: { type: "string" },
    json: { type: "string" },
  },
});
const [width, height] = options.size.split("x").map(Number);
const seconds = Number(options.seconds);

const ZEROLATENCY = ["-preset", "veryfast", "-tune", "zerolatency", "-bf", "0", "-profile:v", "high"];
const OBS = ["-preset", "veryfast", "-bf", "2", "-profile:v", "high"];
const BASELINE = ["-preset", "veryfast", "-tune", "zerolatency", "-profile:v", "baseline"];
const AAC = ["-c:a", "aac", "-b:a", "128k"];
const MPEG_TS = ["-f", "mpegts", "-flush_packets", "1"];
const OPUS = ["-c:a", "libopus", "-b:a", "96k", "-application", "lowdelay"];
/** Neither track waits for the other one. */
const AS_THEY_COME = ["-max_interleave_delta", "1"];
const FLV = ["-f", "flv", "-flvflags", "no_duration_filesize", "-flush_packets", "1"];

const CASES = {
  rtmp: { video: ZEROLATENCY, audio: AAC, target: (input) => [...FLV, input.rtmp] },
  "rtmp-opus": { video: ZEROLATENCY, audio: OPUS, target: (input) => [...FLV, input.rtmp] },
  srt: { video: ZEROLATENCY, audio: AAC, target: (input) => [...MPEG_TS, input.srt] },
  obs: { video: OBS, audio: AAC, target: (input) => [...FLV, input.rtmp], interleave: [] },
  "obs-srt": {
    video: OBS,
    audio: AAC,
    sampleRate: 44_100,
    target: (input) => [...MPEG_TS, input.srt],
    interleave: [],
  },
  whip: {
    video: BASELINE,
    audio: OPUS,
    target: (input) => ["-f", "whip", "-authorization", input.key, input.whip],
  },
  hls: { video: ZEROLATENCY, audio: AAC, target: (input) => [...FLV, input.rtmp], page: "?via=hls" },
};

/** Draws frames in real time into a pipe: the time in bars over the upper half, noise that moves below. */
class Clock {
  constructor(pipe) {
    this.pipe = pipe;
    /** Times of the frames that were written. */
    this.drawnAt = [];
    this.ticks = 0;
    this.frame = Buffer.alloc((width * height * 3) / 2, 128);
    this.noise = Buffer.alloc(width * height);
    for (let at = 0, x = 1; at < this.noise.length; at++) {
      x = (x * 1_103_515_245 + 12_345) & 0x7fffffff;
      this.noise[at] = 96 + ((x >> 16) & 0x3f);
    }
    pipe.on("error", () => clearTimeout(this.timer));
    this.startedAt = performance.now();
    this.tick();
  }

  /** A frame that the encoder is too slow for is left out. */
  tick() {
    this.ticks += 1;
    if (this.pipe.writableLength < this.frame.length * 2) this.draw(this.ticks);
    const due = this.startedAt + (this.ticks * 1000) / FPS;
    this.timer = setTimeout(() => this.tick(), Math.max(0, due - performance.now()));
  }

  draw(number) {
    const shift = (number * 37 * width) % (this.noise.length / 2);
    this.noise.copy(this.frame, (width * height) / 2, shift, shift + (width * height) / 2);
    const now = Date.now();
    const row = Buffer.alloc(width);
    for (let x = 0; x < width; x++) {
      const bit = BARS - 1 - Math.floor((x * BARS) / width);
      row[x] = Math.floor(now / 2 ** bit) % 2 === 1 ? 235 : 16;
    }
    for (let y = 0; y < height / 2; y++) row.copy(this.frame, y * width);
    this.drawnAt.push(now);
    this.pipe.write(Buffer.from(this.frame));
  }

  stop() {
    clearTimeout(this.timer);
    this.pipe.end();
  }
}

function encode(scenario, target, groupS = 2) {
  const raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", `${width}x${height}`, "-r", `${FPS}`];
  const tone = ["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"];
  const rate = [
    "-b:v",
    "3M",
    "-maxrate",
    "3M",
    "-bufsize",
    "1500k",
    "-g",
    `${FPS * groupS}`,
    "-sc_threshold",
    "0",
  ];
  const probe = ["-fflags", "nobuffer", "-probesize", "32", "-analyzeduration", "0"];
  const child = spawn(
    options.ffmpeg,
    ["-hide_banner", "-v", "error", ...probe, ...raw, "-i", "pipe:0", ...tone, "-c:v", "libx264"]
      .concat(scenario.video, rate, ["-pix_fmt", "yuv420p", "-fps_mode", "passthrough"], scenario.audio, [
        "-ac",
        "2",
        "-ar",
        `${scenario.sampleRate ?? 48_000}`,
      ])
      .concat(scenario.interleave ?? AS_THEY_COME, ["-output_ts_offset", `${OFFSET_S}`], target),
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  return { child, clock: new Clock(child.stdin) };
}

/** What the encoder alone takes: from drawing a frame to its tag at the end of a pipe; milliseconds of 95 % of the frames. */
async function encoderDelay(scenario) {
  const { child, clock } = encode(scenario, [...FLV, "-"]);
  const delays = [];
  let bytes = Buffer.alloc(0);
  let header = 13;
  child.stdout.on("data", (piece) => {
    bytes = Buffer.concat([bytes, piece]);
    while (bytes.length >= header + 11) {
      const tag = bytes.subarray(header);
      const length = tag.readUIntBE(1, 3);
      if (tag.length < 11 + length + 4) break;
      if (tag[0] === 9 && tag[12] === 1) {
        const time = tag.readUIntBE(4, 3) + tag.readIntBE(13, 3);
        const drawn = clock.drawnAt[Math.round(((time - OFFSET_S * 1000) * FPS) / 1000)];
        if (drawn) delays.push(Date.now() - drawn);
      }
      bytes = tag.subarray(11 + length + 4);
      header = 0;
    }
  });
  await sleep(6_000);
  clock.stop();
  child.kill("SIGKILL");
  return share(delays.slice(FPS * 2), 0.95);
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function share(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? null;
}

async function start(folder) {
  const log = openSync(join(folder, "sluice.log"), "w");
  const free = "127.0.0.1:0";
  const env = {
    ...process.env,
    SLUICE_HTTP__LISTEN: free,
    SLUICE_RTMP__LISTEN: free,
    SLUICE_SRT__LISTEN: free,
    SLUICE_WEBRTC__LISTEN: free,
    SLUICE_WEBRTC__TCP_LISTEN: free,
    SLUICE_STORE__DATA_DIR: join(folder, "data"),
    SLUICE_BOOTSTRAP__API_KEY: API_KEY,
    SLUICE_BOOTSTRAP__ADMIN_PASSWORD: "latency only",
  };
  const child = spawn(options.program, ["serve"], { env, stdio: ["ignore", log, log] });
  const deadline = performance.now() + START_MS;
  for (;;) {
    try {
      const { http } = JSON.parse(readFileSync(join(folder, "data/addresses.json"), "utf8"));
      if ((await fetch(`http://${http}/readyz`)).ok) return { child, base: `http://${http}` };
    } catch {
      // Not there yet.
    }
    if (performance.now() > deadline || child.exitCode !== null) {
      throw new Error(`sluice is not ready:\n${readFileSync(join(folder, "sluice.log"), "utf8")}`);
    }
    await sleep(50);
  }
}

async function createInput(base) {
  const answer = await fetch(`${base}/api/live/inputs`, {
    method: "POST",
    headers: { Authorization: `Bearer ${API_KEY}`, "Content-Type": "application/json" },
    body: "{}",
  });
  const { liveInput } = await answer.json();
  const { ingest, playback } = liveInput;
  return {
    id: liveInput.id,
    page: `${base}/live/${playback.playbackId}`,
    whep: playback.webRtcUrl,
    key: ingest.obsStreamKey,
    rtmp: `${ingest.obsServer}/${ingest.obsStreamKey}`,
    srt: ingest.srtUrl,
    whip: `${base}/live/whip`,
  };
}

async function health(base, input) {
  const answer = await fetch(`${base}/api/live/inputs/${input.id}/health`, {
    headers: { Authorization: `Bearer ${API_KEY}` },
  });
  return answer.json();
}

const here = (name) => new URL(name, import.meta.url);

/** The player of docs/guide/webrtc.md, not muted. */
function viewingPage(url) {
  const blocks = readFileSync(here("../docs/guide/webrtc.md"), "utf8").split("```html\n");
  const block = blocks.find((it) => it.includes("new RTCPeerConnection")).split("```")[0];
  const html = block.replace(/"https:[^"]*\/whep"/, JSON.stringify(url)).replace(" muted", "");
  return `<!doctype html><meta charset="utf-8">${html}`;
}

async function onAir(name, base, input) {
  const deadline = performance.now() + START_MS;
  while ((await health(base, input)).frameRate == null) {
    if (performance.now() > deadline) throw new Error(`${name}: nothing is on air`);
    await sleep(100);
  }
}

/** Opens a page that plays the input, and waits for its first frame. */
async function openPage(name, input, { chromium, origin, serve }) {
  const page = await chromium.page.context().newPage();
  const observed = readFileSync(here("../tests/browser/observed.js"), "utf8");
  await page.addInitScript({ content: `globalThis.sluiceClock = true;\n${observed}` });
  serve(viewingPage(input.whep));
  const scenario = CASES[name];
  await page.goto(scenario.page ? input.page + scenario.page : origin);
  const report = () => page.evaluate(() => globalThis.sluiceReport());
  const deadline = performance.now() + START_MS;
  while ((await report()).firstShownMs === null) {
    if (performance.now() > deadline) throw new Error(`${name}: ${JSON.stringify(await report())}`);
    await sleep(50);
  }
  return { page, report };
}

/** Joins one after the other, each at a random moment of a group of pictures; with `isCold` each waits until there is no branch. */
async function measureJoins(name, base, browser, isCold) {
  const scenario = CASES[name];
  const input = await createInput(base);
  const { child, clock } = encode(scenario, scenario.target(input), JOIN_GROUP_S);
  const [firstFrames, settled] = [[], []];
  try {
    await onAir(name, base, input);
    await sleep(JOIN_GROUP_S * 1000);
    for (let left = Number(options.joins); left > 0; left--) {
      await sleep(Math.random() * JOIN_GROUP_S * 1000 + (isCold ? COLD_MS : 0));
      const { page, report } = await openPage(name, input, browser);
      await sleep(2_000);
      firstFrames.push((await report()).firstShownMs);
      await sleep(1_000);
      settled.push(share((await report()).latencies, 0.5));
      await page.close();
    }
  } finally {
    clock.stop();
    child.kill("SIGKILL");
  }
  return { case: name, isCold, firstFrames, settled };
}

async function measure(name, base, browser) {
  const scenario = CASES[name];
  const delay = await encoderDelay(scenario);
  const input = await createInput(base);
  const { child, clock } = encode(scenario, scenario.target(input));
  try {
    await onAir(name, base, input);
    const { page, report } = await openPage(name, input, browser);
    await sleep(SETTLE_S * 1000);
    const before = await report();
    await sleep(seconds * 1000);
    const seen = await report();
    const { webrtc } = await health(base, input);
    await page.close();
    return {
      case: name,
      p50: share(seen.latencies, 0.5),
      p95: share(seen.latencies, 0.95),
      most: share(seen.latencies, 1),
      encoder: delay,
      firstFrameMs: seen.firstShownMs,
      shown: seen.latencies.length,
      decoded: (seen.decoded ?? 0) - (before.decoded ?? 0),
      of: seconds * FPS,
      frozenS: (seen.frozenS ?? 0) - (before.frozenS ?? 0),
      plis: seen.plis ?? null,
      concealedPercent: seen.audioSamples ? (100 * seen.concealed) / seen.audioSamples : null,
      skewMs: seen.skewMs ?? null,
      transport: seen.transport ?? "hls",
      branch: webrtc?.branch ?? null,
    };
  } finally {
    clock.stop();
    child.kill("SIGKILL");
  }
}

const folder = mkdtempSync(join(tmpdir(), "sluice-latency-"));
const service = await start(folder);
const chromium = await openChromium({ flags: FLAGS });
let html = "";
const server = createServer((_, response) => {
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(html);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = {
  chromium,
  origin: `http://127.0.0.1:${server.address().port}/`,
  serve: (page) => {
    html = page;
  },
};
const ms = (value) => (value === null ? "–" : `${Math.round(value)} ms`);

async function printLatencies() {
  console.log("| case | p50 | p95 | most | encoder | first frame | decoded | frozen | concealed | skew |");
  console.log("|---|---|---|---|---|---|---|---|---|---|");
  for (const name of options.cases.split(",")) {
    const it = await measure(name, service.base, browser);
    results.push(it);
    const cells = [it.case, ms(it.p50), ms(it.p95), ms(it.most), ms(it.encoder), ms(it.firstFrameMs)]
      .concat([`${it.decoded} of ${it.of}`, `${it.frozenS.toFixed(2)} s`])
      .concat([it.concealedPercent === null ? "–" : `${it.concealedPercent.toFixed(1)} %`, ms(it.skewMs)]);
    console.log(`| ${cells.join(" | ")} |`);
  }
}

async function printJoins() {
  console.log("| case | joins | first frame p50 | p95 | latency after 2 s |");
  console.log("|---|---|---|---|---|");
  for (const name of options.cases.split(",")) {
    for (const isCold of name.startsWith("obs") ? [false, true] : [false]) {
      const it = await measureJoins(name, service.base, browser, isCold);
      results.push(it);
      const cells = [
        `${name}${isCold ? ", cold" : ""}`,
        it.firstFrames.length,
        ms(share(it.firstFrames, 0.5)),
      ].concat([ms(share(it.firstFrames, 0.95)), ms(share(it.settled, 0.5))]);
      console.log(`| ${cells.join(" | ")} |`);
    }
  }
}

const results = [];
try {
  await (options.joins ? printJoins() : printLatencies());
  if (options.json) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
} finally {
  await chromium.close();
  server.close();
  service.child.kill("SIGTERM");
  await new Promise((resolve) => service.child.once("exit", resolve));
  rmSync(folder, { recursive: true, force: true });
}
