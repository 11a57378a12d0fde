// A shared folder as its readers meet it: with scripts, without them, by keyboard, by touch, and by axe-core.
//
// `tests/it/browser/share_page.rs` starts the service, fills the folders and runs this with their addresses in SLUICE_SHARED.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import axe from "axe-core";
import { openChromium } from "./chromium.mjs";
import { Observer } from "./observer.mjs";

const scene = JSON.parse(process.env.SLUICE_SHARED ?? "null");
/** Deadline for a preview, rendered in a debug build on a machine with other work. */
const PATIENCE_MS = 60_000;
/** Chromium's console errors for images that are rejected, or cut off when their link is withdrawn. */
const EXPECTED =
  /responded with a status of 4(04|03|10)|net::ERR_(EMPTY_RESPONSE|CONTENT_LENGTH_MISMATCH|INCOMPLETE)/;
const FILES_PER_PAGE = 49;

/** Opens the page in a browser of its own and gives it to `steps`. Nothing may leave the origin or break the policy. */
function inBrowser(name, options, steps) {
  describe(name, {
    skip: scene ? false : "needs the service: cargo test --test it browser::share_page",
  }, () => {
    let chromium;
    let observer;
    before(async () => {
      chromium = await openChromium(options);
      chromium.page.setDefaultTimeout(PATIENCE_MS);
      observer = new Observer(chromium.page);
    });
    after(async () => {
      const { consoleErrors, foreignRequests } = observer.summary();
      await chromium.close();
      const unexpected = consoleErrors.filter((text) => !EXPECTED.test(text));
      assert.deepEqual({ unexpected, foreignRequests }, { unexpected: [], foreignRequests: [] });
    });
    steps(async (url) => {
      observer.origin = new URL(url).origin;
      await chromium.page.goto(url);
      return chromium.page;
    });
  });
}

