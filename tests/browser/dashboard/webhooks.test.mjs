// Webhooks against a receiver on this machine: an endpoint made, its secret shown once, a test event verified (also by the
// programs that the page shows), failures with their requests and answers, filters, sent again, suspended and tried,
// recovered, another secret, a pause, the feed of events, deleted; again by keyboard; hostile texts; a viewer.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after } from "node:test";
import { Receiver, verified } from "./receiver.mjs";
import {
  ask,
  call,
  choose,
  closed,
  copied,
  expectAccessible,
  expectNoSecrets,
  expectSecretsNowhere,
  HOSTILE,
  hasFocus,
  inDialog,
  journey,
  press,
  scene,
  screenshots,
  selection,
  shown,
  signIn,
  tabTo,
  visit,
} from "./support.mjs";

const BAD_ANSWER = `{"error": "the table “orders” is full", "detail": "<b>no</b> space"}`;
const VALID = { standard: true, service: true };
/** Longest time of a program or a command of the page. */
const PROGRAM_MS = 60_000;

const receiver = scene && (await Receiver.open());
after(() => receiver?.close());
/** What was shown once; nothing of it may be found at the end. */
const secrets = [];

const endpointMenu = /^Actions: http/;
const row = (page, text) => page.locator("tbody tr", { hasText: text });

/** Waits until the open delivery has so many attempts, all of them with their answers. */
const failedAttempts = (page, count) =>
  page.waitForFunction(
    (count) => document.querySelectorAll("dialog .webhook-attempts .tag-bad").length === count,
    count,
  );

/** Stores a small file, which is an event. */
const store = (page, name) =>
  page.evaluate(async (name) => {
    const { csrfToken } = await (await fetch("/api/session")).json();
    const form = new FormData();
    form.append("file", new File([`of ${name}`], name, { type: "text/plain" }));
    const headers = { "x-csrf-token": csrfToken };
    return (await fetch("/api/files", { method: "POST", headers, body: form })).status;
  }, name);

/** Takes the secret of the open dialog by its button, and closes it. */
async function takeSecret(page) {
  await page.waitForSelector("dialog .copy-field");
  const secret = await copied(page, "Copy Secret");
  assert.match(secret, /^whsec_/);
  secrets.push(secret);
  await inDialog(page, "I have kept it");
  await closed(page);
  return secret;
}

/** Runs a program that prints one word. */
function run(command, args, input, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, timeout: PROGRAM_MS });
    let printed = "";
    child.stdout.on("data", (data) => {
      printed += data;
    });
    child.on("error", reject);
    child.on("close", () => resolve(printed.trim()));
    child.stdin.end(input);
  });
}

/** How a program of the page is run: it is read from standard input. */
const RUNNERS = {
  Shell: ["sh", ["-s"]],
  Node: ["node", ["--input-type=module", "-"]],
  Python: ["python3", ["-"]],
  PHP: ["php", []],
};

