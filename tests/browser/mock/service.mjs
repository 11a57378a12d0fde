// A substitute for the service, just large enough for the player page: the built pages under the service's own
// Content-Security-Policy, the state question, and a low-latency playlist of what ffmpeg makes. It lets the page's
// logic be tested without the service, and lets tests do what no real service does on demand.
//
//   node mock/service.mjs [--port 8099]     commands on stdin: publish, drop, end, stop, start, forget, know
import { spawn } from "node:child_process";
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { readFragments } from "./fragments.mjs";

const dist = fileURLToPath(new URL("../../../web/dist/", import.meta.url));
const TYPES = {
  js: "text/javascript",
  css: "text/css",
  svg: "image/svg+xml",
  html: "text/html; charset=utf-8",
};
const CSP =
  "default-src 'self'; script-src 'self'; style-src 'self'; media-src 'self' blob:; worker-src 'self' blob:; " +
  "connect-src 'self'; img-src 'self' data:";
const SEGMENT_MIN_S = 1.9;
const LISTED_S = 20;
const PART_TARGET_S = 0.25;
/** A playlist answers once a player could start with it: from so many parts on. */
const HOLD_BACK_PARTS = 3;
/** The first segment's media sequence number; a gap may come before it. */
const FIRST_MSN = 1;

export class MockService {
  constructor({ playbackId = "pb_mock", reconnectWindowS = 30, openapi } = {}) {
    Object.assign(this, { playbackId, reconnectWindowS, openapi });
    this.state = "idle";
    this.version = 1;
    this.reconnectUntil = null;
    this.broadcasts = 0;
    this.waiting = new Set();
    this.requests = [];
    this.known = true;
    /** Answers an offer with {status, headers, body}; null: WebRTC is turned off. */
    this.whep = null;
    this.whip = null;
    this.deleted = [];
  }

  async start(port = this.port ?? 0) {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    return this;
  }

  /** Everything a restart cuts: connections, the encoder's too. What was on air comes back as reconnecting. */
  async stop() {
    this.drop();
    this.wake();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  get url() {
    return `http://127.0.0.1:${this.port}/live/${this.playbackId}`;
  }

  /** The encoder comes, or comes back. */
  publish() {
    if (this.state !== "reconnecting") this.beginBroadcast();
    const { live } = this;
    const init = live.inits.length;
    let first = true;
    this.encoder = spawn("ffmpeg", encoderArguments(), { stdio: ["ignore", "pipe", "inherit"] });
    readFragments(this.encoder.stdout, {
      shiftSeconds: live.seconds,
      onInit: (data) => live.inits.push(data),
      onPart: (part) => {
        if (this.live !== live || live.ended) return;
        this.take(live, part, { init, discontinuity: first && init > 0 });
        first = false;
      },
    });
  }

  beginBroadcast() {
    this.broadcasts += 1;
    this.live = { name: `b${this.broadcasts}`, inits: [], segments: [], seconds: 0, ended: false };
    this.become("starting");
  }

  take(live, part, { init, discontinuity }) {
    let open = live.segments.at(-1);
    const cut = !open || open.closed || discontinuity || (part.independent && open.seconds >= SEGMENT_MIN_S);
    if (cut) {
      if (open) open.closed = true;
      open = {
        msn: FIRST_MSN + live.segments.length,
        init,
        discontinuity,
        seconds: 0,
        parts: [],
        closed: false,
        date: new Date(),
      };
      live.segments.push(open);
    }
    open.parts.push(part);
    open.seconds += part.seconds;
    live.seconds += part.seconds;
    if (this.state !== "live" && isPlayable(live)) this.become("live");
    this.wake();
  }

  /** Closes the encoder's connection. */
  drop() {
    this.encoder?.kill("SIGKILL");
    this.encoder = null;
    if (this.state !== "live" && this.state !== "starting") return;
    close(this.live);
    this.become("reconnecting", new Date(Date.now() + this.reconnectWindowS * 1000));
  }

  /** The encoder says goodbye. */
  end() {
    this.encoder?.kill("SIGKILL");
    this.encoder = null;
    if (this.live) {
      this.live.ended = true;
      close(this.live);
    }
    this.become("ended");
  }

  become(state, reconnectUntil = null) {
    this.state = state;
    this.reconnectUntil = reconnectUntil;
    this.version += 1;
    this.wake();
  }

  wake() {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const resolve of waiting) resolve();
  }

  /** Resolves once `condition` holds, or after `timeoutMs`. */
  async until(condition, timeoutMs) {
    const deadline = Date.now() + timeoutMs;
    while (!condition() && Date.now() < deadline && this.server.listening) {
      await new Promise((resolve) => {
        this.waiting.add(resolve);
        setTimeout(resolve, Math.max(0, deadline - Date.now())).unref();
      });
    }
  }

