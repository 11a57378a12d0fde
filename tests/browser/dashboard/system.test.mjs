// The installation as an operator sees it: a killed worker, a locked database and a full disk are on the screen and in the banner
// above every screen, and gone after; workers, storage, log, doctor, settings, accounts, backup, nodes; to others it is not there.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { after } from "node:test";
import {
  ask,
  call,
  closed,
  expectAccessible,
  expectNoSecrets,
  HOSTILE,
  inDialog,
  journey,
  press,
  scene,
  screenshots,
  shown,
  signIn,
  tabTo,
  until,
  visit,
} from "./support.mjs";

const BANNER = ".banner-place[role=status] .banner";
const banner = (page, text) => page.locator(BANNER, { hasText: text });
const callout = (page, text) => page.locator("main .callout", { hasText: text });
const row = (page, text) => page.locator("tbody tr", { hasText: text });

/** Waits for a message in the banner, and on the screen when it is System; prints how long it took. */
async function appears(page, what, begun) {
  await banner(page, what).waitFor();
  await callout(page, what).first().waitFor();
  console.log(`# ${what}: shown after ${((Date.now() - begun) / 1_000).toFixed(1)} s`);
}

async function passes(page, what) {
  await banner(page, what).waitFor({ state: "detached" });
  await callout(page, what).first().waitFor({ state: "detached" });
}