journey("webhooks", { expected: [[400, /^\/api\/webhooks$/]] }, (step) => {
  let secret;
  let failed;

  step("says what webhooks are for when there is no endpoint", async (page) => {
    await signIn(page, "/webhooks");
    await page.waitForSelector(".empty");
    await expectAccessible(page, "no endpoints");
    await visit(page, "/webhooks/deliveries");
    await page.waitForSelector(".empty");
    await expectAccessible(page, "no deliveries");
  });

  step("names the setting that an address in a private network needs", async (page) => {
    await visit(page, "/webhooks?new");
    await page.waitForSelector("dialog [name=url]");
    await page.waitForSelector("dialog .webhook-types");
    await page.fill("dialog [name=url]", "http://10.1.2.3/hooks");
    await inDialog(page, "Make the endpoint");
    await page.waitForSelector("dialog .field-error");
    await page.locator("dialog .field-error", { hasText: "outbound.allow" }).waitFor();
    await hasFocus(page, "INPUT");
    await expectAccessible(page, "an address that is rejected");
  });

  step("makes an endpoint for events of the catalogue, and shows its secret once", async (page) => {
    const { eventTypes } = await ask(page, "/api/catalogue");
    const offered = await page.locator(".webhook-types code").allTextContents();
    assert.deepEqual(
      offered,
      eventTypes.map(({ name }) => name),
    );
    await page.fill("dialog [name=url]", `${receiver.url}/hooks`);
    await page.fill("dialog [name=description]", "The shop");
    await page.getByLabel("All events").uncheck();
    await page
      .locator(".webhook-types")
      .getByLabel(/^file\.uploaded/)
      .check();
    await expectAccessible(page, "a new endpoint");
    await inDialog(page, "Make the endpoint");
    await page.getByText("I have kept it").waitFor();
    await expectAccessible(page, "the secret");
    await page.keyboard.press("Escape");
    secret = await takeSecret(page);
    await expectNoSecrets(page);
    const { webhooks } = await ask(page, "/api/webhooks");
    assert.deepEqual(webhooks[0].eventTypes, ["file.uploaded"]);
    await page.getByText("1 event type").waitFor();
  });

  step("sends a test event whose signature verifies", async (page) => {
    await press(page, "Send a test event");
    // The message with this button goes by itself, perhaps before the event has come.
    await page.getByRole("button", { name: "Follow it" }).click();
    const got = await receiver.got(({ type }) => type === "webhook.test");
    assert.deepEqual(verified(got, secret), VALID);
    await page.locator("dialog .tag-good", { hasText: "204" }).waitFor();
    const text = await page.textContent("dialog .code-box");
    for (const name of ["service-signature", "webhook-signature", "webhook-id"])
      assert.ok(text.includes(`\n${name}: ${got.headers[name]}\n`), name);
    assert.ok(text.endsWith(got.body.toString()), "the bytes of the body");
    await expectAccessible(page, "a delivery");
  });

  step("gives programs and a command that work", async (page) => {
    for (const [language, [command, args]] of Object.entries(RUNNERS)) {
      await page.locator("dialog .choice").getByText(language, { exact: true }).click();
      const program = await page.getByLabel(`Verify in ${language}`, { exact: true }).inputValue();
      const by = (WEBHOOK_SECRET) => run(command, args, program, { WEBHOOK_SECRET });
      assert.equal(await by(secret), "valid", language);
      assert.equal(await by("whsec_b3RoZXI="), "not valid", language);
    }
    const before = receiver.requests.length;
    const first = receiver.requests[0];
    await run("sh", ["-s"], await page.getByLabel("Send it by curl", { exact: true }).inputValue());
    const again = await receiver.got(() => true, before);
    assert.deepEqual(again.body, first.body);
    for (const name of ["service-signature", "webhook-signature", "content-type"])
      assert.equal(again.headers[name], first.headers[name]);
    await press(page, "Close");
    await closed(page);
  });

  step("shows each attempt of a receiver that fails, and what it answered", async (page) => {
    receiver.status = 500;
    receiver.answer = BAD_ANSWER;
    assert.equal(await store(page, "photo.jpg"), 201);
    const at = row(page, "file.uploaded");
    await at.locator(".tag-bad").waitFor();
    await at.getByRole("button", { name: /^Open/ }).click();
    await failedAttempts(page, 3);
    const bytes = await page.locator("dialog .code-box").allTextContents();
    assert.equal(bytes[0], BAD_ANSWER);
    const last = receiver.requests.at(-1);
    assert.ok(bytes[1].includes(last.headers["service-signature"]));
    assert.ok(bytes[1].endsWith(last.body.toString()));
    assert.equal(JSON.parse(last.body).data.filename, "photo.jpg");
    failed = JSON.parse(last.body).id;
    await expectAccessible(page, "a failed delivery");
    await screenshots(page, "webhooks-delivery", { phone: false });
    await press(page, "Close");
  });

  step(
    "finds deliveries by endpoint, status, event, answer and time, and keeps that over a reload",
    async (page) => {
      const rows = (count) =>
        page.waitForFunction((count) => document.querySelectorAll("tbody tr").length === count, count);
      await rows(2);
      await expectAccessible(page, "deliveries");
      await screenshots(page, "webhooks-deliveries");
      for (const [name, value, count] of [
        ["status", "failed", 1],
        ["http", "2xx", 1],
        ["http", "5xx", 1],
        ["http", "3xx", 0],
        ["type", "webhook.test", 1],
        ["type", "conversion.failed", 0],
        ["since", "3600", 2],
      ]) {
        await page.selectOption(`select[name=${name}]`, value);
        await rows(count);
        await page.selectOption(`select[name=${name}]`, "");
        await rows(2);
      }
      const { webhooks } = await ask(page, "/api/webhooks");
      await page.selectOption("select[name=endpoint]", webhooks[0].id);
      await page.selectOption("select[name=status]", "failed");
      await rows(1);
      await page.reload();
      await shown(page);
      await rows(1);
      assert.equal(await page.inputValue("select[name=status]"), "failed");
      await visit(page, "/webhooks/deliveries?since=1");
      await page.getByText("No delivery fits.").waitFor();
      await visit(page, `/webhooks/deliveries?event=${failed}`);
      await rows(1);
    },
  );

  step("says loudly that an endpoint is suspended", async (page) => {
    await row(page, "file.uploaded").getByRole("button", { name: /^Open/ }).click();
    await inDialog(page, "Send again");
    await failedAttempts(page, 4);
    await press(page, "Close");
    await visit(page, "/webhooks");
    const banner = page.locator(".callout", { hasText: "is suspended" });
    await banner.waitFor();
    assert.equal(await store(page, "waits.txt"), 201);
    await banner.getByText("1 delivery waits").waitFor();
    assert.match(await banner.innerText(), /4 attempts in a row failed/);
    await expectAccessible(page, "a suspended endpoint");
    await screenshots(page, "webhooks");
    await visit(page, "/");
    await page.locator(".callout", { hasText: /suspended/ }).waitFor();
  });

  step("tries a suspended endpoint, and sends what waited once it answers", async (page) => {
    await visit(page, "/webhooks");
    Object.assign(receiver, { status: 200, answer: "thanks" });
    const from = receiver.requests.length;
    await press(page, "Try now");
    const got = await receiver.got(({ type }) => type === "file.uploaded", from);
    assert.match(got.body.toString(), /waits\.txt/);
    await page.locator(".callout", { hasText: "is suspended" }).waitFor({ state: "detached" });
    await page.locator(".tag-good", { hasText: "active" }).waitFor();
  });

  step("sends again what failed since a time", async (page) => {
    await choose(page, endpointMenu, "Send failed ones again");
    await page.waitForSelector("dialog select");
    await expectAccessible(page, "sending failed ones again");
    const from = receiver.requests.length;
    await inDialog(page, "Send again");
    await page.locator(".toast", { hasText: "1 delivery is sent again." }).waitFor();
    const got = await receiver.got(({ id }) => id === failed, from);
    assert.deepEqual(verified(got, secret), VALID);
    await visit(page, `/webhooks/deliveries?event=${failed}`);
    await row(page, "file.uploaded").locator(".tag-good").waitFor();
  });

  step("makes another secret, and both sign", async (page) => {
    await visit(page, "/webhooks");
    await choose(page, endpointMenu, "New secret");
    await page.waitForSelector("dialog");
    await expectAccessible(page, "another secret");
    await inDialog(page, "Make a new secret");
    const other = await takeSecret(page);
    assert.notEqual(other, secret);
    const from = receiver.requests.length;
    await press(page, "Send a test event");
    const got = await receiver.got(() => true, from);
    assert.deepEqual(verified(got, secret), VALID);
    assert.deepEqual(verified(got, other), VALID);
    await expectNoSecrets(page);
  });

  step("pauses and resumes", async (page) => {
    await choose(page, endpointMenu, "Pause");
    await page.locator(".tag", { hasText: "paused" }).waitFor();
    assert.equal(await store(page, "while-paused.txt"), 201);
    await expectAccessible(page, "a paused endpoint");
    await choose(page, endpointMenu, "Resume");
    await page.locator(".tag", { hasText: "active" }).waitFor();
    assert.equal(await store(page, "after-pause.txt"), 201);
    await receiver.got((_, { body }) => body.includes("after-pause.txt"));
    assert.ok(!receiver.requests.some(({ body }) => body.includes("while-paused.txt")));
  });

  step("changes an endpoint", async (page) => {
    await choose(page, endpointMenu, "Change");
    await page.waitForSelector("dialog .webhook-types");
    assert.equal(await page.inputValue("dialog [name=url]"), `${receiver.url}/hooks`);
    assert.ok(
      await page
        .locator(".webhook-types")
        .getByLabel(/^file\.uploaded/)
        .isChecked(),
    );
    await page.fill("dialog [name=description]", HOSTILE[0]);
    await page.getByLabel("All events").check();
    await inDialog(page, "Save");
    await closed(page);
    await page.getByText(HOSTILE[0]).waitFor();
    await page.getByText("all events").waitFor();
  });

  step("lists events as they happen", async (page) => {
    await page.locator(".tabs").getByText("Events", { exact: true }).click();
    await page.locator("details", { hasText: "file.uploaded" }).first().waitFor();
    const before = await page.locator("details").count();
    await page.evaluate(() => {
      globalThis.isSamePage = true;
    });
    assert.equal(await store(page, HOSTILE[1].replaceAll("/", "")), 201);
    await page.waitForFunction((count) => document.querySelectorAll("main details").length > count, before);
    assert.ok(await page.evaluate(() => globalThis.isSamePage), "without a reload");
    await page.locator("main summary").first().click();
    await page.waitForSelector("main details[open] pre");
    await expectAccessible(page, "events");
    await page.locator("main details[open] a").click();
    await row(page, "file.uploaded").waitFor();
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  });

  step("deletes an endpoint", async (page) => {
    await visit(page, "/webhooks");
    await choose(page, endpointMenu, "Delete");
    await page.waitForSelector("dialog");
    await expectAccessible(page, "deleting an endpoint");
    await inDialog(page, "Delete");
    await page.waitForSelector(".empty");
    assert.equal((await ask(page, "/api/webhooks")).webhooks.length, 0);
  });
});

