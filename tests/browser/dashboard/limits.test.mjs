// What a user sees at a limit: too many requests, a plan that is used up, no room for a file, too many wrong passwords, an account
// that the operator suspended. Each says what to do and when.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after } from "node:test";
import { openChromium } from "../chromium.mjs";
import { png } from "./pictures.mjs";
import {
  ask,
  call,
  expectAccessible,
  journey,
  PATIENCE_MS,
  press,
  scene,
  shown,
  signIn,
  visit,
} from "./support.mjs";

/** Above the requests of two minutes of a session. */
const MANY = 400;

/** Seconds of the minute that the look at the page takes at most. */
const ENOUGH_S = 25;

/** In the page: asks until a minute is used up that has more than `enough` seconds left; returns these. */
async function useUpMinute({ most, enough }) {
  let left = 0;
  for (let i = 0; i < most && left <= enough; i++) {
    const answer = await fetch("/api/usage");
    if (answer.status !== 429) continue;
    left = Number(answer.headers.get("retry-after"));
    if (left <= enough) await new Promise((done) => setTimeout(done, left * 1_000));
  }
  return left;
}

let elsewhere;
after(() => elsewhere?.close());

/** `sluice` on the data folder of the service, as its operator runs it. */
const operator = (...args) =>
  execFileSync(scene.program, args, {
    env: { PATH: process.env.PATH, SLUICE_STORE__DATA_DIR: scene.dataDir },
    encoding: "utf8",
  });

journey(
  "limits",
  {
    expected: [
      [429, /./],
      [402, /^\/api\/jobs$/],
      [403, /^\/api\//],
      [413, /^\/api\/files$/],
    ],
  },
  (step, at) => {
    let other;

    step("says when a session may ask again", async (page) => {
      await signIn(page, "/files");
      const left = await page.evaluate(useUpMinute, { most: MANY, enough: ENOUGH_S });
      assert.ok(left > ENOUGH_S, `${left} s are left of the minute`);
      await page.click(".side a:has-text('Webhooks')");
      await page.locator(".callout", { hasText: "try again in" }).waitFor();
      await expectAccessible(page, "too many requests");
    });

    step("explains a month that is used up, with its meter and its end", async () => {
      elsewhere = await openChromium();
      other = elsewhere.page;
      other.setDefaultTimeout(PATIENCE_MS);
      at.watch(other);
      await signIn(other, "/files");
      await other.setInputFiles("[data-pick=files]", {
        name: "shore.png",
        mimeType: "image/png",
        buffer: png(1),
      });
      await other.locator(".files-list [data-index='0']", { hasText: "shore.png" }).waitFor();
      const { files } = await ask(other, "/api/files");
      const job = { jobType: "convert", fileIds: [files[0].id], format: "webp" };
      for (let used = 0; used < 2; used++) {
        const made = await call(other, "POST", "/api/jobs", job);
        assert.ok(made.status < 300, JSON.stringify(made.body));
      }
      await other.locator(".files-list [data-index='0'] input").click();
      await press(other, "Convert");
      await other.waitForSelector("dialog [name=format]");
      await other.locator("dialog [type=submit]").click();
      const callout = other.locator("dialog .callout");
      await callout.locator("meter").waitFor();
      assert.match(await callout.innerText(), /used up: 2 of 2[\s\S]*begins again on/);
      await expectAccessible(other, "operations used up");
      await callout.getByRole("link", { name: "Usage and plan" }).click();
      await other.waitForFunction(() => document.title.startsWith("Usage"));
      await other.waitForSelector("main .meter-full");
      assert.equal(await other.locator("dialog[open]").count(), 0, "the dialog has made way");
      await expectAccessible(other, "a used-up plan");
      await visit(other, "/");
      await other
        .locator(".callout, .needs", { hasText: /[Oo]perations/ })
        .first()
        .waitFor();
    });

    step("says that there is no room before anything is sent", async () => {
      await visit(other, "/files");
      await other.setInputFiles("[data-pick=files]", {
        name: "large.bin",
        mimeType: "application/octet-stream",
        buffer: Buffer.alloc(1_200_000, 7),
      });
      await other.locator("dialog meter").waitFor();
      await expectAccessible(other, "no room");
      await press(other, "Close");
      assert.equal((await ask(other, "/api/files?q=large")).files.length, 0);
    });

    step("says after too many wrong passwords when to come back", async () => {
      const fresh = await other.context().newPage();
      at.watch(fresh);
      // A dashboard without its cookie would ask on, and be answered 401.
      await other.goto("about:blank");
      await other.context().clearCookies();
      await fresh.goto(`${scene.base}/app/sign-in`);
      for (let attempt = 0; attempt < 7; attempt++) {
        await fresh.fill("input[name=username]", "stranger");
        await fresh.fill("input[name=password]", `guess ${attempt}`);
        const [answer] = await Promise.all([
          fresh.waitForResponse((response) => response.request().method() === "POST"),
          fresh.click("button[type=submit]"),
        ]);
        if (answer.status() === 429) break;
      }
      await fresh.getByText(/try again in \d+ s/).waitFor();
      await expectAccessible(fresh, "too many wrong passwords");
      await fresh.close();
      await signIn(other, "/files");
    });

    step("says that the account is suspended, and continues when it is resumed", async () => {
      operator("accounts", "suspend", "Default");
      await other.click(".side a:has-text('Webhooks')");
      await other.locator(".callout", { hasText: "This account is suspended" }).waitFor();
      await expectAccessible(other, "a suspended account");
      await other.reload();
      await other.getByText(/account is suspended/i).waitFor();
      await expectAccessible(other, "a suspended account after a reload");
      operator("accounts", "resume", "Default");
      await other.reload();
      await shown(other);
    });

    step("asks again by itself when a session may", async () => {
      // The minute of the first step has not passed yet: the same answer with one second to wait.
      const rejection = {
        status: 429,
        headers: { "retry-after": "1" },
        json: { error: "the plan's requests per minute are used up; try again in 1 s", code: "rate_limited" },
      };
      await visit(other, "/settings/account");
      const lists = "**/api/webhooks?*";
      await other.route(lists, (route) => route.fulfill(rejection));
      await other.click(".side a:has-text('Webhooks')");
      await other.locator(".callout", { hasText: "try again in 1 s" }).waitFor();
      await other.unroute(lists);
      await other.waitForSelector(".empty");
      assert.equal(await other.locator(".callout").count(), 0);
    });
  },
);