/** The image workers of the service under test. */
function workers() {
  const parent = (process) => {
    try {
      const stat = readFileSync(`/proc/${process}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    } catch {
      return 0;
    }
  };
  const command = (process) => {
    try {
      return readFileSync(`/proc/${process}/cmdline`, "utf8").split("\0");
    } catch {
      return [];
    }
  };
  return readdirSync("/proc")
    .map(Number)
    .filter((process) => parent(process) === scene.process)
    .filter((process) => command(process)[1] === "worker" && !command(process).includes("--av-registry"));
}

const LOCK = `import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
database.execute('BEGIN EXCLUSIVE')
print('locked', flush=True)
sys.stdin.read()`;

/** Locks the database for writers; returns what ends that. */
function lockDatabase() {
  const holder = spawn("python3", ["-c", LOCK, `${scene.dataDir}/sluice.db`]);
  after(() => holder.kill());
  return new Promise((resolve, reject) => {
    holder.on("error", reject);
    holder.stdout.once("data", () => resolve(() => holder.stdin.end()));
  });
}

/** Takes all space that is left on the disk of the data folder. */
function fillDisk() {
  const path = `${scene.dataDir}/ballast`;
  const file = openSync(path, "w");
  const block = Buffer.alloc(1 << 16);
  try {
    while (writeSync(file, block) === block.length);
  } catch (error) {
    assert.equal(error.code, "ENOSPC");
  }
  closeSync(file);
  return () => rmSync(path);
}

// Changes are answered 503 while the database is locked and 507 when the disk is full: uses of the session among them.
const expected = [
  [503, /^\/api\//],
  [507, /^\/api\//],
];

journey("An operator and the installation", { expected }, (step) => {
  step("sees the state of the installation, and its version under the places", async (page) => {
    await signIn(page, "/system");
    await callout(page, "Everything is well").waitFor();
    const { version, listeners, components } = await ask(page, "/api/system");
    await page.locator(".side-status", { hasText: `Sluice ${version}` }).waitFor();
    assert.equal(await page.locator(".side-nav a[aria-current]").innerText(), "System");
    for (const { name } of components) await row(page, name).first().waitFor();
    const rtmp = listeners.find(({ protocol }) => protocol === "rtmp");
    await row(page, rtmp.address).waitFor();
    await expectAccessible(page, "health");
    await screenshots(page, "system-health");
  });

  step("sees a worker that was killed, which is replaced", async (page) => {
    const [killed] = workers();
    assert.ok(killed, "there is an image worker");
    const before = await ask(page, "/api/system");
    const begun = Date.now();
    process.kill(killed, "SIGKILL");
    await appears(page, "image workers", begun);
    const now = await ask(page, "/api/system");
    assert.equal(now.workers[0].died, before.workers[0].died + 1);
    await until(
      page,
      async (running) => (await (await fetch("/api/system")).json()).workers[0].running === running,
      before.workers[0].running,
    );
    assert.ok(!workers().includes(killed));
  });

  step("sees a database that is locked, on every screen", async (page) => {
    await visit(page, "/live");
    const begun = Date.now();
    const release = await lockDatabase();
    await banner(page, "database").waitFor();
    console.log(`# database: shown after ${((Date.now() - begun) / 1_000).toFixed(1)} s`);
    await page.locator(".banner a", { hasText: "System" }).click();
    await callout(page, "The database takes no changes").waitFor();
    await expectAccessible(page, "a locked database");
    await screenshots(page, "system-locked", { phone: false });
    release();
    await passes(page, "database");
  });

  step("sees a full disk and what fills it", async (page) => {
    if (!scene.isSmallDisk) return;
    await visit(page, "/system/storage");
    const begun = Date.now();
    const free = fillDisk();
    await banner(page, "disk").waitFor();
    console.log(`# disk: shown after ${((Date.now() - begun) / 1_000).toFixed(1)} s`);
    await callout(page, "uploads and jobs wait").waitFor();
    free();
    await banner(page, "disk").waitFor({ state: "detached" });
    await callout(page, "uploads and jobs wait").waitFor({ state: "detached" });
  });

  step("sees that all of it has passed", async (page) => {
    await visit(page, "/system");
    await passes(page, "image workers");
    await callout(page, "Everything is well").waitFor();
    assert.equal(await page.locator(BANNER).count(), 0);
  });

  step("sees storage, workers, backup and nodes", async (page) => {
    await visit(page, "/system/storage");
    await row(page, "database").waitFor();
    await page.getByText("the setting store.objects_url is empty").waitFor();
    await expectAccessible(page, "storage");
    await screenshots(page, "system-storage", { phone: false });
    await visit(page, "/system/workers");
    await row(page, "Images").waitFor();
    await row(page, "workflow runs").waitFor();
    await expectAccessible(page, "workers");
    await visit(page, "/system/backup");
    await callout(page, "No backup is known").waitFor();
    await expectAccessible(page, "backup");
    await visit(page, "/system/nodes");
    await row(page, "This one").waitFor();
    await expectAccessible(page, "nodes");
  });

  step("reads the log, by level and words, while it grows", async (page) => {
    await visit(page, "/system/log");
    const line = (text) => page.locator(".log-line", { hasText: text });
    await line("an image worker ended").first().waitFor();
    await line("the database takes no changes").first().waitFor();
    await expectAccessible(page, "log");
    await screenshots(page, "system-log");
    await page.selectOption("select[name=level]", "error");
    await line("ready").first().waitFor({ state: "detached" });
    await line("the database takes no changes").first().waitFor();
    await page.fill("input[name=find]", "no such words");
    await page.getByText("No line has these words.").waitFor();
    await page.fill("input[name=find]", "");
    await page.selectOption("select[name=level]", "info");
    await line("ready").first().waitFor();
    assert.equal(await line("/api/audit").count(), 0);
    await ask(page, "/api/audit");
    await line("/api/audit").waitFor();
  });

  step("runs the doctor", async (page) => {
    await visit(page, "/system/doctor");
    await press(page, "Run the checks");
    await page.locator(".finding", { hasText: "image workers" }).waitFor();
    await page.locator(".finding", { hasText: "held by the running service" }).first().waitFor();
    await expectAccessible(page, "doctor");
    await screenshots(page, "system-doctor");
  });

  step("finds a setting and where it comes from", async (page) => {
    await visit(page, "/system/settings");
    await page.fill("input[name=find]", "admin_password");
    const setting = row(page, "bootstrap.admin_password");
    await setting.locator("text=SLUICE_BOOTSTRAP__ADMIN_PASSWORD").waitFor();
    assert.match(await setting.innerText(), /••••/);
    await page.fill("input[name=find]", "");
    await page.getByLabel("Only what differs from the defaults").click();
    await row(page, "http.listen").waitFor();
    await row(page, "http.max_json").waitFor({ state: "detached" });
    await expectAccessible(page, "settings");
    await expectNoSecrets(page);
    await screenshots(page, "system-settings", { phone: false });
  });

  step("makes an account with its first user, by keyboard, and changes its plan", async (page) => {
    await visit(page, "/system/accounts");
    await tabTo(page, "main .toolbar button");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.type(HOSTILE[0]);
    await page.keyboard.press("Tab");
    await page.keyboard.type("free");
    await page.keyboard.press("Tab");
    await page.keyboard.type("Shopkeeper");
    await page.keyboard.press("Enter");
    const link = page.locator("dialog .copy-field input");
    await link.waitFor();
    const address = await link.inputValue();
    assert.match(address, /\/app\/welcome#/);
    await inDialog(page, "I have kept it");
    await closed(page);
    const made = row(page, HOSTILE[0]);
    await made.locator("td", { hasText: "free" }).waitFor();
    await made.getByRole("button").click();
    await page.getByRole("menuitem", { name: "Change plan" }).click();
    await page.selectOption("dialog select[name=plan]", "pro");
    await inDialog(page, "Save");
    await closed(page);
    await made.locator("td", { hasText: "pro" }).waitFor();
    await expectAccessible(page, "accounts");
    await screenshots(page, "system-accounts", { phone: false });
    const { entries } = await ask(page, "/api/audit?action=account.");
    assert.deepEqual(
      entries.map(({ action }) => action),
      ["account.plan_changed", "account.created"],
    );
    await expectNoSecrets(page, [address.split("#")[1]]);
  });
});

journey("An admin who is no operator", { expected: [[404, /^\/api\/system/]] }, (step) => {
  step("sees no system, and no API of it", async (page) => {
    await page.goto(scene.boss);
    await page.fill("input[name=newPassword]", "only my own account");
    await page.click("button[type=submit]");
    await shown(page);
    assert.equal(await page.locator(".side-nav", { hasText: "System" }).count(), 0);
    await visit(page, "/system");
    await callout(page, "Only operators").waitFor();
    for (const path of ["", "/log", "/doctor", "/settings", "/accounts"])
      assert.equal((await call(page, "GET", `/api/system${path}`)).status, 404, path);
    const post = await call(page, "POST", "/api/system/accounts", { name: "mine" });
    assert.equal(post.status, 404);
  });
});
