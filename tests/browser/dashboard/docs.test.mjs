// The API reference: order, search, examples that work, and calls tried with one's session and with a key that is not kept.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import {
  expectAccessible,
  expectNoSecrets,
  focused,
  hasFocus,
  journey,
  PHONE,
  scene,
  screenshots,
  signIn,
  WIDE,
} from "./support.mjs";

const run = promisify(execFile);
const METHODS = ["get", "put", "post", "patch", "delete", "head", "options"];

/** Opens the reference at an operation, with its form for a call. */
async function open(page, id) {
  await page.goto(`${scene.base}/docs#${id}`);
  await page.reload();
  const operation = page.locator(`#${id}`);
  await operation.locator(".try > summary").click();
  return operation;
}

/** Sends the call of an open operation; what was answered. */
async function send(operation, status) {
  await operation.getByRole("button", { name: "Send" }).click();
  await operation.locator(".answer-status strong", { hasText: String(status) }).waitFor();
  await operation.locator(".answer-body").waitFor();
}

const expected = [[401, /^\/api\/(keys|folders)$/]];

journey("docs", { expected }, (step) => {
  step(
    "shows every operation, in the order of a first use, below what authentication there is",
    async (page) => {
      await page.goto(`${scene.base}/docs`);
      await page.waitForSelector(".operation");
      const { paths } = await page.evaluate(async () => (await fetch("/openapi.json")).json());
      const operations = Object.values(paths).flatMap((item) => METHODS.filter((method) => item[method]));
      assert.equal(await page.locator(".operation").count(), operations.length);
      const groups = await page.locator("section.tag > h2").allTextContents();
      assert.deepEqual(groups.slice(0, 2), ["API keys", "Live inputs"]);
      assert.equal(groups.at(-1), "Operation of the service");
      const introduction = await page.textContent(".introduction .prose");
      for (const kind of ["API key", "Session", "Delivery key", "Playback token"])
        assert.ok(introduction.includes(kind), `${kind} in ${introduction}`);
      await screenshots(page, "docs");
    },
  );

  step("finds an operation by keyboard", async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("stream key rotate");
    await page.waitForFunction(() =>
      /^\d+ of \d+ operations$/.test(document.querySelector(".search-status").textContent),
    );
    await expectAccessible(page, "what was found");
    await page.keyboard.press("Enter");
    await hasFocus(page, "SUMMARY POST");
    assert.match(await focused(page), /^SUMMARY POST.*rotate-key$/);
    await page.locator("#post-api-live-inputs-id-rotate-key .example").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("no such operation");
    await page.getByText("No operation has").waitFor();
    await page.fill("#search", "");
    await page.locator(".introduction").waitFor();
  });

  step("has an example of every operation in three languages", async (page) => {
    await page.goto(`${scene.base}/docs`);
    await page.waitForSelector(".operation");
    await page.evaluate(() => {
      for (const operation of document.querySelectorAll(".operation")) operation.open = true;
    });
    const count = await page.locator(".operation").count();
    await page.waitForFunction((count) => document.querySelectorAll(".example").length === count, count);
    for (const [language, call] of [
      ["JavaScript", "await fetch("],
      ["Python", "requests."],
      ["curl", "curl "],
    ]) {
      await page.locator(".languages").first().getByText(language, { exact: true }).click();
      const without = await page.evaluate(
        ([call, base]) =>
          [...document.querySelectorAll(".example code")]
            .map(({ textContent }) => textContent)
            .filter((text) => !text.includes(call) || !text.includes(base)),
        [call, scene.base],
      );
      assert.deepEqual(without, [], language);
    }
  });

  step("its examples work as they are", async (page) => {
    await page.goto(`${scene.base}/docs#post-api-folders`);
    await page.reload();
    const operation = page.locator("#post-api-folders");
    const env = { ...process.env, SLUICE_API_KEY: scene.key };
    const example = async (language) => {
      await operation.getByText(language, { exact: true }).click();
      return operation.locator(".example code").textContent();
    };
    const { stdout: byCurl } = await run("sh", ["-c", await example("curl")], { env });
    assert.equal(JSON.parse(byCurl).folder.name, "Example");
    const program = ["--input-type=module", "-e", await example("JavaScript")];
    const { stdout: byScript } = await run(process.execPath, program, { env });
    assert.match(byScript, /^(201|409) /);
  });

  step("sends nothing of a session that is not there", async (page) => {
    const operation = await open(page, "get-api-keys");
    await operation.getByText("you are not signed in").waitFor();
    await send(operation, 401);
  });

  step("tries calls with one's own session, changes with its token", async (page) => {
    await signIn(page);
    const list = await open(page, "get-api-keys");
    await list.getByText("as admin").waitFor();
    await send(list, 200);
    assert.ok(JSON.parse(await list.locator(".answer-body").textContent()).keys.length > 0);

    const make = await open(page, "post-api-folders");
    await make.getByLabel("Body (JSON)").fill('{"name": "From the reference"}');
    assert.match(await make.locator(".example code").textContent(), /From the reference/);
    await send(make, 201);
    await expectAccessible(page, "an operation with its answer");
    await screenshots(page, "docs-call", { phone: false });
  });

  step("tries calls with a pasted key alone, and keeps it nowhere", async (page) => {
    const operation = await open(page, "get-api-keys");
    await page.getByLabel("API key", { exact: true }).fill("svc_wrong");
    await send(operation, 401);
    await page.getByLabel("API key", { exact: true }).fill(scene.key);
    await send(operation, 200);
    await page.getByLabel("no credential").check();
    await send(operation, 401);
    await page.reload();
    await page.waitForSelector(".operation");
    assert.equal(await page.getByLabel("API key", { exact: true }).inputValue(), "");
    assert.ok(!(await page.content()).includes(scene.key));
    await expectNoSecrets(page);
  });

  step("fits a phone, where the contents open and close", async (page) => {
    await page.setViewportSize(PHONE);
    await page.goto(`${scene.base}/docs`);
    const contents = page.locator("#contents details");
    await contents.locator("> summary").click();
    await contents.getByRole("link", { name: "Make a live input" }).click();
    await page.locator("#post-api-live-inputs .example").waitFor();
    await page.waitForSelector("#contents details:not([open])");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.width);
    await page.setViewportSize(WIDE);
  });
});
