// Live inputs: made, connected, published to by ffmpeg over RTMP and SRT, watched, forwarded, recorded, clipped, protected,
// ended, changed and deleted; again by keyboard alone. By a name over plain HTTP, where browsers give pages no clipboard.
import assert from "node:assert/strict";
import { after } from "node:test";
import { publish, stopAll } from "./encoder.mjs";
import {
  closed,
  expectAccessible,
  expectNoSecrets,
  focused,
  HOSTILE,
  hasFocus,
  inDialog,
  journey,
  scene,
  screenshots,
  shown,
  signIn,
  tabTo,
  titled,
  visit,
} from "./support.mjs";

const HOST = "media.home";
/** As long as a name of an input may be. */
const NAMES = HOSTILE.map((name) => name.slice(0, 120));

const button = (page, name) => page.locator("main").getByRole("button", { name, exact: true });
const press = (page, name) => button(page, name).first().click();
const tab = async (page, name) => {
  await page.locator(".tabs").getByRole("link", { name }).click();
  await shown(page);
};
const status = (page, word) => page.waitForSelector(`.page-aside .tag:text-is("${word}")`);
const row = (page, name) => page.locator(".live-list .vlist-row", { hasText: name });
const value = (page, label) => page.getByLabel(label, { exact: true }).inputValue();

/** Waits until the position of the video has advanced five times from now, so that a jump is not enough. */
async function plays(page, selector = ".live-player video") {
  await page.waitForSelector(selector);
  await page.evaluate(() => {
    globalThis.seen = { position: Number.NaN, advances: 0 };
  });
  await page.waitForFunction(
    (selector) => {
      // It may be made anew between two looks.
      const currentTime = document.querySelector(selector)?.currentTime ?? Number.NaN;
      if (currentTime > globalThis.seen.position) globalThis.seen.advances += 1;
      globalThis.seen.position = currentTime;
      return globalThis.seen.advances === 5;
    },
    selector,
    { polling: 200 },
  );
}

/** An address of the page as this machine resolves it. */
const here = (url) => url.replace(HOST, "127.0.0.1");

/** The status, else the code of the error, for a viewer without a session; from another site when `site` is given. */
async function asViewer(url, site) {
  const headers = site ? { origin: site, referer: `${site}/` } : {};
  const response = await fetch(here(url), { headers });
  return response.ok ? response.status : (await response.json()).code;
}

/** Presses the button that copies the field `label`; returns what a paste into another page gives. */
async function copied(page, label, elsewhere) {
  await page.getByRole("button", { name: `Copy ${label}`, exact: true }).click();
  await elsewhere.fill("textarea", "");
  await elsewhere.keyboard.press("Control+V");
  const text = await elsewhere.inputValue("textarea");
  // A page behind another one is slow.
  await page.bringToFront();
  return text;
}

/** Fields that are filled in wrongly on purpose. */
const expected = [
  [400, /\/outputs$/],
  [400, /^\/api\/live\/inputs\/[0-9a-f-]+$/],
  // And an input that is gone
  [404, /^\/api\/live\/inputs\/[0-9a-f-]+$/],
];

