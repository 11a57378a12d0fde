// Settings: API keys, delivery keys and playback keys made, used and revoked; sessions ended from elsewhere; another
// password; what a member and a viewer see, and what a forged call is answered; hostile names; no secret stays anywhere.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after } from "node:test";
import { openChromium } from "../chromium.mjs";
import { png } from "./pictures.mjs";
import {
  call,
  closed,
  copied,
  expectAccessible,
  expectNoSecrets,
  expectSecretsNowhere,
  HOSTILE,
  inDialog,
  journey,
  PATIENCE_MS,
  press,
  scene,
  screenshots,
  selection,
  shown,
  signIn,
  tabTo,
  visit,
} from "./support.mjs";

const NEW_PASSWORD = "another password of mine";
const changed = { username: scene?.username, password: NEW_PASSWORD };
/** What was shown once; nothing of it may be found at the end. */
const secrets = [scene?.password, NEW_PASSWORD];

const row = (page, text) => page.locator("tbody tr", { hasText: text });

/** Asks the service as a program does, from outside of the browser. */
async function byKey(key, path, options = {}) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(scene.base + path, { headers, ...options });
  return answer.status;
}

/** Takes the value of this name from the dialog that shows it once, and closes it. */
async function takeOnce(page, name) {
  await page.waitForSelector("dialog .copy-field");
  await page.keyboard.press("Escape");
  const value = await copied(page, `Copy ${name}`);
  secrets.push(value);
  await inDialog(page, "I have kept it");
  await closed(page);
  return value;
}

/** Opens the address of a welcome link and chooses a password. */
async function welcome(page, link) {
  await page.goto(link);
  await page.fill("input[name=newPassword]", "a password for today");
  await page.click("button[type=submit]");
  await shown(page);
}