  async answer(request, response) {
    const url = new URL(request.url, "http://mock");
    this.requests.push(request.url);
    response.setHeader("cache-control", "no-store");
    response.setHeader("access-control-allow-origin", "*");
    if (request.method === "OPTIONS") {
      response.writeHead(204, {
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": "content-type",
      });
      return response.end();
    }
    const live = url.pathname.match(/^\/live\/v1\/([^/]+)\/(.+)$/);
    if (live?.[2] === "whep") return this.answerOffer(request, response, this.whep);
    if (request.method === "POST" && url.pathname === "/live/whip")
      return this.answerOffer(request, response, this.whip);
    if (request.method === "DELETE") {
      this.deleted.push(url.pathname);
      return json(response, 200, {});
    }
    if (live) return this.answerLive(live[1], live[2], url.searchParams, response);
    if (url.pathname === "/openapi.json") return json(response, 200, this.openapi ?? {});
    const file = url.pathname.startsWith("/live/publish/")
      ? "publish.html"
      : url.pathname.startsWith("/live/")
        ? "player.html"
        : url.pathname === "/docs"
          ? "docs.html"
          : url.pathname.slice(1);
    if (!/^((assets|embed)\/)?[\w.-]+$/.test(file) || !existsSync(dist + file))
      return json(response, 404, { error: "not found" });
    response.writeHead(200, { "content-type": TYPES[file.split(".").pop()], "content-security-policy": CSP });
    createReadStream(dist + file).pipe(response);
  }

  async answerLive(playbackId, name, query, response) {
    const missing = () => json(response, 404, { error: "no such live input", code: "not_found" });
    if (!this.known || playbackId !== this.playbackId) return missing();
    if (name === "state") return this.answerState(query, response);
    const { live } = this;
    if (!live || this.state === "idle" || this.state === "starting") {
      return json(response, 404, { error: "the live input is not on air", code: "not_live" });
    }
    if (name === "index.m3u8") return text(response, multivariant());
    if (name === "media.m3u8") {
      if (query.has("_HLS_msn")) {
        const msn = Number(query.get("_HLS_msn"));
        const part = query.has("_HLS_part") ? Number(query.get("_HLS_part")) : null;
        await this.until(() => live.ended || has(live, msn, part), 15_000);
      }
      return text(response, mediaPlaylist(live));
    }
    return this.answerMedia(live, name, response, missing);
  }

  async answerOffer(request, response, answer) {
    let offer = "";
    for await (const piece of request) offer += piece;
    const off = { status: 404, body: JSON.stringify({ error: "WebRTC is turned off", code: "webrtc_off" }) };
    const { status, headers = {}, body } = (await answer?.(offer, request)) ?? off;
    const type = status === 201 ? "application/sdp" : "application/json";
    response.writeHead(status, {
      "content-type": type,
      "access-control-expose-headers": "location, link, retry-after",
      ...headers,
    });
    response.end(body);
  }

  async answerState(query, response) {
    const version = () => `m${this.version}`;
    if (query.has("since")) {
      await this.until(
        () => query.get("since") !== version(),
        Math.min(25, Number(query.get("wait") ?? 0)) * 1000,
      );
    }
    json(response, 200, {
      state: this.state,
      version: version(),
      broadcast: this.live?.name ?? null,
      reconnectUntil: this.reconnectUntil,
      latency: "low",
    });
  }

  async answerMedia(live, name, response, missing) {
    const match = name.match(/^(b\d+)\/(?:init(\d+)\.mp4|(\d+)(?:\.(\d+))?\.m4s)$/);
    if (!match || match[1] !== live.name) return missing();
    const [, , init, msn, part] = match;
    if (init !== undefined) return media(response, live.inits[Number(init)]);
    await this.until(
      () => live.ended || has(live, Number(msn), part === undefined ? null : Number(part)),
      15_000,
    );
    const segment = segmentOf(live, Number(msn));
    const data =
      part === undefined
        ? segment && Buffer.concat(segment.parts.map((p) => p.data))
        : segment?.parts[Number(part)]?.data;
    return data ? media(response, data) : missing();
  }
}

function encoderArguments() {
  const video = [
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-tune",
    "zerolatency",
    "-g",
    "60",
    "-pix_fmt",
    "yuv420p",
  ];
  return [
    ...["-hide_banner", "-loglevel", "error", "-re"],
    ...["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30"],
    ...["-f", "lavfi", "-i", "sine=frequency=330:sample_rate=48000"],
    ...video,
    ...["-c:a", "aac", "-ac", "2", "-f", "mp4", "-flush_packets", "1", "-frag_duration", "200000"],
    ...["-movflags", "+empty_moov+default_base_moof+frag_keyframe", "pipe:1"],
  ];
}