async function expectAccessible(page, what) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(", ")}`);
  assert.deepEqual(found, [], what);
}

async function expectNoSideways(page) {
  const { width, screen } = await page.evaluate(() => ({
    width: document.documentElement.scrollWidth,
    screen: innerWidth,
  }));
  assert.ok(width <= screen, `${width} px on a screen of ${screen}`);
}

/** Clicks "Download all", and has other programs than ours read what the browser stored. */
async function downloadAll(page) {
  const said = await page.locator(".download-all small").textContent();
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(".download-all")]);
  assert.equal(download.suggestedFilename(), "Spring campaign.zip");
  const path = await download.path();
  execFileSync("unzip", ["-tqq", path]);
  const listing = "import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep='\\n')";
  const inside = execFileSync("python3", ["-c", listing, path], { encoding: "utf8" }).trim().split("\n");
  const files = inside.filter((name) => !name.endsWith("/"));
  assert.equal(files.length, scene.files + 1, said);
  assert.ok(
    files.some((name) => name.endsWith("Behind the scenes/inside.jpg")),
    inside.join(),
  );
}

/** A link of its own to the folder that is about to be withdrawn, as its owner makes and ends it. */
async function fadingLink() {
  const { share, key } = scene.fading;
  const call = async (method, body) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const answer = await fetch(share, { method, headers, body });
    assert.ok(answer.ok, `${method}: ${answer.status}`);
    return answer.json();
  };
  const made = await call("POST", "{}");
  return { url: made.share.url, withdraw: () => call("DELETE") };
}

/** Clicks on a link and waits until the page that it leads to is whole. */
const follow = (page, selector) => Promise.all([page.waitForEvent("domcontentloaded"), page.click(selector)]);

const WITHDRAWN = "This link is no longer available";

const entry = (page, name) => page.locator(".file", { hasText: name });
const names = (page) => page.locator(".file-name").allTextContents();

inBrowser("a shared folder", { width: 1280, height: 900 }, (open) => {
  it("says what it is and how much there is", async () => {
    const page = await open(scene.url);
    assert.equal(await page.title(), "Spring campaign – Sluice");
    assert.equal(await page.locator("h1").textContent(), "Spring campaign");
    const facts = await page.locator(".share-facts").textContent();
    assert.ok(facts.includes(`${scene.files + 1} files`) && facts.includes("available until"), facts);
    const all = await page.locator(".download-all").textContent();
    assert.match(all, /Download all [\d.]+\s[kM]B, one ZIP file/);
    assert.deepEqual((await names(page)).slice(0, 3), ["first.jpg", "צילום.jpg", "<i>third.jpg"]);
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  });

  it("shows previews as they come into view", async () => {
    const page = await open(scene.url);
    for (const name of ["first.jpg", "clip.mp4", "sheet.pdf", "drawing.svg"]) {
      const image = entry(page, name).locator("img");
      await image.scrollIntoViewIfNeeded();
      await page.waitForFunction((it) => it.naturalWidth > 0, await image.elementHandle());
    }
    assert.equal(await entry(page, "tone.mp3").locator("img").count(), 0);
  });

  it("goes into folders and back by the breadcrumb", async () => {
    const page = await open(scene.url);
    await follow(page, "text=Behind the scenes");
    await page.waitForSelector("h1:has-text('Behind the scenes')");
    assert.deepEqual(await names(page), ["inside.jpg"]);
    await follow(page, ".breadcrumb a");
    await page.waitForSelector("h1:has-text('Spring campaign')");
  });

  it("loads what follows while one scrolls", async () => {
    const page = await open(scene.url);
    assert.ok((await page.locator(".file").count()) <= FILES_PER_PAGE);
    await page.mouse.wheel(0, 50_000);
    await page.waitForFunction((all) => document.querySelectorAll(".file").length === all, scene.files);
    assert.equal(await page.locator("#more").count(), 0);
    const heard = await page.textContent("#announcement");
    assert.ok(heard.endsWith(`${scene.files} in all`), heard);
    assert.equal(new Set(await names(page)).size, scene.files);
  });

  it("is a list as well", async () => {
    const page = await open(scene.url);
    await follow(page, ".segmented >> text=List");
    await page.waitForSelector(".files[data-view=list]");
    assert.equal(await page.textContent(".segmented [aria-current]"), "List");
  });

  it("downloads one file under its name", async () => {
    const page = await open(scene.url);
    const file = entry(page, "<i>third.jpg");
    await file.hover();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      file.locator(".file-download").click(),
    ]);
    const bytes = readFileSync(await download.path());
    assert.deepEqual([...bytes.subarray(0, 3)], [0xff, 0xd8, 0xff]);
    assert.match(download.suggestedFilename(), /third.*\.jpg$/);
  });

  it("downloads all of them as one archive that is whole", async () => {
    await downloadAll(await open(scene.url));
  });

  it("never runs what users stored", async () => {
    const page = await open(scene.url);
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      entry(page, "page.html").locator(".file-open").click(),
    ]);
    assert.equal(download.suggestedFilename(), "page.html");
    await entry(page, "drawing.svg").locator(".file-open").click();
    await page.waitForFunction(() => document.querySelector(".viewer-image")?.naturalWidth > 0);
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    assert.equal(page.context().pages().length, 1);
  });
});

inBrowser("the viewer", { width: 1280, height: 900 }, (open) => {
  const shown = (page) => page.textContent("#viewer-name");
  const shows = (page, name) =>
    page.waitForFunction((name) => document.getElementById("viewer-name").textContent === name, name);

  it("opens, moves and closes by the keyboard, and gives the focus back", async () => {
    const page = await open(scene.url);
    const first = entry(page, "first.jpg").locator(".file-open");
    await first.focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(
      () => document.querySelector(".viewer-image:not([data-draft])")?.naturalWidth > 0,
    );
    assert.equal(await page.getAttribute(".viewer-image", "alt"), "first.jpg");
    assert.match(await page.textContent("#viewer-facts"), /^1 of \d+\+? · JPG · /);
    assert.equal(await page.isVisible("#viewer-previous"), false);
    await page.keyboard.press("ArrowRight");
    await shows(page, "צילום.jpg");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await shows(page, "first.jpg");
    for (let presses = 0; presses < 12; presses++) {
      await page.keyboard.press("Tab");
      const outside = await page.evaluate(() => {
        const { activeElement } = document;
        return activeElement !== document.body && !activeElement.closest("#viewer");
      });
      assert.equal(outside, false, "the focus stays inside");
    }
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.getElementById("viewer").open);
    await page.waitForFunction((it) => it === document.activeElement, await first.elementHandle());
    await page.waitForFunction(() => location.hash === "");
  });

  it("has an address, and 'back' closes it", async () => {
    const page = await open(scene.url);
    await entry(page, "first.jpg").locator(".file-open").click();
    await page.waitForSelector("#viewer[open]");
    const address = await page.evaluate(() => location.href);
    await page.click("#viewer-next");
    await page.goBack();
    await page.waitForFunction(() => !document.getElementById("viewer").open);
    await open("about:blank");
    await open(address);
    await page.waitForSelector("#viewer[open]");
    await shows(page, "first.jpg");
    await page.click("#viewer-close");
    await page.waitForFunction(() => !document.getElementById("viewer").open);
  });

  for (const name of ["clip.mp4", "streamed.mp4"]) {
    it(`plays ${name}`, async () => {
      const page = await open(scene.url);
      await entry(page, name).locator(".file-open").click();
      await page.waitForFunction(() => document.querySelector(".viewer-video")?.currentTime > 0.5);
      const source = await page.evaluate(() => document.querySelector(".viewer-video").currentSrc);
      assert.equal(source.startsWith("blob:"), name === "streamed.mp4", source);
      await page.click("#viewer-close");
      await page.waitForFunction(() => !document.querySelector("video"));
    });
  }

  it("plays audio", async () => {
    const page = await open(scene.url);
    await entry(page, "tone.mp3").locator(".file-open").click();
    await page.waitForFunction(() => document.querySelector("audio")?.currentTime > 0.5);
    await page.keyboard.press("Escape");
  });

  it("shows the first page of a PDF, and the way to all of them", async () => {
    const page = await open(scene.url);
    await entry(page, "sheet.pdf").locator(".file-open").click();
    await page.waitForFunction(() => document.querySelector(".viewer-document img")?.naturalWidth > 0);
    assert.match(await page.getAttribute(".viewer-document a", "href"), /\/files\/.*\?inline=1$/);
  });

  it("goes over the end of the page to the files that follow", async () => {
    const page = await open(scene.url);
    await entry(page, "first.jpg").locator(".file-open").click();
    await page.keyboard.press("End");
    const last = await shown(page);
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((name) => document.getElementById("viewer-name").textContent !== name, last);
  });

  for (const [name, selector] of [
    ["first.jpg", ".viewer-image:not([data-draft])"],
    ["clip.mp4", ".viewer-video"],
    ["tone.mp3", "audio"],
    ["sheet.pdf", ".viewer-document"],
  ]) {
    it(`is accessible with ${name} in it`, async () => {
      const page = await open(scene.url);
      await entry(page, name).locator(".file-open").click();
      await page.waitForSelector(selector);
      await expectAccessible(page, name);
    });
  }
});

inBrowser("a page whose link is withdrawn", { width: 480, height: 640 }, (open) => {
  const isShown = (page, where) => page.waitForSelector(`${where}[role=alert] >> text=${WITHDRAWN}`);

  it("says so when an image comes into view, and when the rest is to follow", async () => {
    const { url, withdraw } = await fadingLink();
    const page = await open(url);
    await page.waitForFunction(() => document.querySelector(".thumb img")?.naturalWidth > 0);
    assert.equal(await page.textContent("#failure"), "");
    await withdraw();
    await page.locator(".file").last().scrollIntoViewIfNeeded();
    await isShown(page, "#failure");
    await page.waitForSelector("#more a[data-failed]");
    // A failed image is complete shortly before its error event, on which the page removes it.
    await page.waitForFunction(hasNoneBroken);
    await expectAccessible(page, "withdrawn");
    await page.click("#more a");
    await page.waitForSelector(`h1 >> text=${WITHDRAWN}`);
  });

  it("says so in the viewer", async () => {
    const { url, withdraw } = await fadingLink();
    const page = await open(url);
    await page.locator(".file-open").first().click();
    await page.waitForSelector(".viewer-image:not([data-draft])");
    await withdraw();
    // The browser may have cached the next files already.
    for (let steps = 0; steps < 20; steps++) await page.keyboard.press("ArrowRight");
    await isShown(page, "#viewer-failure");
    await page.waitForSelector("#viewer-stage > *", { state: "detached" });
    await page.waitForSelector("#viewer-download", { state: "hidden" });
    await expectAccessible(page, "withdrawn, in the viewer");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#viewer-stage > *").count(), 0);
    await page.keyboard.press("Escape");
    await isShown(page, "#failure");
  });

  for (const button of [".file-download", ".download-all"]) {
    it(`says so in place of a download by ${button}, and stays`, async () => {
      const { url, withdraw } = await fadingLink();
      const page = await open(url);
      await withdraw();
      await page.locator(button).first().click();
      await isShown(page, "#failure");
      assert.equal(page.url(), url);
    });
  }

  it("leads to the page that says so from a folder", async () => {
    const { url, withdraw } = await fadingLink();
    const page = await open(url);
    await withdraw();
    await page.click(".folder");
    await page.waitForSelector(`h1 >> text=${WITHDRAWN}`);
  });

  it("says when all downloads are used up, until that is read", async () => {
    const page = await open(scene.limited);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(".download-all")]);
    await download.path();
    await page.click(".download-all");
    await page.waitForSelector("#failure >> text=This link allows no more downloads");
    await expectAccessible(page, "used up");
    await page.click("#failure button");
    await page.waitForSelector("#failure", { state: "hidden" });
  });

  /** True when no image of the page is broken. */
  function hasNoneBroken() {
    const images = [...document.querySelectorAll("img")];
    return !images.some((it) => it.complete && it.currentSrc !== "" && it.naturalWidth === 0);
  }
});

inBrowser("a small screen", { width: 320, height: 640, hasTouch: true, scheme: "dark" }, (open) => {
  for (const view of ["grid", "list"]) {
    it(`holds the ${view}, accessibly`, async () => {
      const page = await open(`${scene.url}?view=${view}`);
      await expectNoSideways(page);
      await expectAccessible(page, view);
    });
  }

  it("moves and closes the viewer by the finger", async () => {
    const page = await open(scene.url);
    await entry(page, "first.jpg").locator(".file-open").tap();
    await page.waitForSelector("#viewer[open]");
    // The browser may answer for a touch before the page has handled it.
    const shows = (name) =>
      page.waitForFunction((name) => document.getElementById("viewer-name").textContent === name, name);
    await swipe(page, [260, 300], [60, 310]);
    await shows("צילום.jpg");
    await swipe(page, [60, 300], [260, 310]);
    await shows("first.jpg");
    await expectNoSideways(page);
    await swipe(page, [160, 200], [165, 400]);
    await page.waitForFunction(() => !document.getElementById("viewer").open);
  });

  it("holds the page of a link that is no longer available", async () => {
    const page = await open(scene.withdrawn);
    assert.equal(await page.textContent("h1"), "This link is no longer available");
    await expectNoSideways(page);
    await expectAccessible(page, "unavailable");
  });

  it("holds the form for a password", async () => {
    const page = await open(scene.locked);
    await expectNoSideways(page);
    await expectAccessible(page, "form");
    await page.fill("#password", "wrong");
    await page.tap("button");
    await page.waitForSelector("text=That is not the password");
    await expectAccessible(page, "form with an error");
  });
});

async function swipe(page, [fromX, fromY], [toX, toY]) {
  const session = await page.context().newCDPSession(page);
  const touch = (type, touchPoints) => session.send("Input.dispatchTouchEvent", { type, touchPoints });
  await touch("touchStart", [{ x: fromX, y: fromY }]);
  await touch("touchMove", [{ x: (fromX + toX) / 2, y: (fromY + toY) / 2 }]);
  await touch("touchMove", [{ x: toX, y: toY }]);
  await touch("touchEnd", []);
  await session.detach();
}

for (const scheme of ["light", "dark"]) {
  inBrowser(`a large screen in ${scheme}`, { width: 1440, height: 900, scheme }, (open) => {
    it("is accessible", async () => {
      await expectAccessible(await open(scene.url), "grid");
      await expectAccessible(await open(`${scene.url}?view=list`), "list");
      await expectAccessible(await open(scene.looking), "looking only");
    });
  });
}

inBrowser("without scripts", { width: 1024, height: 768, javaScriptEnabled: false }, (open) => {
  it("everything can be reached by links", async () => {
    const page = await open(scene.url);
    const seen = await names(page);
    while (await page.locator("#more a").count()) {
      await follow(page, "#more a");
      seen.push(...(await names(page)));
    }
    assert.equal(new Set(seen).size, scene.files);
    await follow(page, "text=Back to the first files");
    assert.equal((await names(page))[0], "first.jpg");
    await follow(page, "text=Behind the scenes");
    await follow(page, ".breadcrumb a");
    assert.equal(await page.textContent("h1"), "Spring campaign");
    await follow(page, ".segmented >> text=List");
    assert.equal(await page.locator(".files[data-view=list]").count(), 1);
  });

  it("files are opened and downloaded", async () => {
    const page = await open(scene.url);
    const file = entry(page, "first.jpg");
    await file.hover();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      file.locator(".file-download").click(),
    ]);
    assert.equal(download.suggestedFilename(), "first.jpg");
    await file.locator(".file-open").click();
    await page.waitForURL(/\/files\/.*inline=1$/);
  });

  it("all are downloaded as one archive that is whole", async () => {
    await downloadAll(await open(scene.url));
  });

  it("a password opens its folder", async () => {
    const page = await open(scene.locked);
    await page.fill("#password", scene.password);
    await follow(page, "button");
    assert.equal(await page.textContent("h1"), "Confidential");
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".file-open").click()]);
    assert.equal(readFileSync(await download.path(), "utf8"), "secret");
  });

  it("a link for looking only takes nothing away", async () => {
    const page = await open(scene.looking);
    assert.equal(await page.locator("a[href*='/zip'], .file-download").count(), 0);
    await page.click(".file-open");
    await page.waitForURL(/\/preview\?w=\d+$/);
  });
});