journey("keys", { expected: [[400, /^\/api\/delivery-keys$/]] }, (step) => {
  let key;

  step("makes an API key that is shown once and works", async (page) => {
    await signIn(page, "/settings/api/keys");
    await press(page, "New API key");
    await page.waitForSelector("dialog [name=name]");
    await expectAccessible(page, "a new API key");
    await page.fill("dialog [name=name]", "backup script");
    await page.selectOption("dialog [name=scope]", "read");
    await inDialog(page, "Make the key");
    await page.getByText("I have kept it").waitFor();
    await expectAccessible(page, "the API key");
    key = await takeOnce(page, "API key");
    assert.match(key, /^svc_/);
    await expectNoSecrets(page, secrets);
    assert.equal(await byKey(key, "/api/files"), 200);
    const body = JSON.stringify({ name: "x" });
    assert.equal(await byKey(key, "/api/folders", { method: "POST", body }), 403);
    await page.reload();
    await shown(page);
    await row(page, "backup script").locator("time").nth(1).waitFor();
    assert.ok(
      key.startsWith((await row(page, "backup script").locator("code").textContent()).replace("…", "")),
    );
    await expectAccessible(page, "API keys");
    await screenshots(page, "settings-keys");
  });

  step("revokes it: the next call is answered 401", async (page) => {
    await press(page, "Revoke backup script");
    await page.waitForSelector("dialog");
    await expectAccessible(page, "revoking");
    await inDialog(page, "Revoke");
    await row(page, "backup script").waitFor({ state: "detached" });
    assert.equal(await byKey(key, "/api/files"), 401);
  });

  step("makes a key by keyboard alone", async (page) => {
    await visit(page, "/settings/api/keys");
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog [role=option]");
    await page.keyboard.type("new api key");
    await page.waitForFunction(() => document.querySelectorAll("dialog [role=option]").length === 1);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.name === "name");
    await page.keyboard.type("typed");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.matches(".copy-field input"));
    secrets.push(await selection(page));
    await tabTo(page, "dialog .dialog-actions .btn");
    await page.keyboard.press("Enter");
    await closed(page);
    await row(page, "typed").waitFor();
    await tabTo(page, "[aria-label='Revoke typed']");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.closest("dialog"));
    await tabTo(page, "dialog [type=submit]");
    await page.keyboard.press("Enter");
    await row(page, "typed").waitFor({ state: "detached" });
  });

  step("makes a delivery key, whose token is shown again", async (page) => {
    await visit(page, "/settings/api/delivery-keys");
    await page.waitForSelector(".empty");
    await expectAccessible(page, "no delivery keys");
    await press(page, "New delivery key");
    await page.waitForSelector("dialog [name=alias]");
    await page.fill("dialog [name=name]", "my site");
    await page.fill("dialog [name=alias]", "no spaces here");
    await inDialog(page, "Make the key");
    await page.waitForSelector("dialog [aria-invalid=true]");
    await expectAccessible(page, "a name that is rejected");
    await page.fill("dialog [name=alias]", "my-site");
    await inDialog(page, "Make the key");
    await page.waitForSelector("dialog .copy-field");
    await expectAccessible(page, "the delivery key");
    await inDialog(page, "OK");
    await page.reload();
    await shown(page);
    await expectAccessible(page, "delivery keys");
    await screenshots(page, "settings-delivery-keys", { phone: false });
    const token = await copied(page, "Copy Token");
    assert.match(token, /^svc_pub_/);
    const file = await page.evaluate(
      async (bytes) => {
        const { csrfToken } = await (await fetch("/api/session")).json();
        const form = new FormData();
        form.append("file", new File([new Uint8Array(bytes)], "shore.png", { type: "image/png" }));
        const headers = { "x-csrf-token": csrfToken };
        return (await (await fetch("/api/files", { method: "POST", headers, body: form })).json()).file;
      },
      [...png(1)],
    );
    const image = (name) =>
      fetch(`${scene.base}/cdn/v1/${name}/${file.id}?w=32`).then(({ status }) => status);
    assert.deepEqual([await image(token), await image("my-site")], [200, 200]);
    await press(page, "Change my site");
    await page.check("dialog [name=presetsOnly]");
    await inDialog(page, "Save");
    await row(page, "my site").getByText("Presets only").waitFor();
    assert.equal(await image(token), 403);
    await press(page, "Revoke my site");
    await inDialog(page, "Revoke");
    await page.waitForSelector(".empty");
    assert.equal(await image(token), 404);
  });

  step("makes a playback key, whose tokens play until it is revoked", async (page) => {
    await visit(page, "/settings/api/playback-keys");
    await page.waitForSelector(".empty");
    await expectAccessible(page, "no playback keys");
    await press(page, "New playback key");
    await page.fill("dialog [name=name]", "member area");
    await inDialog(page, "Make the key");
    await page.waitForSelector("dialog .copy-field");
    await expectAccessible(page, "the playback key");
    const kid = await copied(page, "Copy Key id (kid)");
    const secret = await takeOnce(page, "Secret");
    await row(page, "member area").waitFor();
    await expectAccessible(page, "playback keys");
    await expectNoSecrets(page, secrets);
    const made = await call(page, "POST", "/api/live/inputs", {
      name: "Members only",
      requireSignedPlayback: true,
    });
    secrets.push(made.body.streamKey);
    const { playbackId } = made.body.liveInput;
    const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const body = `${part({ alg: "HS256", kid })}.${part({ sub: playbackId, exp: Math.floor(Date.now() / 1000) + 600 })}`;
    const token = `${body}.${createHmac("sha256", secret).update(body).digest("base64url")}`;
    const status = async (leave) => (await fetch(`${scene.base}/live/v1/${leave}/index.m3u8`)).status;
    // Nothing is on air: past the check of the token there is no playlist yet.
    assert.deepEqual([await status(playbackId), await status(token)], [403, 404]);
    await press(page, "Revoke member area");
    await inDialog(page, "Revoke");
    await page.waitForSelector(".empty");
    const deadline = Date.now() + PATIENCE_MS;
    while ((await status(token)) !== 403) assert.ok(Date.now() < deadline, "the token plays no longer");
  });

  step("shows hostile names as text", async (page) => {
    for (const name of HOSTILE.map((name) => name.slice(0, 100))) {
      for (const [path, body] of [
        ["/api/keys", { name, scope: "read" }],
        ["/api/delivery-keys", { name }],
        ["/api/playback-keys", { name }],
      ]) {
        const made = await call(page, "POST", path, body);
        assert.equal(made.status, 201, JSON.stringify(made.body));
        if (path !== "/api/delivery-keys") secrets.push(made.body.token ?? made.body.secret);
      }
    }
    for (const part of ["keys", "delivery-keys", "playback-keys"]) {
      await visit(page, `/settings/api/${part}`);
      await row(page, HOSTILE[0]).waitFor();
      await expectAccessible(page, `hostile names of ${part}`);
      await page.locator("tbody .btn-danger").first().click();
      await page.waitForSelector("dialog");
      await page.keyboard.press("Escape");
      await closed(page);
    }
    await visit(page, "/settings/usage");
    await expectAccessible(page, "usage with hostile names");
    await screenshots(page, "settings-usage");
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  });
});