journey("webhooks by keyboard", {}, (step) => {
  const enter = async (page, selector) => {
    await tabTo(page, selector);
    await page.keyboard.press("Enter");
  };

  step("makes an endpoint and follows a failed delivery without a mouse", async (page) => {
    Object.assign(receiver, { status: 500, answer: BAD_ANSWER });
    await signIn(page, "/webhooks");
    await page.waitForSelector(".empty");
    await enter(page, ".page-actions .btn");
    await page.waitForFunction(() => document.activeElement.name === "url");
    await page.keyboard.type(`${receiver.url}/keys`);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.matches(".copy-field input"));
    const secret = await selection(page);
    assert.match(secret, /^whsec_/, "it is selected, to be copied by keys");
    secrets.push(secret);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await enter(page, "dialog .dialog-actions .btn");
    await closed(page);
    await page.waitForSelector(".webhook");
    await enter(page, ".webhook > .actions .btn");
    await receiver.got((_, { url }) => url === "/keys");
    await enter(page, ".webhook [aria-haspopup=menu]");
    await page.waitForFunction(() => document.activeElement.getAttribute("role") === "menuitem");
    await page.keyboard.press("Enter");
    await row(page, "webhook.test").locator(".tag-bad").waitFor();
    await enter(page, "tbody .btn");
    await page.waitForSelector("dialog .webhook-attempts");
    await tabTo(page, "dialog .actions .btn-solid");
    for (const attempts of [2, 3, 4]) {
      await page.keyboard.press("Enter");
      await failedAttempts(page, attempts);
      await page.waitForFunction(() => document.activeElement.matches(".btn-solid:not([aria-disabled])"));
    }
    await page.keyboard.press("Escape");
    await closed(page);
    await page.waitForFunction(() => document.activeElement.matches("tbody .btn"));
  });

  step("tries and deletes it by the menu", async (page) => {
    Object.assign(receiver, { status: 204, answer: "" });
    await enter(page, ".side a[href$='/webhooks']");
    await page.waitForSelector(".callout .btn");
    await enter(page, ".callout .btn");
    await page.waitForSelector(".callout", { state: "detached" });
    await enter(page, ".webhook [aria-haspopup=menu]");
    await page.waitForFunction(() => document.activeElement.getAttribute("role") === "menuitem");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog");
    await enter(page, "dialog [type=submit]");
    await page.waitForSelector(".empty");
  });
});

