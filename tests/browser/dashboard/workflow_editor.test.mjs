// The editor of workflows: the guide's workflow built from nothing in the outline by keyboard alone, and again on the canvas by
// mouse, to equal definitions; lint while one types; undo; unsaved changes; saves that cross; conditions in groups; a dry run;
// fifty steps; hostile names; a phone by touch.
import assert from "node:assert/strict";
import {
  ask,
  call,
  closed,
  expectAccessible,
  expectNoSecrets,
  focused,
  HOSTILE,
  inDialog,
  journey,
  PATIENCE_MS,
  press,
  scene,
  screenshots,
  shown,
  signIn,
  tabTo,
  typeChoice,
  until,
  visit,
} from "./support.mjs";

const NOTHING = { nodes: [{ id: "upload", data: { kind: "upload" } }], edges: [] };

/** The guide's workflow ("Product photos"), with the ids that the editor gives. */
const GUIDE = {
  nodes: [
    { id: "upload", data: { kind: "upload" } },
    { id: "branch", data: { kind: "branch", title: "Wider than 1200 pixels?" } },
    { id: "resize", data: { kind: "resize", title: "For the product page", config: { resizeWidth: 1200 } } },
    { id: "resize-2", data: { kind: "resize", title: "For the list", config: { resizeWidth: 800 } } },
    { id: "convert", data: { kind: "convert", config: { format: "webp", compression: 82 } } },
    { id: "storage", data: { kind: "storage", title: "Into the shop's folder" } },
    { id: "webhook", data: { kind: "webhook", title: "Tell the shop" } },
  ],
  edges: [
    { source: "upload", target: "branch" },
    { source: "branch", target: "resize", kind: "true" },
    { source: "branch", target: "resize-2", kind: "false" },
    { source: "resize", target: "convert" },
    { source: "resize-2", target: "convert" },
    { source: "convert", target: "storage" },
    { source: "storage", target: "webhook" },
  ],
  uploadGate: { logic: "and", conditions: [{ field: "mime", operator: "starts_with", value: "image/" }] },
  branchConditions: {
    branch: { logic: "and", conditions: [{ field: "width", operator: "gt", value: 1200 }] },
  },
  renamePattern: "{original}-{width}",
  webhookUrl: "http://127.0.0.1:9000/",
};

/** Ids of the workflows that were made, by name. */
const made = {};

async function make(page, name, definition = NOTHING) {
  const { status, body } = await call(page, "POST", "/api/workflows", { name, definition });
  assert.equal(status, 201, JSON.stringify(body));
  made[name] = body.workflow.id;
  return body.workflow;
}

const stored = async (page, name) => (await ask(page, `/api/workflows/${made[name]}`)).workflow;

async function edit(page, name) {
  await visit(page, `/workflows/${made[name]}`);
  await page.waitForSelector(".workflow-toolbar");
}

const state = (page, text) =>
  page.waitForFunction(
    (text) => document.querySelector(".workflow-state")?.textContent.startsWith(text),
    text,
  );
const saved = async (page) => {
  await page.keyboard.press("Control+s");
  await state(page, "Saved");
};

const titles = (page) => page.locator(".outline-title").allInnerTexts();
const panel = (page) => page.locator(".workflow-panel");
const field = (page, label) => panel(page).getByLabel(label, { exact: true });
const heading = (page, text) =>
  page.waitForFunction((text) => document.querySelector(".workflow-panel h2")?.textContent === text, text);

/** The step with the focus, as its title. */
const atStep = (page, title) =>
  page.waitForFunction(
    (title) => document.activeElement.querySelector?.(".outline-title")?.textContent === title,
    title,
  );

/** Takes a kind in the open dialog by typing its name. */
async function take(page, kind) {
  await page.waitForSelector("dialog[open] .pick-option");
  await page.keyboard.type(kind);
  await page.keyboard.press("Enter");
  await closed(page);
  await page.waitForFunction(
    (kind) => document.querySelector(".workflow-panel h2")?.textContent.toLowerCase() === kind,
    kind,
  );
}