/** Waits until the list has so many sessions of other browsers. */
const others = (page, count) =>
  page.waitForFunction((count) => document.querySelectorAll("tbody .btn-danger").length === count, count);

let elsewhere;
after(() => elsewhere?.close());

journey("sessions and the password", { expected: [[403, /^\/api\/session\/password$/]] }, (step) => {
  step("ends a session of another browser, which asks for the password there", async (page) => {
    await signIn(page, "/settings/account");
    // Those of the journeys before; a browser that is closed does not sign out.
    const count = await page.locator("tbody .btn-danger").count();
    elsewhere = await openChromium();
    elsewhere.page.setDefaultTimeout(PATIENCE_MS);
    await signIn(elsewhere.page, "/files");
    await others(page, count + 1);
    await page.locator("tbody").getByText("this browser").waitFor();
    await expectAccessible(page, "account");
    await screenshots(page, "settings-account");
    await press(page, "End");
    await page.waitForSelector("dialog");
    await expectAccessible(page, "ending a session");
    await inDialog(page, "End");
    await closed(page);
    for (let left = count; left >= 0; left--) {
      await others(page, left);
      if (left === 0) break;
      await press(page, "End");
      await inDialog(page, "End");
      // The list may know of it before the dialog has its answer.
      await closed(page);
    }
    const over = elsewhere.page.locator("dialog", { hasText: "Your session is over" });
    await over.waitFor();
    await elsewhere.page.fill("dialog [name=password]", scene.password);
    await elsewhere.page.keyboard.press("Enter");
    await over.waitFor({ state: "detached" });
    await others(page, 1);
  });

  step("changes the password, which ends all other sessions", async (page) => {
    await page.fill("[name=currentPassword]", "not the password");
    await page.fill("[name=newPassword]", NEW_PASSWORD);
    await press(page, "Change the password");
    await page.waitForSelector("[name=currentPassword][aria-invalid=true]");
    await expectAccessible(page, "a wrong password");
    await page.fill("[name=currentPassword]", scene.password);
    await press(page, "Change the password");
    await page.locator(".toast", { hasText: "password is changed" }).waitFor();
    await others(page, 0);
    const over = elsewhere.page.locator("dialog", { hasText: "Your session is over" });
    await over.waitFor();
    await elsewhere.page.fill("dialog [name=password]", scene.password);
    await elsewhere.page.keyboard.press("Enter");
    await elsewhere.page.waitForSelector("dialog [role=alert], dialog [aria-invalid=true]");
    await elsewhere.page.fill("dialog [name=password]", NEW_PASSWORD);
    await elsewhere.page.keyboard.press("Enter");
    await over.waitFor({ state: "detached" });
    await expectNoSecrets(page, secrets);
  });
});

/** Everything that needs the role admin, and something that needs member. */
const ADMIN_CALLS = [
  ["GET", "/api/keys"],
  ["POST", "/api/keys", { name: "forged", scope: "admin" }],
  ["DELETE", "/api/keys/01900000-0000-7000-8000-000000000000"],
  ["GET", "/api/playback-keys"],
  ["POST", "/api/playback-keys", { name: "forged" }],
  ["DELETE", "/api/playback-keys/01900000-0000-7000-8000-000000000000"],
  ["GET", "/api/audit"],
];
const MEMBER_CALLS = [
  ["POST", "/api/delivery-keys", { name: "forged" }],
  ["POST", "/api/folders", { name: "forged" }],
  ["POST", "/api/live/inputs", { name: "forged" }],
];