journey("live inputs", { host: HOST, expected }, (step, at) => {
  /** Addresses to publish to and to watch at, and what must be nowhere in the end. */
  const address = {};
  const secrets = [];
  let elsewhere;
  let encoder;
  let list;
  after(stopAll);

  step("are made from the list, and open with what an encoder needs", async (page) => {
    await signIn(page, "/live");
    assert.equal(await page.evaluate(() => isSecureContext), false);
    elsewhere = await at.context().newPage();
    await elsewhere.setContent("<!doctype html><title>Elsewhere</title><textarea></textarea>");
    await page.bringToFront();
    await press(page, "New input");
    await page.waitForSelector("dialog input");
    await expectAccessible(page, "a new input");
    await page.fill("dialog input[name=name]", "Main stage");
    await inDialog(page, "Make the input");
    await page.waitForURL(/\/app\/live\/[0-9a-f-]{36}\/connect$/);
    address.page = new URL(page.url()).pathname.replace(/^\/app|\/connect$/g, "");
    await page.waitForFunction(() => document.title === "Main stage – Sluice");
    assert.equal(await copied(page, "Server", elsewhere), await value(page, "Server"));
    address.hls = await copied(page, "HLS playlist", elsewhere);
    await expectNoSecrets(page);
  });

  step("show the stream key when asked for, and copy it", async (page) => {
    await press(page, "Show the key");
    const key = await copied(page, "Stream Key", elsewhere);
    assert.match(key, /^\w+\.svc_live_\w{32}$/);
    await screenshots(page, "live-connect");
    await page.getByText("ffmpeg", { exact: true }).click();
    address.rtmp = /'(rtmp:.*)'$/.exec(await copied(page, "Command", elsewhere))[1];
    assert.ok(address.rtmp.endsWith(`/${key}`));
    await page.getByText("SRT", { exact: true }).click();
    address.srt = await copied(page, "Address with key and passphrase", elsewhere);
    secrets.push(key.split(".")[1], await copied(page, "Passphrase", elsewhere));
    await expectAccessible(page, "connect");
    await page.getByText("WebRTC", { exact: true }).click();
    const link = page.getByRole("link", { name: "Go live from this browser" });
    const target = new URL(await link.getAttribute("href"), page.url());
    assert.equal(target.hash, `#key=${key.split(".")[1]}`);
    await expectAccessible(page, "connect by WebRTC");
    await press(page, "Hide the key");
    await expectNoSecrets(page, secrets);
  });

  step("go live in the page and in the list without a reload, and play", async (page) => {
    await tab(page, "Recordings");
    await press(page, "Record broadcasts");
    await page.getByText("The next broadcast is recorded.").waitFor();
    list = await at.context().newPage();
    at.watch(list);
    await visit(list, "/live");
    await page.bringToFront();
    await tab(page, "Watch");
    for (const each of [page, list]) await each.evaluate(() => (globalThis.isSamePage = true));
    encoder = publish(here(address.rtmp), { keyFrameS: 3 });
    await status(page, "live");
    await row(list, "Main stage").locator(".tag:text-is('live')").waitFor();
    await plays(page);
    for (const each of [page, list]) assert.ok(await each.evaluate(() => globalThis.isSamePage));
  });

  step("have a poster, viewers, a filter and a search in the list", async (page) => {
    await list.bringToFront();
    await row(list, "Main stage").getByText("1 viewer").waitFor();
    await list.waitForFunction(() => document.querySelector(".live-poster img")?.naturalWidth > 0);
    await expectAccessible(list, "the list");
    await screenshots(list, "live");
    await list.selectOption("select[name=status]", "idle");
    await row(list, "Main stage").waitFor({ state: "detached" });
    await list.selectOption("select[name=status]", "live");
    await row(list, "Main stage").waitFor();
    await list.waitForFunction(() => document.querySelectorAll(".live-list .vlist-row").length === 1);
    await list.fill("input[name=q]", "no such name");
    await list.getByText("No live input fits.").waitFor();
    await list.fill("input[name=q]", "main st");
    await row(list, "Main stage").waitFor();
    await list.close();
    await page.bringToFront();
  });

  step("have health with advice that names the encoder's setting", async (page) => {
    await page.waitForSelector(".live-advice li:has-text('Keyframe Interval')");
    await page.waitForSelector(".chart canvas");
    await expectAccessible(page, "watch and health");
    await screenshots(page, "live-input");
  });

  step("are forwarded to outputs, which say why one fails", async (page) => {
    await tab(page, "Outputs");
    const add = async (url) => {
      await press(page, "New output");
      await page.fill("dialog input[name=url]", url);
      await inDialog(page, "Add the output");
      await closed(page);
    };
    await press(page, "New output");
    await page.waitForSelector("dialog input");
    await expectAccessible(page, "a new output");
    await page.fill("dialog input[name=url]", "ftp://nowhere.example/");
    await inDialog(page, "Add the output");
    await page.waitForSelector("dialog [aria-invalid=true]");
    await inDialog(page, "Cancel");
    await add("rtmp://127.0.0.1:1/app/a-key-of-a-platform");
    await page.waitForSelector(".live-output:has-text('127.0.0.1:1/') .field-error:has-text('refused')");
    await add(scene.second);
    const second = page.locator(".live-output", { hasNotText: "127.0.0.1:1/" });
    await second.locator(".tag:text-is('live')").waitFor();
    await expectAccessible(page, "outputs");
    await expectNoSecrets(page, secrets);
    await screenshots(page, "live-outputs", { phone: false });
    await second.getByRole("switch").click();
    await second.locator(".tag:text-is('idle')").waitFor();
    for (let left = 1; left >= 0; left--) {
      await press(page, "Remove");
      await inDialog(page, "Remove");
      await closed(page);
      await page.waitForFunction((left) => document.querySelectorAll(".live-output").length === left, left);
    }
  });

  step("give a clip of what is on air", async (page) => {
    await press(page, "Clip");
    await page.waitForSelector("dialog select");
    await expectAccessible(page, "a clip");
    await page.fill("dialog input[name=filename]", "opening");
    await inDialog(page, "Make the clip");
    await closed(page);
    await page.locator(".toast").getByRole("button", { name: "Open" }).click();
    await page.waitForURL(/\/app\/files\?file=[0-9a-f-]{36}$/);
    await page.waitForSelector("h2:has-text('opening')");
    await visit(page, `${address.page}/watch`);
    await plays(page);
  });

  step("say offline in the graph of a lost encoder, and never draw zero", async (page) => {
    await encoder.kill();
    await status(page, "reconnecting");
    await page
      .locator(".page-aside")
      .getByText(/^\d:\d\d left$/)
      .waitFor();
    await page.waitForSelector(".chart-place[aria-label^='Bitrate: Video offline, Audio offline']");
    await page.locator(".chart", { hasText: "Bitrate" }).getByRole("button").click();
    await page.locator(".chart table td", { hasText: "offline" }).first().waitFor();
    await page
      .locator(".chart table td", { hasText: /[1-9]\d* kbit/ })
      .first()
      .waitFor();
    const cells = await page.locator(".chart table td").allTextContents();
    assert.ok(cells.includes("offline") && cells.some((cell) => /[1-9]\d* kbit/.test(cell)), cells.join());
    assert.deepEqual(
      cells.filter((cell) => /^0\b/.test(cell)),
      [],
    );
    await expectAccessible(page, "reconnecting");
  });

  step("continue over SRT, where the advice is gone", async (page) => {
    encoder = publish(here(address.srt), { keyFrameS: 1 });
    await status(page, "live");
    await page.waitForSelector(".facts :text('SRT')");
    await page.waitForFunction(() => !document.querySelector(".live-advice"));
    await page.getByText("All is well.").waitFor();
    await plays(page);
  });

  step("are watched by those who may: with a token, from a site", async (page) => {
    await tab(page, "Access");
    assert.equal(await asViewer(address.hls), 200);
    await page.getByLabel("Signed playback").click();
    await page.waitForSelector("[role=switch][aria-checked=true]");
    assert.equal(await asViewer(address.hls), "playback_token_required");
    await press(page, "Make an address");
    const signed = await copied(page, "HLS playlist", elsewhere);
    secrets.push(/[^/]+(?=\/index\.m3u8)/.exec(signed)[0]);
    assert.equal(await asViewer(signed), 200);
    await page.fill("textarea[name=allowedDomains]", "https://not a host");
    await press(page, "Save");
    await page.waitForSelector("[aria-invalid=true]");
    await page.fill("textarea[name=allowedDomains]", "shop.example\n*.club.example");
    await press(page, "Save");
    await page.locator(".toast", { hasText: "Saved." }).waitFor();
    assert.equal(await asViewer(signed, "https://other.example"), "site_not_allowed");
    assert.equal(await asViewer(signed, "https://shop.example"), 200);
    await expectAccessible(page, "access");
    await screenshots(page, "live-access", { phone: false });
    // The owner watches all the same.
    await tab(page, "Watch");
    await plays(page);
    await expectNoSecrets(page, secrets);
  });

  step("end when one ends them", async (page) => {
    await press(page, "End stream");
    await page.waitForSelector("dialog");
    await expectAccessible(page, "ending a stream");
    await inDialog(page, "End stream");
    await status(page, "idle");
    assert.notEqual(await encoder.ended, 0);
  });

  step("are shown while on air in the list of activity, and ended there by keyboard", async (page) => {
    encoder = publish(here(address.rtmp));
    await visit(page, "/activity?kind=live");
    const broadcast = page.locator(".activity-list [data-index='0']", { hasText: "Main stage" });
    await broadcast.getByText("On air").waitFor();
    await expectAccessible(page, "what is on air");
    await broadcast.focus();
    await page.keyboard.press("Delete");
    await page.waitForSelector("dialog:has-text('Main stage')");
    await tabTo(page, "dialog [type=submit]");
    await page.keyboard.press("Enter");
    await broadcast.waitFor({ state: "detached" });
    assert.notEqual(await encoder.ended, 0);
  });

  step("are opened, given a new key, and ended by keyboard alone", async (page) => {
    await visit(page, "/live");
    await row(page, "Main stage").waitFor();
    await tabTo(page, ".live-list [data-index]");
    while (!(await focused(page)).includes("Main stage")) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(address.page));
    await shown(page);
    await hasFocus(page, "H1 Main stage");
    await tabTo(page, ".tabs a[href$='/connect']");
    await page.keyboard.press("Enter");
    await shown(page);
    await tabTo(page, ".live-key .btn:last-child");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog");
    await tabTo(page, "dialog [type=submit]");
    await page.keyboard.press("Enter");
    await closed(page);
    await hasFocus(page, "BUTTON New key");
    const key = await value(page, "Stream Key");
    secrets.push(key.split(".")[1]);
    assert.notEqual(await publish(here(address.rtmp)).ended, 0);
    await status(page, "idle");
    address.latest = here(address.rtmp).replace(/[^/]+$/, key);
    encoder = publish(address.latest);
    await status(page, "live");
    await page.locator("h1").focus();
    await tabTo(page, ".btn-danger");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog");
    await tabTo(page, "dialog [type=submit]");
    await page.keyboard.press("Enter");
    await status(page, "idle");
    await encoder.ended;
  });

  step("are recorded, and the recording plays", async (page) => {
    await tab(page, "Recordings");
    // One of both broadcasts
    await page.waitForSelector("tbody .tag:text-is('ready')");
    await expectAccessible(page, "recordings");
    await screenshots(page, "live-recordings", { phone: false });
    await page.locator("tbody tr:has(.tag:text-is('ready')) a").last().click();
    await page.waitForSelector("video");
    await page.evaluate(() => {
      const video = document.querySelector("video");
      video.muted = true;
      return video.play();
    });
    await plays(page, "video");
  });

  step("keep changed settings, and reject encoders while disabled", async (page) => {
    await visit(page, `${address.page}/settings`);
    await page.getByLabel("Name").fill("Side stage");
    await page.getByLabel("Latency").selectOption("standard");
    await page.getByLabel("Reconnect window in seconds").fill("15");
    await press(page, "Save");
    await page.waitForFunction(() => document.title.startsWith("Side stage"));
    await page.reload();
    await shown(page);
    assert.deepEqual(
      [
        await value(page, "Name"),
        await value(page, "Latency"),
        await value(page, "Reconnect window in seconds"),
      ],
      ["Side stage", "standard", "15"],
    );
    await expectAccessible(page, "settings");
    await page.getByLabel("Accepts encoders").click();
    await status(page, "disabled");
    assert.notEqual(await publish(address.latest).ended, 0);
    await expectNoSecrets(page, secrets);
  });

  step("are fetched from a camera, whose password is not shown again", async (page) => {
    const [password, source] = ["camera-password-1", "127.0.0.1:1/stream"];
    secrets.push(password);
    await tab(page, "Connect");
    await page.getByText("RTSP pull", { exact: true }).click();
    await page.getByLabel("Address of the source").fill(`rtsp://user:${password}@${source}`);
    await press(page, "Save");
    await page.getByText("Fetched from").waitFor();
    await expectNoSecrets(page, secrets);
    await press(page, "Stop pulling");
    await page.getByText("Fetched from").waitFor({ state: "detached" });
  });

  step("are gone once deleted", async (page) => {
    await tab(page, "Settings");
    await press(page, "Delete the input");
    await inDialog(page, "Delete the input");
    await page.waitForURL(/\/app\/live$/);
    await shown(page);
    await row(page, "Side stage").waitFor({ state: "detached" });
    assert.equal(await asViewer(address.hls), "not_found");
    await visit(page, `${address.page}/watch`);
    await page.locator("[role=alert]", { hasText: "not found" }).waitFor();
    await expectAccessible(page, "no such input");
  });

  step("may have any name", async (page) => {
    for (const name of NAMES) {
      await page.click(".side a:has-text('Live')");
      await shown(page);
      await press(page, "New input");
      await page.fill("dialog input[name=name]", name);
      await inDialog(page, "Make the input");
      await page.waitForURL(/\/connect$/);
      await titled(page, `${name} – Sluice`);
      assert.equal(await page.locator("h1").textContent(), name);
    }
    await expectAccessible(page, "an input with a hostile name");
    await visit(page, "/live");
    for (const name of NAMES)
      await page.locator(".live-list .name").getByText(name, { exact: true }).waitFor();
    await expectAccessible(page, "a list of hostile names");
    assert.equal(await page.locator("main img").count(), 0);
    await expectNoSecrets(page, secrets);
  });

  step("are explained where there are none", async (page) => {
    // The page follows what others delete.
    await page.evaluate(async () => {
      const { csrfToken } = await (await fetch("/api/session")).json();
      const { liveInputs } = await (await fetch("/api/live/inputs?limit=100")).json();
      const headers = { "x-csrf-token": csrfToken };
      const deleted = liveInputs.map(({ id }) =>
        fetch(`/api/live/inputs/${id}`, { method: "DELETE", headers }),
      );
      await Promise.all(deleted);
    });
    await page.locator(".empty", { hasText: "Nothing can publish yet" }).waitFor();
    await expectAccessible(page, "no live inputs");
  });
});
