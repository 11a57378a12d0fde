// Everything that happens in one list: it teaches while it is empty, follows what happens, is scrolled to its end, filtered and
// searched; a job is cancelled and a run tried again, by mouse and by keyboard; a viewer; the help and the guides of screens.
import assert from "node:assert/strict";
import { png } from "./pictures.mjs";
import {
  ask,
  call,
  choose,
  closed,
  expectAccessible,
  expectNoSecrets,
  HOSTILE,
  inDialog,
  journey,
  PHONE,
  scene,
  screenshots,
  shown,
  signIn,
  visit,
} from "./support.mjs";

const UPLOADS = 120;
/** Of half a second and more each at this width, so that their job is met while it is in progress. */
const DRAWINGS = 40;
const DRAWN_WIDTH = 3_000;
const DRAWING =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300"><rect width="400" height="300" fill="red"/></svg>';
const row = (page, text) => page.locator(".activity-list [data-index]", { hasText: text }).first();
const first = (page) => page.locator(".activity-list [data-index='0'] .activity-text").innerText();

/** Waits until the list begins with this. */
const beginsWith = (page, text) =>
  page.waitForFunction(
    (text) => document.querySelector(".activity-list [data-index='0'] a")?.textContent.includes(text),
    text,
  );

/** The place in the list of the row that has the focus. */
const focusedIndex = () => Number(document.activeElement.dataset.index);

/** Waits for the frame after the next: what a key moved is drawn, and what its scrolling shows. */
const rendered = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** Whether all rows from one to that with the focus are shown, none of them as a skeleton. */
const areShownFrom = (from) => {
  const to = Number(document.activeElement.dataset.index);
  const row = (index) => document.querySelector(`.activity-list [data-index="${index}"]`);
  for (let index = from; index <= to; index++) {
    if (!row(index) || row(index).querySelector(".skeleton-row")) return false;
  }
  return to >= from;
};

/** Stores files by the API, one after the other; returns their ids. */
const store = (page, files) =>
  page.evaluate(async (files) => {
    const { csrfToken } = await (await fetch("/api/session")).json();
    const ids = [];
    for (const [name, bytes] of files) {
      const form = new FormData();
      const type = name.endsWith(".svg") ? "image/svg+xml" : "image/png";
      form.append("file", new File([new Uint8Array(bytes)], name, { type }));
      const headers = { "x-csrf-token": csrfToken };
      const answer = await (await fetch("/api/files", { method: "POST", headers, body: form })).json();
      ids.push(answer.file?.id ?? JSON.stringify(answer));
    }
    return ids;
  }, files);

/** Sends a request of a resumable upload; returns its address and how much has come. */
const tus = (page, method, path, headers, size = 0) =>
  page.evaluate(
    async ([method, path, headers, size]) => {
      const { csrfToken } = await (await fetch("/api/session")).json();
      const all = { "tus-resumable": "1.0.0", "x-csrf-token": csrfToken, ...headers };
      const answer = await fetch(path, { method, headers: all, body: new Uint8Array(size) });
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
      return answer.headers.get("location");
    },
    [method, path, headers, size],
  );

/** A workflow that makes a WebP of every file; returns its id. */
async function workflow(page, name) {
  const nodes = [
    { id: "upload", data: { kind: "upload" } },
    { id: "webp", data: { kind: "convert", config: { format: "webp" } } },
  ];
  const definition = { nodes, edges: [{ source: "upload", target: "webp" }] };
  const { status, body } = await call(page, "POST", "/api/workflows", { name, definition });
  assert.equal(status, 201, JSON.stringify(body));
  return body.workflow.id;
}

const run = async (page, id, fileId) => {
  const { status } = await call(page, "POST", `/api/workflows/${id}/run-file`, { fileId });
  assert.ok(status < 300, `${status}`);
};