/** By keyboard: a step of this kind after the one that has the focus, which it has then. */
async function addByKey(page, kind) {
  await page.keyboard.press("a");
  await take(page, kind);
  await page.waitForFunction(
    (kind) => document.activeElement.querySelector?.(".outline-title")?.textContent.toLowerCase() === kind,
    kind,
  );
}

/** By keyboard, within the fields of a step: Tab to the field, then what is typed in place of what is there. */
async function fill(page, name, text) {
  await tabTo(page, `.workflow-panel [name="${name}"]`);
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
}

const leaveFields = (page) => page.keyboard.press("Escape");

/** The arrow keys to the step with this title. */
async function arrowTo(page, title, key = "ArrowDown") {
  for (let i = 0; i < 60; i++) {
    const now = await page.evaluate(
      () => document.activeElement.querySelector?.(".outline-title")?.textContent,
    );
    if (now === title) return;
    await page.keyboard.press(key);
  }
  assert.fail(`no step ${title}`);
}

/** A workflow with an error is not saved, and a save that crosses another one is asked about. */
const REFUSED = [400, 409].map((status) => [status, /\/api\/workflows$/]);

journey("Editor of workflows", { expected: REFUSED }, (step, at) => {
  step("builds the guide's workflow from nothing, by keyboard alone", async (page) => {
    await signIn(page, "/workflows");
    await make(page, "By outline");
    await edit(page, "By outline");
    await tabTo(page, ".outline-button");
    await atStep(page, "Upload");
    await addByKey(page, "convert");
    await addByKey(page, "storage");
    await addByKey(page, "webhook");
    await arrowTo(page, "Upload", "ArrowUp");
    await addByKey(page, "branch");
    assert.deepEqual(await titles(page), ["Upload", "Branch", "Convert", "Storage", "Webhook"]);
    await addByKey(page, "resize");
    await arrowTo(page, "Branch", "ArrowUp");
    // The other way of the branch has a button of its own.
    await tabTo(page, ".outline-actions button:nth-child(2)");
    assert.equal(await focused(page), "BUTTON Add otherwise");
    await page.keyboard.press("Enter");
    await take(page, "resize");

    await page.keyboard.press("Enter");
    await fill(page, "resizeWidth", "800");
    await fill(page, "title", "For the list");
    await leaveFields(page);
    await atStep(page, "For the list");
    await arrowTo(page, "Resize", "ArrowUp");
    await page.keyboard.press("Enter");
    await fill(page, "resizeWidth", "1200");
    await fill(page, "title", "For the product page");
    await leaveFields(page);
    await atStep(page, "For the product page");

    await arrowTo(page, "Branch", "ArrowUp");
    await tabTo(page, ".workflow-panel .btn-small");
    assert.equal(await focused(page), "BUTTON Add a condition");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.name === "field");
    await typeChoice(page, "width", "width");
    await tabTo(page, ".workflow-panel [name=operator]");
    await typeChoice(page, "is greater", "gt");
    await fill(page, "value", "1200");
    await fill(page, "title", "Wider than 1200 pixels?");
    await leaveFields(page);
    await arrowTo(page, "Upload", "ArrowUp");
    await tabTo(page, ".workflow-panel .btn-small");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.name === "field");
    await leaveFields(page);
    await atStep(page, "Upload");
    await arrowTo(page, "Convert");
    await page.keyboard.press("Enter");
    await typeChoice(page, "webp", "webp");
    await fill(page, "compression", "82");
    await leaveFields(page);
    await arrowTo(page, "Storage");
    await page.keyboard.press("Enter");
    await fill(page, "title", "Into the shop's folder");
    await leaveFields(page);
    await arrowTo(page, "Webhook");
    await page.keyboard.press("Enter");
    await fill(page, "title", "Tell the shop");
    await leaveFields(page);

    await tabTo(page, ".workflow-toolbar [aria-label=Settings]", 90);
    await page.keyboard.press("Enter");
    await heading(page, "Workflow");
    await fill(page, "renamePattern", "{original}-{width}");
    await fill(page, "webhookUrl", "http://127.0.0.1:9000/");
    await saved(page);
    assert.deepEqual((await stored(page, "By outline")).definition, GUIDE);
  });

  step("is accessible in the outline, and shows what is chosen", async (page) => {
    await page.getByRole("button", { name: /Wider than 1200 pixels/ }).click();
    await heading(page, "Wider than 1200 pixels?");
    await expectAccessible(page, "outline");
    await screenshots(page, "workflow-outline");
  });

  step("opens at the step that a link names", async (page) => {
    await visit(page, `/workflows/${made["By outline"]}?step=resize-2`);
    await heading(page, "For the list");
    await page.locator(".outline-selected .outline-title", { hasText: /^For the list$/ }).waitFor();
    await visit(page, `/workflows/${made["By outline"]}?step=removed-since`);
    await heading(page, "Workflow");
  });

  step("builds it again on the canvas by mouse, to an equal definition", async (page) => {
    await make(page, "By canvas");
    await edit(page, "By canvas");
    await page.getByText("Canvas", { exact: true }).click();
    await page.waitForSelector(".react-flow__node");
    const node = (id) => page.locator(`.react-flow__node[data-id="${id}"]`);
    const plus = (id, n = 0) => node(id).locator(".flow-add").nth(n);
    await plus("upload").click();
    await take(page, "branch");
    await plus("branch", 0).click();
    await take(page, "resize");
    await plus("branch", 0).click();
    await take(page, "resize");
    await plus("resize").click();
    await take(page, "convert");
    await plus("convert").click();
    await take(page, "webhook");
    // In between, by the button of a line.
    await page.getByRole("button", { name: "Add a step after Convert", exact: true }).click();
    await take(page, "storage");
    await page.getByRole("button", { name: "Show all" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".react-flow__node").length === 7);
    // Lines are drawn once the boxes of both ends are measured.
    await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 6);
    await connect(page, "resize-2", "convert");
    await page.waitForFunction(() => document.querySelectorAll(".react-flow__edge").length === 7);

    const write = async (id, values) => {
      await node(id).click();
      for (const [label, text] of Object.entries(values)) await field(page, label).fill(text);
    };
    await write("resize", { "Resize width": "1200", Title: "For the product page" });
    await write("resize-2", { "Resize width": "800", Title: "For the list" });
    await write("storage", { Title: "Into the shop's folder" });
    await write("webhook", { Title: "Tell the shop" });
    await write("convert", { Compression: "82" });
    await field(page, "Format").selectOption("webp");
    await write("branch", { Title: "Wider than 1200 pixels?" });
    await press(page, "Add a condition");
    await field(page, "Property").selectOption("width");
    await field(page, "Comparison").selectOption("gt");
    await field(page, "Value").fill("1200");
    await node("upload").click();
    await press(page, "Add a condition");
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    await field(page, "Names of results").fill("{original}-{width}");
    await field(page, "Address for webhook steps").fill("http://127.0.0.1:9000/");
    await saved(page);
    const [outline, canvas] = [await stored(page, "By outline"), await stored(page, "By canvas")];
    assert.deepEqual(canvas.definition, outline.definition);
  });

  step("is accessible on the canvas", async (page) => {
    await page.locator(`.react-flow__node[data-id="branch"]`).click();
    await page.getByRole("button", { name: "Show all" }).click();
    await expectAccessible(page, "canvas");
    await screenshots(page, "workflow-canvas", { phone: false });
  });

  step("moves a step on the canvas by mouse and by arrow keys, with undo, and tidies up", async (page) => {
    const keep = page.locator('.react-flow__node[data-id="storage"]');
    await keep.click();
    await page.keyboard.press("ArrowRight");
    await state(page, "Unsaved");
    const tidy = page.getByRole("button", { name: "Tidy up" });
    await tidy.waitFor();
    await page.keyboard.press("Control+z");
    await tidy.waitFor({ state: "detached" });
    await state(page, "Saved");
    await page.keyboard.press("Control+Shift+z");
    await tidy.click();
    await state(page, "Saved");
    const before = await atRest(keep);
    await page.mouse.move(before.x + 40, before.y + 15);
    await page.mouse.down();
    await page.mouse.move(before.x + 90, before.y + 30, { steps: 4 });
    await page.mouse.up();
    await state(page, "Unsaved");
    // It is where it was dropped.
    await page.waitForFunction(
      (least) =>
        document.querySelector('.react-flow__node[data-id="storage"]')?.getBoundingClientRect().x > least,
      before.x + 20,
    );
    await tidy.click();
    await state(page, "Saved");
  });

  step("refuses a line that leads back, and removes by the Delete key", async (page) => {
    await connect(page, "webhook", "branch", ".flow-box");
    await page.locator(".toast", { hasText: "That would lead back" }).waitFor();
    await page.locator('.react-flow__node[data-id="webhook"]').click();
    await page.keyboard.press("Delete");
    await page.waitForFunction(() => document.querySelectorAll(".react-flow__node").length === 6);
    await press(page, "Undo");
    await page.waitForFunction(() => document.querySelectorAll(".react-flow__node").length === 7);
    await state(page, "Saved");
  });

  step("says what is wrong while one types", async (page) => {
    await page.locator('.react-flow__node[data-id="resize"]').click();
    await field(page, "Resize width").fill("99999");
    await page.getByText("This must be a whole number from 1 to 16383").waitFor();
    await page.locator(".workflow-problems").getByText("1 error").waitFor();
    await field(page, "Resize width").fill("");
    // What only the service knows comes from its lint.
    await page
      .getByText("resize needs resizePreset, resizeWidth or resizeHeight", { exact: false })
      .waitFor();
    await press(page, "Save");
    await page.getByText("resize needs resizePreset", { exact: false }).first().waitFor();
    for (let i = 0; i < 3 && (await page.locator(".workflow-state").innerText()).startsWith("Unsaved"); i++)
      await page.keyboard.press("Control+z");
    await state(page, "Saved");
  });

  step("asks before unsaved changes are lost", async (page) => {
    await field(page, "Title").fill("Changed");
    await state(page, "Unsaved");
    const questions = [];
    page.once("dialog", (dialog) => {
      questions.push(dialog.message());
      dialog.dismiss();
    });
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    assert.match(questions.join(), /not saved/);
    await state(page, "Unsaved");
    assert.equal(await field(page, "Title").inputValue(), "Changed");
  });

  step("says which version runs while there are unsaved changes", async (page) => {
    const { version } = await stored(page, "By canvas");
    await press(page, "Run…");
    await page.locator("dialog[open]", { hasText: `what is saved: version ${version}.` }).waitFor();
    await expectAccessible(page, "a run with unsaved changes");
    await screenshots(page, "workflow-run-unsaved", { phone: false });
    await inDialog(page, `Run version ${version}`);
    await page.waitForSelector("dialog .run-drop");
    await page.keyboard.press("Escape");
    await closed(page);
    await state(page, "Unsaved");
    await field(page, "Title").fill("Changed before a run");
    await press(page, "Run…");
    await inDialog(page, "Save and run");
    await page.waitForSelector("dialog .run-drop");
    await page.keyboard.press("Escape");
    await closed(page);
    assert.equal((await stored(page, "By canvas")).version, version + 1);
    await field(page, "Title").fill("Changed");
    await state(page, "Unsaved");
  });

  step(
    "shows the difference when another user saved first: takes theirs, undoes, keeps mine",
    async (page) => {
      const { definition, version } = await stored(page, "By canvas");
      const theirs = structuredClone(definition);
      theirs.nodes[5].data.title = "Into their folder";
      await call(page, "POST", "/api/workflows", { id: made["By canvas"], version, definition: theirs });
      await press(page, "Save");
      await page.waitForSelector("dialog[open] .differences");
      const shownText = await page.locator("dialog[open]").innerText();
      for (const text of ["Changed", "Into their folder"])
        assert.ok(shownText.includes(text), `${text}: ${shownText}`);
      assert.match(shownText, new RegExp(`Version ${version + 1} was saved .* by ${scene.username}\\.`));
      await expectAccessible(page, "conflict");
      await screenshots(page, "workflow-conflict", { phone: false });
      await inDialog(page, "Take theirs");
      await closed(page);
      await state(page, "Saved");
      await press(page, "Undo");
      await state(page, "Unsaved");
      await call(page, "POST", "/api/workflows", { id: made["By canvas"], definition: theirs });
      await press(page, "Save");
      await inDialog(page, "Keep mine");
      await closed(page);
      await state(page, "Saved");
      assert.equal((await stored(page, "By canvas")).definition.nodes[2].data.title, "Changed");
    },
  );

  step("nests conditions with NOT, AND and OR", async (page) => {
    await page.getByText("Outline", { exact: true }).click();
    await page.getByRole("button", { name: /Wider than 1200 pixels/ }).click();
    await panel(page).getByRole("button", { name: "Group", exact: true }).click();
    const inner = page.getByRole("group", { name: "Group 1", exact: true });
    await inner.getByLabel("Not").first().check();
    await inner.getByLabel("Property").selectOption("filename");
    await inner.getByLabel("Comparison").selectOption("matches");
    await inner.getByLabel("Value").fill("^draft[-_ ]");
    await expectAccessible(page, "conditions");
    await saved(page);
    const { branchConditions } = (await stored(page, "By canvas")).definition;
    assert.deepEqual(branchConditions.branch.groups, [
      {
        logic: "or",
        negate: true,
        conditions: [{ field: "filename", operator: "matches", value: "^draft[-_ ]" }],
      },
    ]);
  });

  step("foresees the path, what is not known, and the cost", async (page) => {
    await press(page, "Dry run");
    await page.waitForSelector(".dry-path li");
    await field(page, "Width in pixels").fill("4032");
    const row = (title) => page.locator(".outline-row", { hasText: title });
    await page.waitForFunction(
      () =>
        document.querySelector(".outline-row.flow-skipped .outline-title")?.textContent === "For the list",
    );
    await field(page, "Width in pixels").fill("300");
    await page.waitForFunction(
      () => document.querySelector(".outline-row.flow-skipped .outline-title")?.textContent === "Changed",
    );
    await row("For the list").and(page.locator(".flow-done")).waitFor();
    await page.locator(".dry-cost", { hasText: /^\d+ operations? (is|are) charged/ }).waitFor();
    await expectAccessible(page, "dry run");
    await screenshots(page, "workflow-dry-run");
    await press(page, "Close the dry run");
  });

  step("edits fifty steps with hostile names", async (page, test) => {
    const nodes = [NOTHING.nodes[0]];
    const edges = [];
    for (let i = 1; i < 50; i++) {
      const id = `s${i}`;
      nodes.push({
        id,
        data: { kind: "resize", title: HOSTILE[i % HOSTILE.length], config: { resizeWidth: i } },
      });
      edges.push({ source: nodes[i - 1].id, target: id });
    }
    await make(page, HOSTILE[0], { nodes, edges });
    const open = async (view, selector) => {
      await page.evaluate((view) => localStorage.setItem("sluice.workflows.view", view), view);
      test.diagnostic(`${view} with 50 steps: opens in ${await opened(page, made[HOSTILE[0]], selector)} ms`);
    };
    const answers = async (what, type, act) =>
      test.diagnostic(`${what}: answers in ${await answered(page, type, act)}`);

    await open("outline", ".outline-button");
    await page.locator(".outline-button").nth(9).click();
    await answers("an arrow key in the outline", "keydown", async () => {
      for (let i = 0; i < 20; i++) await page.keyboard.press("ArrowDown");
    });
    await field(page, "Title").click();
    await answers("a letter in a field", "keydown", () => page.keyboard.type("a longer title than it had"));
    await expectAccessible(page, "fifty steps in the outline");

    page.once("dialog", (dialog) => dialog.accept());
    await open("canvas", ".react-flow__node");
    const node = page.locator(".react-flow__node").nth(24);
    await node.click();
    await answers("an arrow key on the canvas", "keydown", async () => {
      for (let i = 0; i < 20; i++) await page.keyboard.press("ArrowRight");
    });
    const { x, y } = await node.boundingBox();
    await page.mouse.move(x + 5, y + 5);
    await page.mouse.down();
    await answers("a step that is dragged", "pointermove", () =>
      page.mouse.move(x + 205, y + 5, { steps: 20 }),
    );
    await page.mouse.up();
    await page.locator(".react-flow__node").nth(3).focus();
    await page.keyboard.press("a");
    await page.locator(".toast", { hasText: "at most 50 steps" }).waitFor();
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    await page.getByText("Outline", { exact: true }).click();
  });

  step("works by touch on a phone", async () => {
    const page = await at.page().context().newPage();
    at.watch(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await visit(page, `/workflows/${made["By outline"]}`);
    await page.getByRole("button", { name: /For the list/ }).click();
    await heading(page, "For the list");
    // The fields are a page of their own.
    await page.locator(".outline").waitFor({ state: "hidden" });
    await field(page, "Resize width").fill("640");
    await press(page, "Add after");
    await page
      .locator("dialog[open]")
      .getByRole("button", { name: /^Strip metadata/ })
      .click();
    await closed(page);
    await heading(page, "Strip metadata");
    await press(page, "Steps");
    await page.locator(".outline").waitFor();
    await press(page, "Save");
    await until(
      page,
      async (path) => (await (await fetch(path)).json()).workflow.version === 3,
      `/api/workflows/${made["By outline"]}`,
    );
    const { definition } = await stored(page, "By outline");
    assert.deepEqual(
      definition.edges.filter(({ source }) => source === "resize-2"),
      [{ source: "resize-2", target: "strip-metadata" }],
    );
    await expectNoSecrets(page);
    await page.close();
  });
});

