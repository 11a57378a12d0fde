// The player page by WebRTC, against the mock service and a peer in the same browser: which transport plays, and when it
// changes. Needs web/dist (`npm run build` in web), ffmpeg and Chromium.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openChromium } from "./chromium.mjs";
import { MockService } from "./mock/service.mjs";
import { FLAGS, PeerServer } from "./mock/whep.mjs";
import { Observer } from "./observer.mjs";

/** Adds to the page's clock, for what takes a minute; and notes the ICE servers for which candidates are gathered. */
const INSTRUMENTS = `{
  const now = performance.now.bind(performance);
  globalThis.skippedMs = 0;
  performance.now = () => now() + globalThis.skippedMs;
  const { setLocalDescription } = RTCPeerConnection.prototype;
  RTCPeerConnection.prototype.setLocalDescription = function (...description) {
    globalThis.iceServers = this.getConfiguration().iceServers;
    return setLocalDescription.apply(this, description);
  };
}`;
const skip = (ms) => `() => { globalThis.skippedMs += ${ms}; }`;

describe("the player page by WebRTC", () => {
  let service;
  let chromium;
  let observer;
  let peer;

  before(async () => {
    service = await new MockService({ reconnectWindowS: 42 }).start();
    chromium = await openChromium({ flags: FLAGS });
    peer = await new PeerServer().start(chromium.page.context());
    service.whep = peer.answer;
    await chromium.page.addInitScript(INSTRUMENTS);
    await chromium.page.bringToFront();
    observer = new Observer(chromium.page);
  });

  after(async () => {
    await chromium?.close();
    await service?.stop();
  });

  const byTransport = (transport, seconds) =>
    observer.until(transport, seconds, (seen) => seen.transport === transport && seen.state === "live");

  it("it begins with the stream, by WebRTC, and says so with the delay", async () => {
    await observer.open(service.url);
    await observer.untilState("waiting", 10);
    assert.equal(peer.offers.length, 0, "nothing is asked for before there is something");
    service.publish();
    await byTransport("webrtc", 10);
    const seen = await observer.untilPlayed(2, 10);
    assert.equal(seen.muted, true);
    assert.equal(peer.offers.length, 1);
    const named = await observer.until("delay", 5, ({ latency }) => latency !== null);
    assert.ok(named.latency < 1, `latency ${named.latency}`);
    await observer.until("badge", 5, ({ badge }) => /^Live · WebRTC · (<0\.1|\d\.\d) s behind$/.test(badge));
    assert.ok(!service.requests.some((path) => path.includes(".m3u8")), "no playlist was asked for");
  });

  it("its offer takes audio and video, and Opus in stereo", () => {
    const [offer] = peer.offers;
    assert.equal(offer.match(/^a=recvonly/gm).length, 2);
    assert.match(offer, /^m=video /m);
    assert.match(offer, /^a=fmtp:\d+ .*useinbandfec=1;stereo=1/m);
  });

  it("the first click brings the audio", async () => {
    await chromium.page.click("#unmute");
    await observer.until("audio", 5, (seen) => !seen.muted && !seen.tapToUnmute);
  });

  it("a pause ends the session and keeps the frame, and playback continues at the live edge", async () => {
    await chromium.page.keyboard.press("k");
    await observer.until("pause", 5, (seen) => seen.paused && seen.state === "live");
    await until(() => service.deleted.length === 1);
    assert.notEqual(await brightness(observer), 0);
    await chromium.page.keyboard.press("k");
    const seen = await observer.untilPlayed(1, 10);
    assert.equal(seen.transport, "webrtc");
    assert.equal(seen.muted, false);
    assert.equal(peer.offers.length, 2);
  });

  it("a session that the service closes is replaced by another one", async () => {
    await peer.close();
    await until(() => peer.offers.length === 3);
    await byTransport("webrtc", 10);
    const seen = await observer.untilPlayed(1, 10);
    assert.equal(seen.muted, false);
  });

  it("while the encoder is away the session stays", async () => {
    service.drop();
    await peer.send();
    await observer.until("curtain", 10, (seen) => seen.state === "reconnecting" && seen.text !== "");
    // Longer than the frozen time that is a slow line's.
    await observer.evaluate(skip(5_000));
    service.publish();
    await peer.send("audio", "video");
    await byTransport("webrtc", 10);
    await observer.untilPlayed(1, 10);
    assert.equal(peer.offers.length, 3);
  });

  it("an encoder that stalls is waited for", async () => {
    await peer.send();
    await chromium.page.evaluate(() => {
      globalThis.stalledAt = performance.now();
    });
    await chromium.page.waitForFunction(() => performance.now() > globalThis.stalledAt + 4_000);
    await peer.send("audio", "video");
    await byTransport("webrtc", 10);
    await observer.untilPlayed(2, 10);
    assert.equal(peer.offers.length, 3);
  });

  it("frozen video is followed by HLS, with the reason, and a minute later by WebRTC", async () => {
    await peer.send("audio");
    await byTransport("hls", 10);
    const seen = await observer.until("reason", 5, (now) => now.text !== "");
    assert.match(seen.text, /too slow for WebRTC/);
    await observer.untilPlayed(1, 10);
    await observer.until("badge", 5, ({ badge }) => /^Live · Low-latency HLS · \d\.\d s behind$/.test(badge));
    assert.equal(peer.offers.length, 3);
    await observer.evaluate(skip(61_000));
    await byTransport("webrtc", 15);
    assert.equal(peer.offers.length, 4);
    await observer.untilPlayed(1, 10);
  });

  it("the end of the broadcast and the next one", async () => {
    service.end();
    await peer.close();
    await observer.untilState("ended", 10);
    service.publish();
    await byTransport("webrtc", 15);
    await observer.untilPlayed(1, 10);
  });

  it("a page that is left deletes its session", async () => {
    const before = service.deleted.length;
    await chromium.page.goto("about:blank");
    await until(() => service.deleted.length > before);
  });

  it("where no packet arrives, it plays by HLS within six seconds", async () => {
    peer.isBlocked = true;
    await observer.open(service.url);
    await byTransport("hls", 8);
    const seen = await observer.until("reason", 5, (now) => now.text !== "");
    assert.match(seen.text, /blocked on this network/);
    assert.ok(
      observer.states.find(({ state }) => state === "live").atMs < 8_000,
      JSON.stringify(observer.states),
    );
    peer.isBlocked = false;
  });

  it("a service without room is left alone, and HLS plays", async () => {
    peer.rejection = {
      status: 503,
      headers: { "retry-after": "5" },
      body: JSON.stringify({ error: "every place is taken", code: "webrtc_full" }),
    };
    const before = peer.offers.length;
    await observer.open(service.url);
    await byTransport("hls", 10);
    await observer.untilPlayed(1, 10);
    assert.equal(peer.offers.length, before + 1);
    peer.rejection = null;
  });

  it("the address may force either", async () => {
    await observer.open(`${service.url}?via=hls`);
    await byTransport("hls", 10);
    peer.isBlocked = true;
    const before = peer.offers.length;
    await observer.open(`${service.url}?via=webrtc`);
    await until(() => peer.offers.length > before + 1, 15_000);
    assert.notEqual((await observer.sample()).state, "live");
    peer.isBlocked = false;
    await byTransport("webrtc", 15);
  });

  it("ICE servers of the answer count for the candidates", async () => {
    peer.headers = {
      link: '<turn:127.0.0.1:9?transport=tcp>; rel="ice-server"; username="a"; credential="b"',
    };
    await observer.open(service.url);
    await byTransport("webrtc", 10);
    const servers = await observer.evaluate("() => globalThis.iceServers");
    assert.deepEqual(
      servers.map(({ urls, username, credential }) => [urls, username, credential].flat()),
      [["turn:127.0.0.1:9?transport=tcp", "a", "b"]],
    );
  });

  it("nothing was asked of anybody else, and nothing broke the content policy", () => {
    const { foreignRequests, consoleErrors } = observer.summary();
    assert.deepEqual(foreignRequests, []);
    assert.deepEqual(
      consoleErrors.filter((text) => !/Failed to load resource/.test(text)),
      [],
    );
  });
});

async function until(condition, ms = 5_000) {
  const deadline = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The mean brightness of the frame on the screen. */
function brightness(observer) {
  return observer.evaluate(() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 16, height: 9 });
    const pen = canvas.getContext("2d");
    pen.drawImage(document.getElementById("video"), 0, 0, 16, 9);
    const { data } = pen.getImageData(0, 0, 16, 9);
    return data.reduce((sum, value, index) => sum + (index % 4 === 3 ? 0 : value), 0) / (16 * 9 * 3);
  });
}
