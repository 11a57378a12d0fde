// Workflows and their runs: a template, a photograph dropped and a stored one, the path on the graph and the other one, a run that
// fails, is mended and tried again, run again, cancelled; runs of all workflows by filters; versions compared and restored; a
// folder that starts runs, the secret, exported and imported; again by keyboard; hostile names; a viewer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { png } from "./pictures.mjs";
import {
  ask,
  call,
  choose,
  closed,
  copied,
  expectAccessible,
  expectSecretsNowhere,
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

/** What was shown once; nothing of it may be found at the end. */
const secrets = [];

const photo = (name, width, height) => ({ name, mimeType: "image/png", buffer: png(3, width, height) });
const wide = photo("beach.png", 1800, 1200);

/** Steps of half a second and more each: nearly as many as a workflow may have. They are not waited for. */
const SLOW_STEPS = 45;

/** Waits until the run that is shown has this status. */
const hasStatus = (page, status) => page.locator(".page-aside .tag", { hasText: status }).waitFor();
const stepNamed = (page, title) => page.locator(".run-step", { hasText: title });
const idOf = (page) => new URL(page.url()).pathname.split("/")[3];
const runRows = (page, count) =>
  page.waitForFunction((count) => document.querySelectorAll(".run-table tbody tr").length === count, count);

/** Runs the workflow that is shown on a file of this computer; its run's screen opens. */
async function runOn(page, file) {
  await press(page, "Run…");
  await page.waitForSelector("dialog .run-drop");
  await page.setInputFiles("dialog input[type=file]", file);
  await page.waitForURL(/\/app\/runs\//);
  await shown(page);
}

/** Makes a workflow by the API; returns its id. */
async function made(page, name, definition) {
  const { status, body } = await call(page, "POST", "/api/workflows", { name, definition });
  assert.equal(status, 201, JSON.stringify(body));
  secrets.push(body.workflow.webhookSecret);
  return body.workflow.id;
}

/** A definition of steps in a row. */
function chain(...steps) {
  const nodes = [["upload", "upload"], ...steps].map(([id, kind, config]) => ({
    id,
    data: { kind, config },
  }));
  const edges = nodes.slice(1).map(({ id }, i) => ({ source: nodes[i].id, target: id }));
  return { nodes, edges };
}

/** Stores a file; returns its id. */
const store = (page, name, bytes, folderId) =>
  page.evaluate(
    async ([name, bytes, folderId]) => {
      const { csrfToken } = await (await fetch("/api/session")).json();
      const form = new FormData();
      form.append("file", new File([new Uint8Array(bytes)], name, { type: "image/png" }));
      if (folderId) form.append("folderId", folderId);
      const headers = { "x-csrf-token": csrfToken };
      const answer = await (await fetch("/api/files", { method: "POST", headers, body: form })).json();
      return answer.file?.id ?? answer.files?.[0]?.id;
    },
    [name, [...bytes], folderId],
  );

// 404: the page may load what was just changed at the moment at which it is deleted.
const EXPECTED = [
  [400, /^\/api\/workflows$/],
  [404, /^\/api\/workflows\/[\w-]{36}$/],
];

journey("workflows and their runs", { expected: EXPECTED }, (step) => {
  let products;
  let mended;

  step("says what workflows are for, and offers templates", async (page) => {
    await signIn(page, "/runs");
    await page.waitForSelector(".empty");
    await visit(page, "/workflows");
    await page.waitForSelector(".empty");
    assert.equal(await page.locator(".workflow-template").count(), 3);
    await expectAccessible(page, "no workflows");
    await screenshots(page, "workflows-empty", { phone: false });
  });

  step("makes one by a template", async (page) => {
    await press(page, "Use this: Product photos");
    await page.waitForSelector("dialog input[name=name]");
    assert.equal(await page.inputValue("dialog input[name=name]"), "Product photos");
    assert.ok(await page.getByRole("radio", { name: /^Product photos/ }).isChecked());
    await expectAccessible(page, "a new workflow");
    await inDialog(page, "Make the workflow");
    await page.waitForURL(/\/app\/workflows\/./);
    await shown(page);
    products = idOf(page);
    const { workflow } = await ask(page, `/api/workflows/${products}`);
    assert.equal(workflow.definition.nodes.length, 6);
  });

  step("runs on a photograph, and draws the path it took and the other one", async (page) => {
    await runOn(page, wide);
    await hasStatus(page, "completed");
    const states = await page
      .locator(".run-step")
      .evaluateAll((steps) => steps.map((each) => /run-step-(\w+)/.exec(each.className)[1]));
    assert.deepEqual(states, ["done", "done", "done", "done", "done", "skipped"]);
    assert.match(await stepNamed(page, "Wider than 1200").innerText(), /true/);
    await page.getByText("beach-1200.webp").waitFor();
    const graph = page.getByRole("group", { name: /^The graph of the run/ });
    await graph.getByRole("button").nth(5).waitFor();
    assert.equal(await graph.getByRole("button").count(), 6);
    await graph.getByRole("button", { name: /To WebP/ }).click();
    await stepNamed(page, "To WebP").locator(".run-detail").waitFor();
    await page.locator(".run-step-skipped .run-step-head").click();
    await page
      .locator(".run-step-skipped .run-detail", {
        hasText: "the branch “Wider than 1200 pixels?” took the other path",
      })
      .waitFor();
    await expectAccessible(page, "a run");
    await screenshots(page, "run");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download" }).click(),
    ]);
    assert.match(readFileSync(await download.path(), "latin1").slice(0, 16), /^RIFF.{4}WEBP/s);
  });

  step("runs on a stored file, which takes the other path", async (page) => {
    await store(page, "narrow.png", png(4, 900, 600));
    await visit(page, `/workflows/${products}/runs`);
    await runRows(page, 1);
    await press(page, "Run…");
    await inDialog(page, "Choose a stored file");
    await page.locator("dialog .choose-file", { hasText: "narrow.png" }).click();
    await page.waitForURL(/\/app\/runs\//);
    await shown(page);
    await hasStatus(page, "completed");
    assert.match(await stepNamed(page, "Wider than 1200").innerText(), /false/);
    assert.match(await stepNamed(page, "For the product page").getAttribute("class"), /skipped/);
    await page.getByRole("link", { name: "narrow.png" }).waitFor();
  });

  step("counts runs on the graph, and at a step what it does", async (page) => {
    await visit(page, `/workflows/${products}/statistics`);
    const graph = page.getByRole("group", { name: /^The graph of the workflow/ });
    await graph.getByRole("button", { name: /For the product page.*1 run$/ }).waitFor();
    await graph.getByRole("button", { name: /Wider than 1200.*2 runs.*1 true, 1 false/ }).click();
    const facts = page.locator(".facts");
    await facts.filter({ hasText: /Condition.*width is greater than 1200.*Runs through it.*2/s }).waitFor();
    await graph.getByRole("button", { name: /For the product page/ }).click();
    await facts.filter({ hasText: /Resize width.*1200.*Failed.*0.*Skipped.*1/s }).waitFor();
    await expectAccessible(page, "counts of a workflow's runs");
    await screenshots(page, "workflow-statistics");
  });

  step("says which step failed, is mended, and continues there", async (page) => {
    const failing = chain(
      ["small", "resize", { resizeWidth: 100 }],
      ["page", "pdf_preview"],
      ["keep", "storage"],
    );
    mended = await made(page, "Mended", failing);
    await visit(page, `/workflows/${mended}`);
    await runOn(page, wide);
    await hasStatus(page, "failed");
    await page.locator(".run-step-failed .run-detail").waitFor();
    await expectAccessible(page, "a run that failed");
    await screenshots(page, "run-failed", { phone: false });
    const failed = idOf(page);
    await visit(page, `/workflows/${mended}/statistics`);
    await page.getByRole("button", { name: /Pdf preview.*1 run, 1 failed/i }).click();
    await page.getByRole("link", { name: "Failed runs" }).waitFor();
    await screenshots(page, "workflow-statistics-failed", { phone: false });
    await visit(page, `/runs/${failed}`);
    const saved = await call(page, "POST", "/api/workflows", {
      id: mended,
      definition: chain(
        ["small", "resize", { resizeWidth: 100 }],
        ["webp", "convert", { format: "webp" }],
        ["keep", "storage"],
      ),
    });
    assert.equal(saved.status, 200, JSON.stringify(saved.body));
    await page.getByText("now at version 2").waitFor();
    await page.locator(".callout").getByRole("button", { name: "Retry" }).click();
    await page.getByRole("menuitem", { name: "As it is now (version 2)" }).click();
    await hasStatus(page, "completed");
    await page.locator(".run-facts", { hasText: "version 2" }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".run-step-done").length === 4);
  });

  step("runs again on the same input", async (page) => {
    const first = idOf(page);
    await press(page, "Run again");
    await page.waitForURL((url) => /\/app\/runs\//.test(url.pathname) && !url.pathname.endsWith(first));
    await shown(page);
    await hasStatus(page, "completed");
    await page.locator(".run-facts", { hasText: "beach.png" }).waitFor();
    await page.getByRole("link", { name: "an earlier run" }).click();
    await page.waitForURL((url) => url.pathname.endsWith(first));
  });

  step("follows a run that is worked on and one that waits, and cancels both", async (page) => {
    // Long enough to be met while it runs; it ends after the step that is worked on.
    const steps = Array.from({ length: SLOW_STEPS }, (_, i) => {
      const resizeWidth = i % 2 ? 2500 : 3000;
      return [`avif ${i}`, "convert", { format: "avif", resizeWidth }];
    });
    const id = await made(page, "Slow", chain(...steps));
    const drawing = (colour) => ({
      name: `${colour}.svg`,
      mimeType: "image/svg+xml",
      buffer: Buffer.from(
        `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300"><rect width="400" height="300" fill="${colour}"/></svg>`,
      ),
    });
    await visit(page, `/workflows/${id}`);
    await runOn(page, drawing("red"));
    const first = idOf(page);
    await visit(page, `/workflows/${id}`);
    await runOn(page, drawing("blue"));
    await hasStatus(page, "waiting");
    await page.locator(".run-working progress, .run-working .soft").waitFor();
    for (const run of [idOf(page), first]) {
      await visit(page, `/runs/${run}`);
      await press(page, "Cancel the run");
      await page.waitForSelector("dialog");
      await inDialog(page, "Cancel the run");
      await closed(page);
      await hasStatus(page, "cancelled");
    }
    await page.locator(".callout").getByRole("button", { name: "Retry" }).waitFor();
  });

  step("finds runs of all workflows, and keeps the search over a reload", async (page) => {
    await visit(page, "/runs");
    await runRows(page, 6);
    await expectAccessible(page, "all runs");
    await screenshots(page, "runs");
    const status = (name) => page.locator(".choice label", { hasText: name }).click();
    await status("cancelled 2");
    await runRows(page, 2);
    await status("any");
    await page.selectOption("select[name=workflow]", products);
    await runRows(page, 2);
    await page.fill("input[type=search]", "narrow");
    await runRows(page, 1);
    // The names of workflows come after the runs
    let letThrough;
    const isLate = new Promise((resolve) => {
      letThrough = resolve;
    });
    await page.route("**/api/workflows?*", (route) => isLate.then(() => route.continue()));
    await page.reload();
    await shown(page);
    await runRows(page, 1);
    assert.equal(await page.inputValue("select[name=workflow]"), products);
    letThrough();
    await page.waitForFunction(
      () => document.querySelector("select[name=workflow]")?.selectedOptions[0]?.text === "Product photos",
    );
    await page.unroute("**/api/workflows?*");
    await page.selectOption("select[name=trigger]", "folder");
    await page.getByText("No runs match.").waitFor();
  });

  step("compares versions and restores one", async (page) => {
    await visit(page, `/workflows/${mended}/versions`);
    const changes = page.locator(".differences li");
    await changes
      .filter({ hasText: /removed.*PDF preview/s })
      .first()
      .waitFor();
    await changes
      .filter({ hasText: /added.*Convert/s })
      .first()
      .waitFor();
    await expectAccessible(page, "the difference of two versions");
    await screenshots(page, "workflow-versions", { phone: false });
    await page.locator(".versions .menu-item").nth(1).click();
    await press(page, "Restore");
    await inDialog(page, "Restore");
    await closed(page);
    await page.locator(".page-aside", { hasText: "version 3" }).waitFor();
    const { workflow } = await ask(page, `/api/workflows/${mended}`);
    assert.ok(workflow.definition.nodes.some(({ data }) => data.kind === "pdf_preview"));
  });

  step("is renamed, started by a folder, and has another secret", async (page) => {
    await visit(page, `/workflows/${products}/settings`);
    await page.fill("input[name=name]", "Photos of products");
    await press(page, "Save");
    await page.locator("h1", { hasText: "Photos of products" }).waitFor();
    await press(page, "Choose a folder");
    await page.fill("dialog input[type=search]", "From suppliers");
    await inDialog(page, "Make the folder “From suppliers”");
    await page.getByRole("link", { name: "Open the folder" }).waitFor();
    await expectAccessible(page, "settings of a workflow");
    await screenshots(page, "workflow-settings", { phone: false });
    const { workflow } = await ask(page, `/api/workflows/${products}`);
    await store(page, "supplied.png", png(5, 300, 200), workflow.definition.trigger.folderId);
    await press(page, "New secret");
    await inDialog(page, "Make a new secret");
    await page.waitForSelector("dialog .copy-field");
    const secret = await copied(page, "Copy Secret");
    assert.match(secret, /^whsec_/);
    secrets.push(secret);
    await inDialog(page, "I have kept it");
    await closed(page);
    await visit(page, `/workflows/${products}/runs`);
    await page.locator(".run-table tr", { hasText: /supplied\.png.*completed.*folder/s }).waitFor();
  });

  step("is paused and resumed in the list, which shows how its runs went", async (page) => {
    await visit(page, "/workflows");
    const row = (name) => page.locator("tbody tr", { hasText: name });
    await row("Photos of products").getByText("none failed").waitFor();
    await expectAccessible(page, "workflows");
    await screenshots(page, "workflows");
    await row("Slow").getByRole("switch").click();
    await row("Slow").locator(".btn[aria-disabled=true]", { hasText: "Run…" }).waitFor();
    await until(page, async () => {
      const { workflows } = await (await fetch("/api/workflows")).json();
      return workflows.find(({ name }) => name === "Slow").isActive === false;
    });
    await row("Slow").getByRole("switch").click();
    await row("Slow").locator(".btn:not([aria-disabled])", { hasText: "Run…" }).waitFor();
  });

  step("is exported, imported, duplicated and deleted", async (page) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      choose(page, "Actions: Photos of products", "Export as JSON"),
    ]);
    assert.equal(download.suggestedFilename(), "photos-of-products.json");
    const text = readFileSync(await download.path(), "utf8");
    await press(page, "Import");
    await page.fill("dialog textarea", "{");
    await inDialog(page, "Import");
    await page.locator("dialog .field-error", { hasText: "not valid JSON" }).waitFor();
    const wrong = { nodes: [{ id: "a", data: { kind: "nothing" } }], edges: [] };
    await page.fill("dialog textarea", JSON.stringify(wrong));
    await inDialog(page, "Import");
    await page.locator("dialog", { hasText: "nothing" }).locator(".field-error, .callout-bad").waitFor();
    await page.setInputFiles("dialog input[type=file]", {
      name: "a.json",
      mimeType: "application/json",
      buffer: Buffer.from(text),
    });
    await page.waitForFunction(
      () => document.querySelector("dialog input[name=name]")?.value === "Photos of products",
    );
    await page.fill("dialog input[name=name]", "Imported");
    await expectAccessible(page, "importing");
    await inDialog(page, "Import");
    await page.waitForURL(/\/app\/workflows\/./);
    await shown(page);
    const { workflow } = await ask(page, `/api/workflows/${idOf(page)}`);
    assert.deepEqual(workflow.definition, JSON.parse(text).definition);
    await choose(page, "Actions", "Duplicate");
    await inDialog(page, "Duplicate");
    await page.locator("h1", { hasText: "Imported (copy)" }).waitFor();
    await page.locator(".page-aside", { hasText: "paused" }).waitFor();
    await choose(page, "Actions", "Delete");
    await inDialog(page, "Delete");
    await page.waitForURL(/\/app\/workflows$/);
    await page.locator("tbody tr", { hasText: "(copy)" }).waitFor({ state: "detached" });
    await page.locator("tbody tr", { hasText: "Imported" }).waitFor();
  });
});

