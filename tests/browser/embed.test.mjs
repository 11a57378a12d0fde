// The element <sluice-player> on a page of another site with a strict content policy, against the mock service and a peer in
// the same browser. Needs web/dist (`npm run build` in web), ffmpeg and Chromium.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, describe, it } from "node:test";
import axe from "axe-core";
import { openChromium } from "./chromium.mjs";
import { MockService } from "./mock/service.mjs";
import { FLAGS, PeerServer } from "./mock/whep.mjs";

describe("the element on another site", () => {
  let service;
  let site;
  let chromium;
  let page;
  let peer;
  const errors = [];

  before(async () => {
    service = await new MockService().start();
    const host = `http://127.0.0.1:${service.port}`;
    const policy = `default-src 'none'; script-src ${host}; connect-src ${host}; media-src blob:; require-trusted-types-for 'script'`;
    site = createServer((request, response) => {
      const attributes = new URL(request.url, "http://site").searchParams.get("with") ?? "";
      response.writeHead(200, { "content-type": "text/html", "content-security-policy": policy });
      response.end(
        `<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1><script src="${host}/embed/sluice-player.js"></script>` +
          `<sluice-player src="${host}/live/v1/pb_mock" ${attributes}></sluice-player></main>`,
      );
    });
    await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
    chromium = await openChromium({ flags: FLAGS });
    page = chromium.page;
    peer = await new PeerServer().start(page.context());
    service.whep = peer.answer;
    await page.bringToFront();
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource|favicon/.test(message.text()))
        errors.push(message.text());
    });
  });

  after(async () => {
    await chromium?.close();
    await service?.stop();
    site?.close();
  });

  const open = (attributes) =>
    page.goto(`http://127.0.0.1:${site.address().port}/?with=${encodeURIComponent(attributes)}`);
  const until = (condition, wanted) => page.waitForFunction(condition, wanted, { timeout: 15_000 });
  const untilState = (wanted) =>
    until((wanted) => document.querySelector("sluice-player").state === wanted, wanted);
  const plays = async (transport) => {
    await untilState("live");
    await until((wanted) => document.querySelector("sluice-player").transport === wanted, transport);
    await page.evaluate(() => {
      globalThis.from = document.querySelector("sluice-player").shadowRoot.querySelector("video").currentTime;
    });
    await until(() => {
      const video = document.querySelector("sluice-player").shadowRoot.querySelector("video");
      return video.currentTime > globalThis.from + 0.5 && video.videoWidth > 0;
    });
  };

  it("asks for nothing before it is played", async () => {
    await open("controls");
    await until(() => document.querySelector("sluice-player").state === "idle");
    assert.ok(!service.requests.some((path) => path.startsWith("/live/v1/")));
    await page.evaluate(() => {
      globalThis.seen = [];
      const player = document.querySelector("sluice-player");
      player.addEventListener("statechange", (event) => globalThis.seen.push(event.detail.state));
      player.addEventListener("transportchange", (event) => globalThis.seen.push(event.detail.transport));
    });
    await page.locator("sluice-player").getByRole("button", { name: "Play", exact: true }).first().click();
    await untilState("waiting");
  });

  it("plays by WebRTC, with its events and its styles", async () => {
    service.publish();
    await plays("webrtc");
    const seen = await page.evaluate(() => globalThis.seen);
    for (const each of ["waiting", "live", "webrtc"]) assert.ok(seen.includes(each), `${each} of ${seen}`);
    const { width, height } = await page.locator("sluice-player").boundingBox();
    assert.ok(Math.abs(width / height - 16 / 9) < 0.01, `${width}×${height}`);
    const badge = page.locator("sluice-player").locator(".badge");
    await badge.filter({ hasText: /^Live · WebRTC/ }).waitFor();
    assert.equal(await badge.evaluate((element) => getComputedStyle(element).position), "absolute");
    assert.ok(!service.requests.some((path) => /hls|chunk/.test(path)), "hls.js was not loaded");
  });

  it("pauses and continues, by its methods and its controls", async () => {
    await page.evaluate(() => document.querySelector("sluice-player").pause());
    assert.equal(await page.evaluate(() => document.querySelector("sluice-player").paused), true);
    await page.locator("sluice-player").getByRole("button", { name: "Play", exact: true }).first().click();
    await plays("webrtc");
    await page.locator("sluice-player").hover();
    await page.locator("sluice-player").getByRole("button", { name: "Mute" }).click();
    assert.equal(await page.evaluate(() => document.querySelector("sluice-player").muted), true);
    assert.equal(await page.evaluate(() => localStorage.length), 0, "nothing is stored at the site");
  });

  it("is accessible", async () => {
    // Over the page's policy, which allows no scripts but the service's.
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: axe.source });
    const { violations } = await page.evaluate(() => globalThis.axe.run("sluice-player"));
    assert.deepEqual(
      violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html)}`),
      [],
    );
    if (process.env.SLUICE_SHOTS) await page.screenshot({ path: `${process.env.SLUICE_SHOTS}/embed.png` });
  });

  it("ends its session when it is removed", async () => {
    const before = service.deleted.length;
    await page.evaluate(() => document.querySelector("sluice-player").remove());
    const deadline = performance.now() + 5_000;
    while (service.deleted.length === before) {
      assert.ok(performance.now() < deadline, "no DELETE");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });

  it("plays by HLS, which it loads from the service, where WebRTC does not", async () => {
    peer.rejection = { status: 422, body: JSON.stringify({ error: "no", code: "no_common_codec" }) };
    await open("autoplay muted");
    await plays("hls");
    assert.ok(service.requests.some((path) => /^\/assets\/hls-/.test(path)));
    peer.rejection = null;
  });

  it("begins muted where the browser wants a gesture, and offers the audio", async () => {
    await open("autoplay");
    await plays("webrtc");
    await page.locator("sluice-player").getByRole("button", { name: "Tap to unmute" }).click();
    assert.equal(await page.evaluate(() => document.querySelector("sluice-player").muted), false);
  });

  it("follows its attributes", async () => {
    await page.evaluate(() => document.querySelector("sluice-player").setAttribute("via", "hls"));
    await plays("hls");
    await page.evaluate(() => document.querySelector("sluice-player").setAttribute("token", "another"));
    await untilState("unknown");
    await page.evaluate(() => document.querySelector("sluice-player").setAttribute("src", "nowhere"));
    await page.locator("sluice-player").getByText("The address of the stream is missing or wrong").waitFor();
  });

  it("nothing broke the site's content policy", () => assert.deepEqual(errors, []));
});