function isPlayable(live) {
  return live.ended || live.segments.some((s) => s.closed || s.parts.length >= HOLD_BACK_PARTS);
}

function close(live) {
  const open = live.segments.at(-1);
  if (open) open.closed = true;
}

function segmentOf(live, msn) {
  return live.segments[msn - FIRST_MSN];
}

function has(live, msn, part) {
  const segment = segmentOf(live, msn);
  if (!segment) return false;
  return part === null ? segment.closed : segment.closed || part < segment.parts.length;
}

function multivariant() {
  return [
    "#EXTM3U",
    "#EXT-X-VERSION:9",
    '#EXT-X-STREAM-INF:BANDWIDTH=2000000,CODECS="avc1.42c01e,mp4a.40.2",RESOLUTION=640x360,FRAME-RATE=30.000',
    "media.m3u8",
    "",
  ].join("\n");
}

function mediaPlaylist(live) {
  const listed = listedSegments(live);
  const firstMsn = listed[0]?.msn ?? FIRST_MSN;
  const gone = live.segments.slice(0, firstMsn - FIRST_MSN);
  // As in the service: hls.js rejects a list of parts only, so a gap segment leads it until the first segment leaves.
  const gapLeads = firstMsn === FIRST_MSN || !listed.some((segment) => segment.closed);
  const lines = [
    "#EXTM3U",
    "#EXT-X-VERSION:9",
    "#EXT-X-TARGETDURATION:4",
    `#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=${PART_TARGET_S * HOLD_BACK_PARTS}`,
    `#EXT-X-PART-INF:PART-TARGET=${PART_TARGET_S}`,
    `#EXT-X-MEDIA-SEQUENCE:${gapLeads ? firstMsn - 1 : firstMsn}`,
    `#EXT-X-DISCONTINUITY-SEQUENCE:${gone.filter((s) => s.discontinuity).length}`,
  ];
  if (gapLeads) lines.push(...gap(live, firstMsn - 1));
  let init = null;
  for (const segment of listed) {
    if (segment.discontinuity) lines.push("#EXT-X-DISCONTINUITY");
    if (segment.init !== init) lines.push(`#EXT-X-MAP:URI="${live.name}/init${segment.init}.mp4"`);
    init = segment.init;
    lines.push(`#EXT-X-PROGRAM-DATE-TIME:${segment.date.toISOString()}`);
    segment.parts.forEach((part, index) => {
      const independent = part.independent ? ",INDEPENDENT=YES" : "";
      lines.push(
        `#EXT-X-PART:DURATION=${part.seconds.toFixed(5)},URI="${live.name}/${segment.msn}.${index}.m4s"${independent}`,
      );
    });
    if (segment.closed)
      lines.push(`#EXTINF:${segment.seconds.toFixed(5)},`, `${live.name}/${segment.msn}.m4s`);
  }
  if (live.ended) {
    lines.push("#EXT-X-ENDLIST");
  } else {
    const last = live.segments.at(-1);
    const [msn, part] = last?.closed === false ? [last.msn, last.parts.length] : [(last?.msn ?? 0) + 1, 0];
    lines.push(`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${live.name}/${msn}.${part}.m4s"`);
  }
  return `${lines.join("\n")}\n`;
}

/** A gap segment of one part's duration. */
function gap(live, msn) {
  return [
    "#EXT-X-GAP",
    `#EXT-X-PART:DURATION=${PART_TARGET_S},URI="${live.name}/${msn}.0.m4s",GAP=YES`,
    `#EXTINF:${PART_TARGET_S},`,
    `${live.name}/${msn}.m4s`,
  ];
}

function listedSegments(live) {
  let seconds = 0;
  let from = live.segments.length;
  while (from > 0 && seconds < LISTED_S) {
    from -= 1;
    seconds += live.segments[from].seconds;
  }
  return live.segments.slice(from);
}

function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function text(response, body) {
  response.writeHead(200, { "content-type": "application/vnd.apple.mpegurl" });
  response.end(body);
}

function media(response, data) {
  response.writeHead(200, { "content-type": "video/mp4", "content-length": data.length });
  response.end(data);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const port = Number(process.argv[process.argv.indexOf("--port") + 1] || 8099);
  const openapiFile = process.env.OPENAPI;
  const openapi = openapiFile ? JSON.parse(readFileSync(openapiFile, "utf8")) : undefined;
  const service = await new MockService({ openapi }).start(port);
  console.log(service.url);
  const commands = {
    publish: () => service.publish(),
    drop: () => service.drop(),
    end: () => service.end(),
    stop: () => service.stop(),
    start: () => service.start(),
    forget: () => Object.assign(service, { known: false }),
    know: () => Object.assign(service, { known: true }),
  };
  for await (const line of createInterface({ input: process.stdin })) {
    await commands[line.trim()]?.();
    console.log(service.state);
  }
  await service.stop();
}