journey("workflows by keyboard", {}, (step) => {
  const enter = async (page, selector) => {
    await tabTo(page, selector);
    await page.keyboard.press("Enter");
  };

  step("makes one, runs it on a stored file and reads its log", async (page) => {
    await signIn(page, "/workflows");
    await page.waitForSelector("tbody tr");
    await enter(page, ".page-actions .btn-solid");
    await page.waitForFunction(() => document.activeElement.name === "name");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/app\/workflows\/./);
    await shown(page);
    await page.waitForFunction(() => document.activeElement.tagName === "H1");
    await enter(page, ".page-actions .btn-solid");
    await page.waitForSelector("dialog .run-drop");
    await enter(page, "dialog .run-drop .btn-plain");
    await page.waitForFunction(() => document.querySelectorAll("dialog .choose-file").length > 0);
    await page.keyboard.type("narrow.png");
    await page.waitForFunction(() => document.querySelectorAll("dialog .choose-file").length === 1);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/app\/runs\//);
    await shown(page);
    await hasStatus(page, "completed");
    await enter(page, ".run-step-head");
    await page.waitForSelector(".run-step .run-detail");
    await page.waitForFunction(() => document.activeElement.getAttribute("aria-expanded") === "true");
  });
});

journey("workflows with hostile names", {}, (step) => {
  step("show them as text", async (page) => {
    await signIn(page, "/workflows");
    for (const text of HOSTILE) {
      const name = text.slice(0, 80);
      const definition = chain(["small", "resize", { resizeWidth: 64 }], ["keep", "storage"]);
      definition.nodes[1].data.title = text;
      const id = await made(page, name, definition);
      await visit(page, `/workflows/${id}`);
      await runOn(page, { ...wide, name: `${text.replaceAll(/[/\\]/g, "").slice(0, 120)}.png` });
      await hasStatus(page, "completed");
    }
    await expectAccessible(page, "a run with a hostile name");
    await visit(page, "/runs");
    await page.waitForSelector(".run-table");
    await expectAccessible(page, "runs with hostile names");
    await visit(page, "/workflows");
    await page.waitForSelector("tbody tr");
    await expectAccessible(page, "workflows with hostile names");
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  });
});

