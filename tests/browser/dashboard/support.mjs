// What the journeys of the dashboard share: a browser that watches for errors, signing in, axe in both schemes and widths,
// screenshots for the guides, and the search for secrets that stayed somewhere.
//
// `tests/it/browser/dashboard/` starts the service and gives the scene in SLUICE_DASHBOARD:
// {base, username, password, …what the journey wants}.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import { openChromium } from "../chromium.mjs";

export const scene = JSON.parse(process.env.SLUICE_DASHBOARD ?? "null");

/** Deadline for what a debug build does on a machine with other work. */
export const PATIENCE_MS = 60_000;
export const WIDE = { width: 1280, height: 800 };
export const PHONE = { width: 320, height: 640 };

/** The browser's own line for an answer that is no success; its address is beside it. */
const FAILED_REQUEST = /responded with a status of (\d+)/;

/** Whether a step has failed: each begins where the one before ended, also those of the next journey. */
let isBroken = false;

/**
 * One browser for `steps(it, at)`: `it(name, step)` gives the page and the test to the step, `at` has further helpers. Nothing
 * may leave the origin, break the policy, or log an error; `expected` names answers that may fail: [[status, /path/], …]. With
 * `host` the service is reached by that name over plain HTTP, as in a home network: without a secure context.
 */
export function journey(name, { expected = [], ...options }, steps) {
  if (scene && options.host) scene.base = scene.base.replace("127.0.0.1", options.host);
  const skip = scene ? false : "needs the service: cargo test --test it browser::dashboard";
  describe(name, { skip }, () => {
    const seen = { errors: [], foreign: [] };
    let chromium;
    const at = {
      page: () => chromium.page,
      context: () => chromium.page.context(),
      watch: (page) => watch(page, seen, expected),
    };
    before(async () => {
      chromium = await openChromium({ ...WIDE, ...options });
      chromium.page.context().setDefaultTimeout(PATIENCE_MS);
      at.watch(chromium.page);
    });
    after(async () => {
      await chromium.close();
      assert.deepEqual(seen, { errors: [], foreign: [] });
    });
    const take = (what, step) =>
      it(what, async (test) => {
        if (isBroken) return test.skip("an earlier step failed");
        try {
          await step(chromium.page, test);
        } catch (error) {
          isBroken = true;
          throw new Error(`${error.stack}\n${await looks(chromium.page)}`);
        }
      });
    steps(take, at);
  });
}

/** What a page shows, for the report of a step that failed. */
async function looks(page) {
  const text = await page.evaluate(() => (document.querySelector("dialog[open]") ?? document.body).innerText);
  if (process.env.SLUICE_FAILED_SCREEN) await page.screenshot({ path: process.env.SLUICE_FAILED_SCREEN });
  return `${page.url()} shows:\n${text.slice(0, 4_000)}`;
}

function watch(page, seen, expected) {
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    const status = FAILED_REQUEST.exec(message.text())?.[1];
    const path = message.location().url ? new URL(message.location().url).pathname : "";
    const isExpected = [[401, /^\/api\/session$/], ...expected].some(
      ([code, where]) => Number(status ?? 0) === code && where.test(path),
    );
    if (!isExpected) seen.errors.push(`${message.text()} ${path}`);
  });
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (/^(https?|wss?):$/.test(protocol) && origin !== new URL(scene.base).origin)
      seen.foreign.push(request.url());
  });
}

/** Signs in by the form, to the screen at `path` below `/app`. */
export async function signIn(page, path = "/", { username, password } = scene) {
  await page.goto(`${scene.base}/app${path === "/" ? "" : path}`);
  await page.fill("input[name=username]", username);
  await page.fill("input[name=password]", password);
  await page.click("button[type=submit]");
  await shown(page);
}

/** Goes to a screen by its address. */
export async function visit(page, path) {
  await page.goto(`${scene.base}/app${path === "/" ? "" : path}`);
  await shown(page);
}

/** Waits until a screen is shown and nothing of it is loading. */
export async function shown(page) {
  await page.waitForSelector(".shell main:not([aria-busy]) h1");
  await page.waitForFunction(() => !document.querySelector("main [aria-busy=true]"));
}

/** The rules of axe whose outcome the colour scheme changes; of all others the first scheme tells. */
const BY_COLOUR = { runOnly: ["color-contrast", "link-in-text-block"] };

/** axe finds nothing and nothing is wider than the screen, in both schemes, at 1280 and 320 px. */
export async function expectAccessible(page, what) {
  const before = page.viewportSize();
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const size of [WIDE, PHONE]) {
      await page.setViewportSize(size);
      await page.evaluate(endTransitions);
      const rules = colorScheme === "light" ? {} : BY_COLOUR;
      const { violations } = await page.evaluate((rules) => globalThis.axe.run(rules), rules);
      const where = `${what}, ${colorScheme}, ${size.width} px`;
      for (const { id, nodes } of violations) {
        const shown = nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n");
        found.push(`${where}: ${id}: ${shown}`);
      }
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) found.push(`${where}: ${overflow} px wider than the screen`);
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  await page.setViewportSize(before);
  assert.deepEqual(found, []);
}