async function expectStatuses(page, calls, wanted) {
  for (const [method, path, body] of calls) {
    const { status } = await call(page, method, path, body);
    assert.equal(status, wanted, `${method} ${path}`);
  }
}

async function expectNoAdministration(page) {
  await visit(page, "/settings");
  const tabs = await page.locator("main .tabs a").allTextContents();
  assert.deepEqual(tabs, ["Account", "Delivery keys", "Usage and plan"]);
  for (const part of ["keys", "playback-keys"]) {
    await visit(page, `/settings/api/${part}?new`);
    await page.locator(".callout", { hasText: "Only administrators" }).waitFor();
    assert.equal(await page.locator("main .btn, dialog").count(), 0);
    await expectAccessible(page, `${part} without the right to`);
  }
  await page.keyboard.press("Control+k");
  await page.waitForSelector("dialog [role=option]");
  await page.keyboard.type("api key");
  await page.waitForFunction(
    () =>
      ![...document.querySelectorAll("dialog [role=option]")].some(({ textContent }) =>
        /new api key/i.test(textContent),
      ),
  );
  await page.keyboard.press("Escape");
  await expectStatuses(page, ADMIN_CALLS, 403);
}

journey("a member", { expected: [[403, /^\/api\//]] }, (step) => {
  step("works, and sees no keys of programs", async (page) => {
    await welcome(page, scene.member);
    await expectNoAdministration(page);
    await visit(page, "/settings/api/delivery-keys");
    await page.getByRole("button", { name: "New delivery key" }).waitFor();
    await expectStatuses(page, MEMBER_CALLS, 201);
    await visit(page, "/settings/account");
    await page.getByText("Member: works with").waitFor();
  });
});

journey("a viewer", { expected: [[403, /^\/api\//]] }, (step) => {
  step("looks, and is offered no change", async (page) => {
    await welcome(page, scene.viewer);
    await expectNoAdministration(page);
    await visit(page, "/settings/api/delivery-keys");
    await row(page, HOSTILE[0]).waitFor();
    const buttons = await page.locator("main .btn").evaluateAll((all) => all.map((each) => each.textContent));
    assert.deepEqual([...new Set(buttons)].filter(Boolean), ["Build an address"]);
    await expectStatuses(page, MEMBER_CALLS, 403);
    for (const [path, names] of [
      ["/live", ["New live input"]],
      ["/files", ["New folder", "Upload"]],
      ["/images/presets", ["New preset"]],
      ["/", ["New live input"]],
    ]) {
      await visit(page, path);
      for (const name of names)
        assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, `${name} at ${path}`);
    }
    await visit(page, "/settings/account");
    await page.getByText("Viewer: sees everything").waitFor();
    await expectAccessible(page, "account of a viewer");
  });
});

journey("secrets", {}, (step) => {
  step("are in no screen, the browser or the log", async (page) => {
    await signIn(page, "/", changed);
    await expectSecretsNowhere(page, secrets);
  });
});

journey("settings by touch", { width: 320, height: 640, hasTouch: true, isMobile: true }, (step) => {
  step("makes and revokes a key", async (page) => {
    await signIn(page, "/", changed);
    await page.tap(".phone button:has-text('More')");
    await page.tap("dialog a:has-text('Settings')");
    await page.tap("main .tabs a:has-text('Delivery keys')");
    await row(page, HOSTILE[0]).waitFor();
    await page.getByRole("button", { name: "New delivery key" }).tap();
    await page.fill("dialog [name=name]", "by touch");
    await page.getByRole("button", { name: "Make the key" }).tap();
    await page.getByRole("button", { name: "OK", exact: true }).tap();
    await closed(page);
    await page.getByRole("button", { name: "Revoke by touch" }).tap();
    await page.locator("dialog").getByRole("button", { name: "Revoke" }).tap();
    await row(page, "by touch").waitFor({ state: "detached" });
    const small = await page.evaluate(() =>
      [...document.querySelectorAll("main button, main .btn, main .tabs a")]
        .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 38)
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(small, [], "targets for fingers");
  });
});
