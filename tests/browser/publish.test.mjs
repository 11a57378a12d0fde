// The publish page, against the mock service and a peer in the same browser, with Chromium's own fake camera and microphone.
// Needs web/dist (`npm run build` in web) and Chromium.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import axe from "axe-core";
import { openChromium } from "./chromium.mjs";
import { MockService } from "./mock/service.mjs";
import { FLAGS, PeerServer } from "./mock/whep.mjs";

const DEVICES = [
  "--use-fake-device-for-media-stream",
  "--use-fake-ui-for-media-stream",
  "--auto-select-desktop-capture-source=Entire screen",
];
const KEY = "svc_live_0123456789abcdef0123456789abcdef";

describe("the publish page", () => {
  let service;
  let chromium;
  let page;
  let peer;
  const errors = [];

  before(async () => {
    service = await new MockService().start();
    chromium = await openChromium({ flags: [...FLAGS, ...DEVICES] });
    page = chromium.page;
    peer = await new PeerServer().start(page.context());
    service.whip = peer.answer;
    await page.bringToFront();
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource/.test(message.text()))
        errors.push(message.text());
    });
  });

  after(async () => {
    await chromium?.close();
    await service?.stop();
  });

  const open = (hash = "") => page.goto(`http://127.0.0.1:${service.port}/live/publish/stage${hash}`);
  const state = () => page.evaluate(() => globalThis.sluice.state);
  const untilState = (wanted) =>
    page.waitForFunction((wanted) => globalThis.sluice.state === wanted, wanted, { timeout: 15_000 });
  /** Has the page note its states from now on, also one that passes quickly. */
  const noteStates = () =>
    page.evaluate(() => {
      globalThis.states = [];
      new MutationObserver(() => globalThis.states.push(globalThis.sluice.state)).observe(document, {
        subtree: true,
        attributes: true,
        attributeFilter: ["data-stage"],
      });
    });
  const untilReplaced = () =>
    page.waitForFunction(
      () => globalThis.states.includes("reconnecting") && globalThis.states.at(-1) === "live",
      undefined,
      { timeout: 15_000 },
    );
  const problem = async (words) => {
    // Another problem may be shown until then.
    await page.waitForFunction((words) => {
      const problem = document.getElementById("problem");
      return !problem.hidden && new RegExp(words).test(problem.textContent);
    }, words.source);
  };

  it("it takes the key out of the address and captures nothing by itself", async () => {
    await open(`#key=${KEY}`);
    assert.equal(new URL(page.url()).hash, "");
    assert.equal(await page.inputValue("#key"), KEY);
    assert.equal(await state(), "setup");
    assert.equal(await page.isVisible("#curtain"), true);
    await expectAccessible(page, "nothing shared", "publish-empty");
  });

  it("it shows the camera as in a mirror, with the devices' names and the microphone's level", async () => {
    await page.click("#share");
    await page.waitForFunction(() => document.getElementById("video").videoWidth > 0);
    assert.equal(
      await page.evaluate(() => getComputedStyle(document.getElementById("video")).transform),
      "matrix(-1, 0, 0, 1, 0, 0)",
    );
    assert.match(await page.textContent("#camera option"), /fake_device_0/);
    // The fake microphone beeps.
    await page.waitForFunction(
      () => Number(document.getElementById("microphone-level").getAttribute("aria-valuenow")) > -40,
    );
    assert.equal(await page.inputValue("#rate"), "2500000");
    assert.match(await page.textContent("#resolution option:checked"), /720p, 30 fps/);
    await expectAccessible(page, "preview", "publish-preview");
  });

  it("it goes live with H.264 first and stereo, with the key in a header alone", async () => {
    await page.click("#go");
    await untilState("live");
    const [offer] = peer.offers;
    const [, first] = /^m=video \S+ \S+ (\d+)/m.exec(offer);
    assert.match(offer, new RegExp(`^a=rtpmap:${first} H264/90000`, "m"));
    assert.match(offer, new RegExp(`^a=fmtp:${first} .*packetization-mode=1`, "m"));
    assert.match(offer, /^a=fmtp:\d+ .*useinbandfec=1;stereo=1;sprop-stereo=1/m);
    assert.equal(offer.match(/^a=sendonly/gm).length, 2);
    assert.deepEqual(peer.credentials, [`Bearer stage.${KEY}`]);
    assert.ok(!service.requests.some((path) => path.includes(KEY)));
    await page.waitForFunction(() => globalThis.sluice.bitrate > 50_000, undefined, { timeout: 15_000 });
    const { frames, audio, codec } = await peer.received();
    assert.ok(frames > 0 && audio > 0, JSON.stringify({ frames, audio, codec }));
    // Each is measured once a second, some only after the other side's reports.
    for (const [id, words] of [
      ["badge-text", /^Live · 00:(?!00)[0-5]\d$/],
      ["bitrate", /bit\/s$/],
      ["round-trip", /^\d+ ms$/],
      ["format", /^\d+×\d+, \d+ fps/],
      ["dropped", /^\d+$/],
    ])
      await page.waitForFunction(
        ([id, words]) => new RegExp(words).test(document.getElementById(id).textContent),
        [id, words.source],
      );
    assert.equal(await page.textContent("#announcement"), "You are live.");
    await expectAccessible(page, "live", "publish-live");
  });

  it("the microphone is muted and unmuted", async () => {
    await page.click("#mute");
    assert.equal(await page.getAttribute("#mute", "aria-pressed"), "true");
    await page.waitForFunction(
      () => Number(document.getElementById("microphone-level").getAttribute("aria-valuenow")) === -60,
    );
    await page.click("#mute");
    await page.waitForFunction(
      () => Number(document.getElementById("microphone-level").getAttribute("aria-valuenow")) > -40,
    );
  });

  it("another resolution is sent without another session", async () => {
    await page.selectOption("#resolution", { label: "360p, 30 fps" });
    assert.equal(await page.inputValue("#rate"), "700000");
    await page.waitForFunction(() => document.getElementById("video").videoHeight === 360);
    await page.waitForFunction(
      () => globalThis.sluice.height > 0 && globalThis.sluice.height <= 360,
      undefined,
      {
        timeout: 15_000,
      },
    );
    assert.equal(peer.offers.length, 1);
  });

  it("a lost session is replaced, while the clock runs on", async () => {
    await noteStates();
    await peer.close();
    await untilReplaced();
    assert.equal(peer.offers.length, 2);
    assert.equal(service.deleted.length, 0, "a DELETE would end the broadcast");
    assert.doesNotMatch(await page.textContent("#badge-text"), /00:00/);
  });

  it("leaving the page warns while live", async () => {
    const warned = page.waitForEvent("dialog");
    const leaving = page.close({ runBeforeUnload: true });
    const dialog = await warned;
    assert.equal(dialog.type(), "beforeunload");
    await dialog.dismiss();
    await leaving;
    assert.equal(await state(), "live");
  });

  it("Stop ends the session at the service, by keyboard", async () => {
    await page.focus("#stop");
    await page.keyboard.press("Enter");
    await untilState("setup");
    // The page does not wait for the answer.
    const deadline = performance.now() + 15_000;
    while (service.deleted.length === 0) {
      assert.ok(performance.now() < deadline, "no DELETE");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.equal(service.deleted.length, 1);
    await page.waitForFunction(() => document.activeElement.id === "go");
    assert.equal(await page.evaluate(() => document.getElementById("video").videoWidth > 0), true);
  });

  it("a session that the service closes again and again is left to whom it was given", async () => {
    await page.click("#go");
    await untilState("live");
    await noteStates();
    await peer.close();
    await untilReplaced();
    await peer.close();
    await problem(/ended this stream/);
    assert.equal(await state(), "setup");
  });

  it("a screen is shown as it is, and published", async () => {
    await page.check("input[value=screen]");
    await page.click("#share");
    await page.waitForFunction(() => document.getElementById("video").videoWidth > 0);
    assert.equal(
      await page.evaluate(() => getComputedStyle(document.getElementById("video")).transform),
      "none",
    );
    await page.click("#go");
    await untilState("live");
    await expectAccessible(page, "screen", "publish-screen");
    await page.click("#stop");
    await page.check("input[value=camera]");
    await page.click("#share");
    await page.waitForFunction(() => document.getElementById("video").videoWidth > 0);
  });

  it("every rejection has words", async () => {
    for (const [status, code, words] of [
      [401, "stream_key_invalid", /stream key is wrong/],
      [403, "input_disabled", /input is disabled/],
      [409, "publisher_conflict", /Another encoder/],
      [404, "webrtc_off", /turned off/],
      [503, "webrtc_full", /busy/],
    ]) {
      peer.rejection = { status, body: JSON.stringify({ error: "no", code }) };
      await page.click("#go");
      await problem(words);
      assert.equal(await state(), "setup");
    }
    await expectAccessible(page, "a problem", "publish-problem");
    peer.rejection = null;
  });

  it("ports that are blocked are named", async () => {
    peer.isBlocked = true;
    await page.click("#go");
    await page.waitForFunction(
      () => /No packet reached/.test(document.getElementById("problem-title").textContent),
      undefined,
      { timeout: 25_000 },
    );
    peer.isBlocked = false;
  });

  it("without a key it says so, at the field", async () => {
    await page.fill("#key", "");
    await page.click("#go");
    await problem(/stream key is missing/);
    await page.waitForFunction(() => document.activeElement.id === "key");
  });

  it("a permission that is denied has words", async () => {
    await open();
    await page.evaluate(() => {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotAllowedError"));
    });
    await page.click("#share");
    await problem(/does not allow the camera/);
  });

  it("a page by plain HTTP says what to do", async () => {
    const plain = await openChromium({ host: "media.home" });
    try {
      await plain.page.goto(`http://media.home:${service.port}/live/publish/stage#key=${KEY}`);
      await plain.page.waitForSelector("#insecure:not([hidden])");
      assert.equal(await plain.page.isVisible("#studio"), false);
      assert.match(await plain.page.textContent("#insecure"), /HTTPS/);
      assert.match(
        await plain.page.textContent("#localhost-link"),
        /^http:\/\/localhost:\d+\/live\/publish\/stage$/,
      );
      assert.equal(new URL(plain.page.url()).hash, "");
      await expectAccessible(plain.page, "plain HTTP", "publish-insecure");
    } finally {
      await plain.close();
    }
  });

  it("nothing broke the content policy", () => assert.deepEqual(errors, []));
});

/** axe finds nothing and nothing is wider than the screen, in both schemes and at both widths; with screenshots on request. */
async function expectAccessible(page, what, name) {
  const before = page.viewportSize();
  const found = [];
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 800 });
      // As an expression: the content policy allows no scripts in the page.
      if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
      await page.evaluate(() => {
        for (const animation of document.getAnimations()) animation.finish();
      });
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      for (const { id, nodes } of violations)
        found.push(`${what}, ${scheme}, ${width} px: ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) found.push(`${what}, ${scheme}, ${width} px: ${overflow} px too wide`);
      const folder = process.env.SLUICE_SHOTS;
      if (folder) await page.screenshot({ path: `${folder}/${name}-${scheme}-${width}.png`, fullPage: true });
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  await page.setViewportSize(before);
  assert.deepEqual(found, []);
}