journey("workflows of a viewer", { expected: [[403, /^\/api\/workflows/]] }, (step) => {
  step("are looked at, and a forged call is refused", async (page) => {
    await page.goto(scene.viewer);
    await page.fill("input[name=newPassword]", "only looking here");
    await page.click("button[type=submit]");
    await shown(page);
    await visit(page, "/workflows");
    await page.waitForSelector("tbody tr");
    assert.ok(await page.getByRole("switch").first().isDisabled());
    for (const name of ["New workflow", "Import"])
      assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    const { runs } = await ask(page, "/api/workflows/runs?limit=1");
    const [{ id: run, workflowId }] = runs;
    await visit(page, `/runs/${run}`);
    await page.waitForSelector(".run-step");
    assert.equal(await page.getByRole("button", { name: "Run again" }).count(), 0);
    await expectAccessible(page, "a run of a viewer");
    await visit(page, `/workflows/${workflowId}/settings`);
    await page.getByText("Only members and admins").waitFor();
    for (const [method, path, body] of [
      ["POST", "/api/workflows", { name: "x", outputFormat: "webp" }],
      ["PATCH", `/api/workflows/${workflowId}`, { isActive: false }],
      ["POST", `/api/workflows/${workflowId}/rotate-secret`],
      ["POST", `/api/workflows/runs/${run}/retry`, { version: "ran" }],
      ["POST", `/api/workflows/runs/${run}/cancel`],
      ["POST", `/api/workflows/${workflowId}/runs/${run}/rerun`, { version: "ran" }],
      ["DELETE", `/api/workflows/${workflowId}`],
    ]) {
      const { status, body: answer } = await call(page, method, path, body);
      assert.equal(status, 403, `${method} ${path}`);
      assert.match(answer.error, /member or admin/);
    }
  });

  step("has no secret in any screen, the browser or the log", async (page) => {
    await expectSecretsNowhere(page, secrets);
  });
});
