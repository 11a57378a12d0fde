// Settings: a person is invited, joins, gets another role and a link for a new password, and is removed, which ends their
// session at once; the audit log has all of it and no code; what a viewer is answered; hostile names.
import assert from "node:assert/strict";
import { after } from "node:test";
import { openChromium } from "../chromium.mjs";
import {
  ask,
  call,
  choose,
  closed,
  copied,
  expectAccessible,
  expectNoSecrets,
  HOSTILE,
  inDialog,
  journey,
  PATIENCE_MS,
  press,
  screenshots,
  shown,
  signIn,
  tabTo,
  visit,
} from "./support.mjs";

const ANN = { username: "ann", password: "a password of ann" };
/** Links that were shown once. */
const secrets = [ANN.password];
let elsewhere;
after(() => elsewhere?.close());

const row = (page, text) => page.locator("tbody tr", { hasText: text });
const code = (link) => link.split("#")[1];

/** Takes the link from the dialog that shows it once. */
async function takeLink(page, name) {
  await page.waitForSelector("dialog .copy-field");
  const link = await copied(page, `Copy ${name}`);
  assert.match(link, /\/app\/(join|welcome)#([2-9A-Z]{4}-?){5}$/);
  secrets.push(code(link));
  await inDialog(page, "I have kept it");
  await closed(page);
  return link;
}

/** Fills in the page on which an invited person joins. */
async function join(page, { username, password }) {
  await page.fill("input[name=name]", username);
  await page.fill("input[name=password]", password);
  await page.click("button[type=submit]");
}

journey(
  "members",
  {
    expected: [
      [401, /^\/api\//],
      [403, /^\/api\//],
      [409, /^\/api\/(users|invitations)/],
      [410, /^\/api\/invitations/],
    ],
  },
  (step, at) => {
    let link;

    step("teaches what invitations are for, and makes one by keyboard", async (page) => {
      await signIn(page, "/settings/members/invitations");
      await page.waitForSelector(".empty");
      await expectAccessible(page, "no invitations");
      await page.keyboard.press("Control+k");
      await page.waitForSelector("dialog [role=option]");
      await page.keyboard.type("invite someone");
      await page.waitForFunction(() => document.querySelectorAll("dialog [role=option]").length === 1);
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.activeElement.name === "note");
      await expectAccessible(page, "the dialog of an invitation");
      await page.keyboard.type("Ann, accounting");
      await page.keyboard.press("Tab");
      await page.keyboard.press("ArrowUp");
      await tabTo(page, "dialog [type=submit]");
      await page.keyboard.press("Enter");
      link = await takeLink(page, "Invitation link");
      await row(page, "Ann, accounting").getByText("Viewer").waitFor();
      await expectNoSecrets(page, secrets);
    });

    step("lets the person join, once", async (page) => {
      elsewhere = await openChromium();
      elsewhere.page.setDefaultTimeout(PATIENCE_MS);
      at.watch(elsewhere.page);
      const other = elsewhere.page;
      await other.goto(link);
      await other.getByText("as a viewer").waitFor();
      assert.equal(await other.evaluate(() => location.hash), "", "the code has left the address");
      await expectAccessible(other, "joining");
      await screenshots(other, "join", { phone: false });
      await join(other, { ...ANN, username: "admin" });
      await other.waitForSelector(".callout-bad");
      await expectAccessible(other, "a name that is taken");
      await join(other, ANN);
      await shown(other);
      await other.locator(".top-user-name", { hasText: "ann" }).waitFor();
      await visit(other, "/settings");
      const tabs = await other.locator("main .tabs a").allTextContents();
      assert.deepEqual(tabs, ["Account", "Delivery keys", "Usage and plan"]);
      for (const part of ["members", "members/invitations", "audit"]) {
        await visit(other, `/settings/${part}`);
        await other.locator(".callout", { hasText: "Only administrators" }).waitFor();
      }
      await expectAccessible(other, "members without the right to");
      for (const [method, path, body] of [
        ["GET", "/api/users"],
        ["GET", "/api/audit"],
        ["POST", "/api/invitations", { role: "admin" }],
      ])
        assert.equal((await call(other, method, path, body)).status, 403);
      await row(page, "Ann, accounting").getByText("ann joined").waitFor();
      await page.goto(link);
      await page.locator(".callout", { hasText: "was used already" }).waitFor();
      await expectAccessible(page, "an invitation that was used");
    });

    step("revokes an invitation: its link is no longer accepted", async (page) => {
      await visit(page, "/settings/members/invitations");
      await press(page, "Invite");
      await page.fill("dialog [name=note]", HOSTILE[0]);
      await inDialog(page, "Make the link");
      const revoked = await takeLink(page, "Invitation link");
      await row(page, HOSTILE[0]).waitFor();
      await expectAccessible(page, "invitations");
      await screenshots(page, "settings-invitations");
      await row(page, HOSTILE[0]).getByRole("button").click();
      await page.getByRole("menuitem", { name: "Show as curl" }).click();
      await page.waitForSelector("dialog:has-text('/api/invitations')");
      await page.keyboard.press("Escape");
      await closed(page);
      await row(page, HOSTILE[0]).getByRole("button").click();
      await page.getByRole("menuitem", { name: "Revoke" }).click();
      await inDialog(page, "Revoke");
      await row(page, HOSTILE[0]).waitFor({ state: "detached" });
      const answer = await call(page, "POST", "/api/invitations/look", { code: code(revoked) });
      assert.equal(answer.status, 410);
    });

    step("gives another role, and keeps the last admin", async (page) => {
      await visit(page, "/settings/members");
      await expectAccessible(page, "members");
      await screenshots(page, "settings-members");
      await choose(page, "Actions for admin", "Change role");
      await page.locator("dialog").getByText("The last admin keeps the role").waitFor();
      assert.equal(await page.locator("dialog [name=role]").count(), 0);
      await page.keyboard.press("Escape");
      await closed(page);
      const users = (await ask(page, "/api/users")).users;
      const admin = users.find(({ name }) => name === "admin");
      const rejected = await call(page, "DELETE", `/api/users/${admin.id}`);
      assert.equal(rejected.status, 409);
      await choose(page, "Actions for ann", "Change role");
      await page.locator("dialog label", { hasText: "Works with files" }).click();
      await expectAccessible(page, "the dialog of a role");
      await inDialog(page, "Save");
      await closed(page);
      await row(page, "ann").getByText("Member", { exact: true }).waitFor();
      const made = await call(elsewhere.page, "POST", "/api/folders", { name: "by a member" });
      assert.equal(made.status, 201, "the new role counts in the session that is there");
    });

    step("makes a link for a new password", async (page) => {
      await choose(page, "Actions for ann", "New password link");
      await inDialog(page, "Make the link");
      const welcome = await takeLink(page, "Link for a new password");
      await elsewhere.page.goto("about:blank");
      await elsewhere.page.goto(welcome);
      ANN.password = "another one of ann";
      secrets.push(ANN.password);
      await elsewhere.page.fill("input[name=newPassword]", ANN.password);
      await elsewhere.page.click("button[type=submit]");
      await shown(elsewhere.page);
    });

    step("removes the member, whose session ends at once", async (page) => {
      await choose(page, "Actions for ann", "Remove");
      await page.waitForSelector("dialog");
      await expectAccessible(page, "removing a member");
      await inDialog(page, "Remove");
      await row(page, "ann").waitFor({ state: "detached" });
      assert.equal(await elsewhere.page.evaluate(async () => (await fetch("/api/session")).status), 401);
      await elsewhere.page.locator("dialog", { hasText: "Your session is over" }).waitFor();
    });

    step("has all of it in the audit log, and no code", async (page) => {
      await visit(page, "/settings/audit");
      for (const action of [
        "User: removed",
        "User: password set",
        "User: reset link made",
        "Folder: created",
        "User: changed",
        "Invitation: revoked",
        "Invitation: used",
        "Invitation: created",
      ])
        await page
          .locator("tbody th", { hasText: new RegExp(`^${action}$`) })
          .first()
          .waitFor();
      await row(page, "by a member").getByText("ann").first().waitFor();
      assert.match(
        await row(page, "by a member").getByRole("link").getAttribute("href"),
        /\/files\/[0-9a-f-]{36}$/,
      );
      await expectAccessible(page, "the audit log");
      await screenshots(page, "settings-audit");
      await expectNoSecrets(page, secrets);
      await page.getByLabel("What", { exact: true }).selectOption("invitation.");
      await page.waitForFunction(
        () =>
          document.querySelectorAll("tbody tr").length > 0 &&
          [...document.querySelectorAll("tbody th")].every((cell) => /^Invitation/.test(cell.textContent)),
      );
      await page.getByLabel("What", { exact: true }).selectOption("share.");
      await page.getByText("Nothing was changed that fits").waitFor();
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
    });
  },
);

journey("members by touch", { width: 320, height: 640, hasTouch: true, isMobile: true }, (step) => {
  step("shows members as cards with targets for fingers", async (page) => {
    await signIn(page, "/settings/members");
    await row(page, "admin").waitFor();
    const small = await page.evaluate(() =>
      [...document.querySelectorAll("main button, main .btn, main .tabs a")]
        .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 38)
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(small, []);
  });
});