journey("activity", {}, (step) => {
  step("teaches while nothing has happened", async (page) => {
    await signIn(page, "/activity");
    await page.waitForSelector(".empty a[href*='new=upload']");
    assert.ok(await page.locator(".empty a[href$='/guides/conversions']").count());
    await expectAccessible(page, "no activity");
  });

  step("follows what happens, the newest first", async (page) => {
    await store(page, [["alpha.png", [...png(1)]]]);
    await beginsWith(page, "alpha.png");
    await store(page, [["beta.png", [...png(2)]]]);
    await beginsWith(page, "beta.png");
  });

  step("shows names by anyone as text, and what failed with its reason", async (page) => {
    const names = HOSTILE.map((name) => `${name}.png`.slice(-200));
    const ids = await store(
      page,
      names.map((name, i) => [name, [...png(10 + i)]]),
    );
    const [broken] = await store(page, [["broken.png", [1, 2, 3]]]);
    const hostile = await workflow(page, HOSTILE[0]);
    await run(page, hostile, ids[0]);
    await run(page, hostile, broken);
    await row(page, "Failed").waitFor();
    assert.match(await row(page, "Failed").innerText(), /broken\.png|step/);
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    await expectAccessible(page, "activity");
    await screenshots(page, "activity");
  });

  step("has everything to its end, and few rows in the page", async (page) => {
    await store(
      page,
      Array.from({ length: UPLOADS }, (_, i) => [`photo ${i}.png`, [...png(100 + i, 8, 8)]]),
    );
    await beginsWith(page, `photo ${UPLOADS - 1}.png`);
    await page.locator(".activity-list [data-index='0']").focus();
    const seen = new Set();
    const read = async () => {
      const texts = await page.locator(".activity-list [data-index] .activity-text a").allInnerTexts();
      for (const text of texts) seen.add(text);
      assert.ok((await page.locator(".activity-list [data-index]").count()) < 60);
    };
    for (let i = 0; i < 60 && !seen.has("alpha.png"); i++) {
      const from = await page.evaluate(focusedIndex);
      await page.keyboard.press("PageDown");
      await page.evaluate(rendered);
      await page.waitForFunction(areShownFrom, from);
      await read();
    }
    for (let i = 0; i < UPLOADS; i++) assert.ok(seen.has(`photo ${i}.png`), `photo ${i}.png`);
    await page.keyboard.press("Home");
    await beginsWith(page, `photo ${UPLOADS - 1}.png`);
  });

  step("is filtered and searched, and the address keeps it", async (page) => {
    await page.selectOption("select[name=state]", "failed");
    await row(page, "Failed").waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".activity-list [data-index]").length === 1);
    await page.waitForURL((url) => url.searchParams.get("state") === "failed");
    await page.reload();
    await shown(page);
    await page.waitForFunction(() => document.querySelectorAll(".activity-list [data-index]").length === 1);
    await page.selectOption("select[name=state]", "");
    await page.fill("input[name=q]", "BETA upload");
    await beginsWith(page, "beta.png");
    await page.fill("input[name=q]", "nothing has this name");
    await page.getByRole("button", { name: "Show everything" }).click();
    await beginsWith(page, `photo ${UPLOADS - 1}.png`);
    await page.selectOption("select[name=kind]", "run");
    await page.waitForFunction(() => document.querySelectorAll(".activity-list [data-index]").length === 2);
    await page.selectOption("select[name=since]", "3600");
    await page.waitForFunction(() => document.querySelectorAll(".activity-list [data-index]").length === 2);
  });

  step("tries a failed run again, by keyboard", async (page) => {
    // The key is for what is loaded there.
    await page.locator(".activity-list [data-index='0']", { hasText: "Failed" }).waitFor();
    await page.locator(".activity-list [data-index='0']").focus();
    await page.keyboard.press("r");
    await page.waitForSelector("dialog:has-text('With the workflow as it is now')");
    await expectAccessible(page, "try again");
    await inDialog(page, "As it ran");
    await closed(page);
    await row(page, "Failed").waitFor();
    await page.waitForFunction(() => document.activeElement.matches("[data-index='0']"));
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/app\/runs\/[0-9a-f-]{36}$/);
    await shown(page);
  });

  step("cancels a job, and opens its results", async (page) => {
    const fileIds = await store(
      page,
      Array.from({ length: DRAWINGS }, (_, i) => [`drawing ${i}.svg`, [...Buffer.from(DRAWING)]]),
    );
    await visit(page, "/activity?kind=job");
    const slow = { fileIds, format: "avif", resizeWidth: DRAWN_WIDTH };
    const { body } = await call(page, "POST", "/api/jobs", slow);
    await row(page, `of ${fileIds.length} files`).waitFor();
    await page.getByRole("button", { name: /^Cancel / }).click();
    await row(page, "Cancelled").waitFor();
    const { status } = await ask(page, `/api/jobs/${body.jobId}`);
    assert.equal(status, "cancelled");
    await choose(page, `Actions for Conversion of ${fileIds.length} files`, "Show as curl");
    await page.waitForSelector("dialog:has-text('GET /api/jobs')");
    await page.keyboard.press("Escape");
    await closed(page);
    const both = { fileIds: fileIds.slice(0, 2), format: "webp", createArchive: true };
    await call(page, "POST", "/api/jobs", both);
    const done = page.locator(".activity-list [data-index='0']", { hasText: /of 2 files.*Done/s });
    await done.waitFor();
    await done.focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog a[download]");
    assert.equal(await page.locator("dialog a[download]").count(), 3);
    await expectAccessible(page, "results of a job");
    await page.keyboard.press("Escape");
    await closed(page);
    await page.waitForFunction(() => document.activeElement.matches("[data-index='0']"));
    await expectNoSecrets(page);
  });

  step("shows an upload as it comes, and cancels it by keyboard", async (page) => {
    await visit(page, "/activity?state=active");
    await page.waitForSelector("button:has-text('Show everything')");
    const begin = {
      "upload-length": "400000",
      "upload-metadata": `filename ${Buffer.from(HOSTILE[0]).toString("base64")}`,
    };
    const path = new URL(await tus(page, "POST", "/api/uploads/tus", begin), page.url()).pathname;
    const send = (offset, size) => {
      const headers = { "upload-offset": `${offset}`, "content-type": "application/offset+octet-stream" };
      return tus(page, "PATCH", path, headers, size);
    };
    await send(0, 200_000);
    const upload = row(page, HOSTILE[0]);
    await upload.getByText("50 %").waitFor();
    await send(200_000, 100_000);
    await upload.getByText("75 %").waitFor();
    await upload.getByText("300 kB of 400 kB").waitFor();
    await expectAccessible(page, "an upload in progress");
    await page.locator(".activity-list [data-index='0']").focus();
    await page.keyboard.press("Delete");
    await page.locator(".toast", { hasText: "discarded" }).waitFor();
    await upload.waitFor({ state: "detached" });
    assert.deepEqual((await ask(page, "/api/uploads")).uploads, []);
  });

  step("is a part of the overview, which leads to it", async (page) => {
    await visit(page, "/");
    await page.waitForSelector(".feed-row:has-text('Conversion of 2 files')");
    await page.click("a:has-text('All activity')");
    await page.waitForFunction(() => document.title.startsWith("Activity"));
  });
});