/** Colours that still change to those of the other scheme are of neither. */
function endTransitions() {
  for (const animation of document.getAnimations()) {
    if (animation instanceof CSSTransition) animation.finish();
  }
}

const images = fileURLToPath(new URL("../../../docs/images/", import.meta.url));
const others = fileURLToPath(new URL("../../../target/screenshots/", import.meta.url));

/**
 * Screenshots `NAME-{light,dark}[-phone].png`, when SLUICE_SCREENSHOTS is set: those of the guides in `docs/images`, where they are made
 * again, the others in `target/screenshots`.
 */
export async function screenshots(page, name, { phone = true } = {}) {
  if (!process.env.SLUICE_SCREENSHOTS) return;
  mkdirSync(others, { recursive: true });
  await page.evaluate(() => {
    for (const close of document.querySelectorAll(".toast [aria-label='Close the message']")) close.click();
  });
  const before = page.viewportSize();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const size of phone ? [WIDE, { width: 360, height: 740 }] : [WIDE]) {
      await page.setViewportSize(size);
      // Charts and lists of any length are drawn again in the next frames.
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
      );
      const file = `${name}-${colorScheme}${size.width < 600 ? "-phone" : ""}.png`;
      const path = `${existsSync(images + file) ? images : others}${file}`;
      await page.screenshot({ path, animations: "disabled" });
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  await page.setViewportSize(before);
}

/** Delivery tokens are public; the prefix by which a key is listed is too short to be one. */
const SECRET = /svc_(?!pub_)(live_)?[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,}/;

/**
 * No key, password, CSRF or session value, and none of `more`, is in the page, its address and history, or anything that the
 * browser keeps.
 */
export async function expectNoSecrets(page, more = []) {
  const developer = await page.context().newCDPSession(page);
  const { entries } = await developer.send("Page.getNavigationHistory");
  await developer.detach();
  const cookies = await page.context().cookies(scene.base);
  const kept = await page.evaluate(async () => ({
    html:
      document.documentElement.outerHTML +
      [...document.querySelectorAll("input, textarea")].map(({ value }) => value).join("\n"),
    address: location.href,
    local: JSON.stringify({ ...localStorage }),
    session: JSON.stringify({ ...sessionStorage }),
    state: JSON.stringify(history.state),
    caches: globalThis.caches ? (await caches.keys()).join() : "",
    databases: indexedDB.databases ? (await indexedDB.databases()).map(({ name }) => name).join() : "",
  }));
  kept.history = entries.map(({ url }) => url).join("\n");
  assert.deepEqual(
    [kept.session, kept.caches, kept.databases],
    ["{}", "", ""],
    "nothing is kept there at all",
  );
  const values = [scene.password, ...more, ...cookies.map(({ value }) => value)].filter(
    (value) => value && value.length > 7,
  );
  for (const [where, text] of Object.entries(kept)) {
    const found = SECRET.exec(text)?.[0] ?? values.find((value) => text.includes(value));
    assert.equal(found, undefined, `a secret is in ${where}`);
  }
}

const ROUTES = fileURLToPath(new URL("../../../web/src/app/routes.ts", import.meta.url));

/** What `:id` of a screen names: the list that has such things, and its field in the answer. */
const THINGS = {
  "/live/:id": ["/api/live/inputs?limit=1", "liveInputs"],
  "/streams/:id": ["/api/video/streams?limit=1", "streams"],
  "/workflows/:id": ["/api/workflows?limit=1", "workflows"],
  "/runs/:id": ["/api/workflows/runs?limit=1", "runs"],
};

