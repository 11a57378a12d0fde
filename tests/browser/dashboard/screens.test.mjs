// Every screen there is: with hostile names everywhere, without a finding of axe, with a help of its own; and what a viewer,
// who may change nothing, sees of each.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { png } from "./pictures.mjs";
import {
  call,
  closed,
  everyScreen,
  expectAccessible,
  HOSTILE,
  journey,
  scene,
  shown,
  signIn,
  tabs,
  visit,
} from "./support.mjs";

/** Screens whose journeys ask axe with all their states. */
const ASKED_ELSEWHERE = /^\/($|live|files|images|webhooks|settings\/(api|usage|account)|settings$)/;

/** Acts that change something, by the beginning of their buttons' names. */
const CHANGES =
  /^(new|add|create|make|invite|upload|delete|remove|revoke|save|run|import|cancel|retry|try again)\b/i;

/** Buttons and links that look like one, without the steps of a run, which have names like "Upload" and show what they did. */
const ACTS = "main button:not([aria-disabled=true], .run-step-head, .flow-step), main a.btn";

/** The longest name of a workflow. */
const NAME_CHARS = 80;

/** Makes a workflow, a run, an upload, an input and a video stream for each hostile name. */
async function fill(page) {
  const clip = await store(page, "clip.mp4", [...readFileSync(scene.clip)]);
  for (const [i, name] of HOSTILE.entries()) {
    const short = name.slice(0, NAME_CHARS);
    const nodes = [
      { id: "upload", data: { kind: "upload" } },
      { id: "webp", data: { kind: "convert", title: short.slice(0, 60), config: { format: "webp" } } },
    ];
    const definition = { nodes, edges: [{ source: "upload", target: "webp" }] };
    const made = await call(page, "POST", "/api/workflows", { name: short, definition });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const input = await call(page, "POST", "/api/live/inputs", { name: short });
    assert.equal(input.status, 201, JSON.stringify(input.body));
    const fileId = await store(page, `${name}.png`.slice(-200), [...png(i)]);
    const ran = await call(page, "POST", `/api/workflows/${made.body.workflow.id}/run-file`, { fileId });
    assert.ok(ran.status < 300, JSON.stringify(ran.body));
    const stream = await call(page, "POST", "/api/video/streams", { sourceFileId: clip, title: name });
    assert.equal(stream.status, 202, JSON.stringify(stream.body));
  }
}

const store = (page, name, bytes) =>
  page.evaluate(
    async ([name, bytes]) => {
      const { csrfToken } = await (await fetch("/api/session")).json();
      const form = new FormData();
      form.append("file", new File([new Uint8Array(bytes)], name));
      const headers = { "x-csrf-token": csrfToken };
      const answer = await fetch("/api/files", { method: "POST", headers, body: form });
      return (await answer.json()).file.id;
    },
    [name, bytes],
  );

journey("every screen", { expected: [[404, /^\/api\//]] }, (step) => {
  const helps = new Map();

  step("shows hostile names as text, and nothing that axe finds", async (page) => {
    await signIn(page, "/");
    await fill(page);
    for (const screen of await everyScreen(page)) {
      await visit(page, screen);
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined, screen);
      assert.equal(await page.locator("main img[src=x]").count(), 0, screen);
      assert.ok((await page.title()).endsWith("Sluice"), screen);
      if (!ASKED_ELSEWHERE.test(screen)) await expectAccessible(page, screen);
    }
  });

  step("has a help of its own", async (page) => {
    for (const screen of await everyScreen(page)) {
      await visit(page, screen);
      await page.locator("h1").focus();
      await page.keyboard.press("?");
      await page.waitForSelector("dialog .help-guides a");
      helps.set(screen, await page.locator("dialog[open] p").first().innerText());
      await page.keyboard.press("Escape");
      await closed(page);
    }
    const overview = helps.get("/");
    const without = [...helps].filter(([screen, help]) => screen !== "/" && help === overview);
    assert.deepEqual(without, []);
  });
});

journey("every screen of a viewer", { expected: [[404, /^\/api\//]] }, (step) => {
  step("offers nothing that changes anything", async (page) => {
    await page.goto(scene.viewer);
    await page.fill("input[name=newPassword]", "a password of Vera's");
    await page.click("button[type=submit]");
    await shown(page);
    const offered = [];
    const screens = await everyScreen(page);
    for (const screen of screens) {
      if (screen.startsWith("/settings/account") || screen === "/settings") continue;
      await visit(page, screen);
      screens.push(...(await tabs(page)).filter((tab) => !screens.includes(tab)));
      const buttons = await page.locator(ACTS).allInnerTexts();
      for (const name of buttons) if (CHANGES.test(name.trim())) offered.push(`${screen}: ${name}`);
    }
    assert.deepEqual(offered, []);
  });
});