journey("help", {}, (step) => {
  step("says what each screen is for, with its keys and guides", async (page) => {
    await signIn(page, "/activity");
    await page.keyboard.press("?");
    await page.waitForSelector("dialog:has-text('Help: Activity') kbd:has-text('R')");
    await expectAccessible(page, "help");
    await page.keyboard.press("Escape");
    await closed(page);
    const told = new Set();
    for (const name of ["Overview", "Live", "Files", "Images", "Webhooks", "Settings"]) {
      await page.click(`.side a:has-text("${name}")`);
      await page.waitForFunction(
        (name) => document.querySelector(".side [aria-current]")?.textContent === name,
        name,
      );
      await shown(page);
      await page.getByRole("button", { name: "Help", exact: true }).click();
      told.add(await page.locator("dialog[open] p").first().innerText());
      await page.locator("dialog[open] .help-guides a").first().waitFor();
      await page.keyboard.press("Escape");
      await closed(page);
      await page.waitForFunction(() => document.activeElement.getAttribute("aria-label") === "Help");
    }
    assert.equal(told.size, 6);
  });

  step("leads to guides, and from one to another", async (page) => {
    await visit(page, "/live");
    await page.keyboard.press("?");
    await page.click("dialog a:has-text('Streaming with OBS')");
    await closed(page);
    await page.waitForFunction(() => document.title.startsWith("Streaming with OBS"));
    await page.waitForSelector(".guide table");
    await expectAccessible(page, "a guide");
    await page.click(".guide-list a:has-text('workflows')");
    await page.waitForFunction(() => document.title.startsWith("Workflows"));
    await page.waitForSelector(".guide pre");
    await visit(page, "/guides/nothing");
    await page.waitForSelector(".guide:has-text('There is no such guide')");
  });

  step("brings the first steps back", async (page) => {
    await visit(page, "/");
    await page.click("button:has-text('Hide')");
    await page.waitForSelector(".steps", { state: "detached" });
    await page.keyboard.press("?");
    await inDialog(page, "First steps again");
    await page.waitForSelector(".steps");
    await page.click("button:has-text('Hide')");
    await page.evaluate(() => localStorage.clear());
  });
});

journey("a viewer of activity", { ...PHONE, hasTouch: true, isMobile: true }, (step) => {
  step("reaches it by touch, and changes nothing", async (page) => {
    await page.goto(scene.viewer);
    await page.fill("input[name=newPassword]", "a password of Vera's");
    await page.click("button[type=submit]");
    await shown(page);
    await page.tap(".phone a:has-text('Activity')");
    await page.waitForFunction(() => document.title.startsWith("Activity"));
    await shown(page);
    await page.waitForSelector(".activity-list [data-index='0'] a");
    assert.ok((await first(page)).length > 0);
    await page.selectOption("select[name=state]", "cancelled");
    await row(page, "Cancelled").waitFor();
    assert.equal(await page.getByRole("button", { name: /^(Cancel|Try)/ }).count(), 0);
    await page.tap(".top [aria-label=Help]");
    await page.waitForSelector("dialog:has-text('Help: Activity')");
    assert.equal(await page.locator("dialog button:has-text('First steps')").count(), 0);
  });
});