/** Every screen of the dashboard; one that shows a thing with the first of its kind, and not where there is none. */
export async function everyScreen(page) {
  const patterns = [...readFileSync(ROUTES, "utf8").matchAll(/\{ path: "(\/[^"]*)"(.*)/g)];
  const paths = patterns
    .filter(([, , rest]) => !rest.includes("bare: true"))
    .map(([, path]) => path.replace(/\/:\w+\?/g, ""));
  const screens = [];
  for (const path of paths) {
    if (!path.includes(":id")) screens.push(path);
    else {
      assert.ok(THINGS[path], `${path} is in THINGS`);
      const [list, field] = THINGS[path];
      const [first] = (await ask(page, list))[field];
      if (first) screens.push(path.replace(":id", first.id));
    }
  }
  return screens;
}

/** The addresses of the tabs of the screen that is shown. */
export async function tabs(page) {
  const links = page.locator("main .tabs a");
  const paths = await links.evaluateAll((links) => links.map((link) => link.pathname));
  return paths.map((path) => path.slice("/app".length));
}

/**
 * Visits every screen: none of the values that were shown once, and nothing that looks like a secret, is in a page, in what the
 * browser keeps, in the addresses of its history or in the service's log.
 */
export async function expectSecretsNowhere(page, values) {
  assert.ok(values.length > 0 && values.every((value) => value?.length > 7), "there are secrets to look for");
  const screens = await everyScreen(page);
  assert.ok(screens.length > 8, `${screens}`);
  for (const screen of screens) {
    await visit(page, screen);
    screens.push(...(await tabs(page)).filter((tab) => !screens.includes(tab)));
    await expectNoSecrets(page, values);
  }
  const { csrfToken } = await ask(page, "/api/session");
  const cookies = await page.context().cookies(scene.base);
  const sought = [...values, scene.password, csrfToken, ...cookies.map(({ value }) => value)];
  const log = readFileSync(scene.log, "utf8");
  assert.ok(log.length > 100, "there is a log");
  for (const value of sought) assert.ok(!log.includes(value), "a secret is in the log");
  assert.equal(SECRET.exec(log)?.[0], undefined, "a secret is in the log");
}

/** Asks the API with the session of the page. */
export const ask = (page, path) => page.evaluate(async (path) => (await fetch(path)).json(), path);

/** Changes something with the session of the page: a call that no button offers. Returns the status and the answer. */
export const call = (page, method, path, body) =>
  page.evaluate(
    async ([method, path, body]) => {
      const { csrfToken } = await (await fetch("/api/session")).json();
      const headers = { "x-csrf-token": csrfToken, accept: "application/json" };
      if (body !== undefined) headers["content-type"] = "application/json";
      const answer = await fetch(path, { method, headers, body: JSON.stringify(body) });
      const text = await answer.text();
      return { status: answer.status, body: text ? JSON.parse(text) : null };
    },
    [method, path, body],
  );

/** Presses the first button with this name in the open dialog, else in the page. */
export async function press(page, name) {
  // Looked for at each try: a dialog may open or close meanwhile.
  const place = page.locator("dialog[open], body:not(:has(dialog[open]))").last();
  await place.getByRole("button", { name, exact: true }).first().click();
}

/** Presses a button of a dialog, once it is open. */
export const inDialog = (page, name) =>
  page.locator("dialog[open]").getByRole("button", { name, exact: true }).click();

/** Waits until no dialog is open. */
export const closed = (page) => page.waitForFunction(() => !document.querySelector("dialog[open]"));

/** Presses an item of the menu that a button with this name opens. */
export async function choose(page, menu, item) {
  await page.getByRole("button", { name: menu }).first().click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

/** Asks in the page until the answer is true, and returns it. `waitForFunction` takes the promise of an answer for one. */
export async function until(page, question, arg) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await page.evaluate(question, arg);
    if (answer) return answer;
    assert.ok(Date.now() < deadline, `still ${answer}: ${question}`);
    await page.waitForTimeout(100);
  }
}

/** Copies by the button with this name, and returns what was copied. */
export async function copied(page, name) {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: scene.base });
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await press(page, name);
  return until(page, () => navigator.clipboard.readText());
}

/** Names that run, turn around or do not fit where a page takes them for more than text. */
export const HOSTILE = [
  '<img src=x onerror="window.pwned=1">',
  "\u202eevil\u202c שלום <b>",
  "w".repeat(200),
  "🎬👩‍👩‍👧‍👦 __proto__ =1+1",
];

/** The element that has the focus, as its tag and its text. */
export const focused = (page) =>
  page.evaluate(() => `${document.activeElement.tagName} ${document.activeElement.textContent.trim()}`);

/** Waits until the element with the focus, as {@link focused} names it, begins with this. */
export const hasFocus = (page, text) =>
  until(
    page,
    (text) => {
      const { tagName, textContent } = document.activeElement;
      return `${tagName} ${textContent.trim()}`.startsWith(text);
    },
    text,
  );

/** Waits until the document is called so. */
export const titled = (page, title) => page.waitForFunction((title) => document.title === title, title);

/** What is selected, once something is. */
export const selection = (page) => until(page, () => getSelection().toString());

/**
 * Types the beginning of a choice into the list with the focus, until the one of this value is chosen: for a browser, keys that
 * are a second apart begin several words.
 */
export async function typeChoice(page, text, value) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    await page.keyboard.type(text);
    const chosen = await page.evaluate(() => document.activeElement.value);
    if (chosen === value) return;
    assert.ok(Date.now() < deadline, `${text} chooses ${chosen}`);
    await page.waitForTimeout(1_500);
  }
}

/** Presses Tab until `selector` has the focus, once it is in the page. */
export async function tabTo(page, selector, most = 60) {
  await page.locator(selector).first().waitFor({ state: "attached" });
  for (let i = 0; i < most; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
  }
  assert.fail(`${selector} is not reached by ${most} times Tab`);
}