journey("webhooks with hostile texts", {}, (step) => {
  step("show them as text", async (page) => {
    Object.assign(receiver, { status: 422, answer: HOSTILE.join("\n").repeat(20) });
    await signIn(page, "/webhooks");
    for (const text of HOSTILE) {
      const made = await call(page, "POST", "/api/webhooks", {
        url: `${receiver.url}/${encodeURIComponent(text)}?${text.replaceAll(/[<>" ]/g, "")}`,
        description: text.repeat(2),
        eventTypes: ["*"],
      });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      secrets.push(made.body.secret);
      await call(page, "POST", `/api/webhooks/${made.body.webhook.id}/test`);
      assert.equal(await store(page, text), 201);
    }
    await page.waitForFunction(
      (count) => document.querySelectorAll(".webhook").length === count,
      HOSTILE.length,
    );
    await expectAccessible(page, "hostile endpoints");
    await page.getByRole("button", { name: endpointMenu }).first().click();
    await page.waitForSelector(".menu:popover-open");
    await expectAccessible(page, "a menu");
    await page.keyboard.press("Escape");
    await visit(page, "/webhooks/deliveries");
    await row(page, "webhook.test").first().waitFor();
    await expectAccessible(page, "hostile deliveries");
    await row(page, "422").first().getByRole("button", { name: /^Open/ }).click();
    await page.waitForSelector("dialog .code-box");
    await expectAccessible(page, "a hostile delivery");
    await page.locator("dialog[open]", { hasText: "onerror" }).waitFor();
    await press(page, "Close");
    await visit(page, "/webhooks/events");
    await page.waitForSelector("main details");
    for (const summary of await page.locator("main summary").all()) await summary.click();
    await expectAccessible(page, "hostile events");
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    const input = await call(page, "POST", "/api/live/inputs", { name: HOSTILE[0] });
    secrets.push(input.body.streamKey);
    const { webhooks } = await ask(page, "/api/webhooks");
    for (const { id } of webhooks.slice(1)) await call(page, "DELETE", `/api/webhooks/${id}`);
  });
});