/** Opens a workflow by its address; returns the milliseconds until 50 elements are drawn. */
async function opened(page, id, selector) {
  await page.goto(`${scene.base}/app/workflows/${id}`, { waitUntil: "commit" });
  const drawn = await page.waitForFunction(
    (selector) => document.querySelectorAll(selector).length === 50 && Math.round(performance.now()),
    selector,
  );
  await shown(page);
  return drawn.jsonValue();
}

/** The milliseconds from an event of this type, while something is done, to the end of the frame that shows its outcome. */
async function answered(page, type, act) {
  await page.evaluate((type) => {
    globalThis.answers = [];
    globalThis.stopAnswers = new AbortController();
    const onEvent = ({ timeStamp }) =>
      requestAnimationFrame(() => setTimeout(() => globalThis.answers.push(performance.now() - timeStamp)));
    addEventListener(type, onEvent, { capture: true, signal: globalThis.stopAnswers.signal });
  }, type);
  await act();
  const answers = await page.evaluate(async () => {
    globalThis.stopAnswers.abort();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));
    return globalThis.answers.sort((a, b) => a - b).map(Math.round);
  });
  return `${answers[Math.floor(answers.length / 2)]} ms, at most ${answers.at(-1)} ms`;
}

/** Where an element is once it stays there: the canvas is moved to fit in frames after a press. */
async function atRest(locator) {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const deadline = Date.now() + PATIENCE_MS;
  for (let before = null; ; ) {
    const box = await locator.boundingBox();
    if (before && box && box.x === before.x && box.y === before.y && box.width === before.width) return box;
    assert.ok(Date.now() < deadline, `${locator} is still moving`);
    before = box;
    await locator.page().evaluate(drawn);
  }
}

/** Draws a line from the way out of one step to another one: to the way into it, or to another part of its box. */
async function connect(page, source, target, part = ".react-flow__handle-top") {
  const from = await atRest(
    page.locator(`.react-flow__node[data-id="${source}"] .react-flow__handle-bottom`).first(),
  );
  const to = await atRest(page.locator(`.react-flow__node[data-id="${target}"] ${part}`));
  const centre = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(...centre(from));
  await page.mouse.down();
  await page.mouse.move(...centre(to), { steps: 6 });
  await page.mouse.up();
}