journey("webhooks of a viewer", { expected: [[403, /^\/api\/webhooks/]] }, (step) => {
  step("are looked at, and a forged call is refused", async (page) => {
    await page.goto(scene.viewer);
    await page.fill("input[name=newPassword]", "only looking here");
    await page.click("button[type=submit]");
    await shown(page);
    await visit(page, "/webhooks");
    await page.waitForSelector(".webhook");
    for (const name of ["New endpoint", "Send a test event", "Try now"])
      assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    await page.getByRole("button", { name: endpointMenu }).first().click();
    await page.getByRole("menuitem").first().waitFor();
    assert.equal(await page.getByRole("menuitem").count(), 1, "only to its deliveries");
    await page.getByRole("menuitem").click();
    await row(page, "webhook.test").first().getByRole("button", { name: /^Open/ }).click();
    await page.waitForSelector("dialog .webhook-attempts");
    assert.equal(await page.locator("dialog").getByRole("button", { name: "Send again" }).count(), 0);
    await press(page, "Close");
    const { webhooks } = await ask(page, "/api/webhooks");
    const { deliveries } = await ask(page, "/api/webhooks/deliveries?limit=1");
    const path = `/api/webhooks/${webhooks[0].id}`;
    for (const [method, where, body] of [
      ["POST", "/api/webhooks", { url: receiver.url, eventTypes: ["*"] }],
      ["PATCH", path, { isActive: false }],
      ["POST", `${path}/test`],
      ["POST", `${path}/probe`],
      ["POST", `${path}/rotate-secret`],
      ["POST", `${path}/recover`, { since: "2026-01-01T00:00:00Z" }],
      ["POST", `/api/webhooks/deliveries/${deliveries[0].id}/retry`],
      ["DELETE", path],
    ]) {
      const { status, body: answer } = await call(page, method, where, body);
      assert.equal(status, 403, `${method} ${where}`);
      assert.match(answer.error, /member or admin/);
    }
    await expectAccessible(page, "webhooks of a viewer");
    assert.equal((await ask(page, "/api/webhooks")).webhooks.length, 1);
  });

  step("has no secret in any screen, the browser or the log", async (page) => {
    await expectSecretsNowhere(page, secrets);
  });
});
