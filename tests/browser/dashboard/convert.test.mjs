// Conversions: every tool and field of the catalogue, several files at once, progress, cancelling, before and after, storing,
// one archive of all; again by keyboard alone, with hostile names, and as a viewer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { png } from "./pictures.mjs";
import {
  ask,
  call,
  closed,
  expectAccessible,
  expectNoSecrets,
  HOSTILE,
  journey,
  press,
  scene,
  screenshots,
  shown,
  signIn,
  tabTo,
  typeChoice,
  visit,
} from "./support.mjs";

const SOURCES = "input[data-pick=sources]";
const picture = (name, seed = 1, width = 600, height = 400) => ({
  name,
  mimeType: "image/png",
  buffer: png(seed, width, height),
});

const useTool = (page, name) => page.selectOption("select[name=tool]", name);
/** Takes a tool with its fields as they are at first. */
async function fresh(page, name) {
  await useTool(page, name);
  const reset = page.locator(".convert-tool").getByRole("button", { name: "Reset", exact: true });
  if (await reset.count()) await reset.click();
}

const start = (page) => page.locator(".convert-start .btn-solid").click();

/** Waits until nothing is in progress and there are so many results. */
const results = (page, count) =>
  page.waitForFunction(
    (count) =>
      !document.querySelector(".convert-progress") &&
      document.querySelectorAll(".convert-result").length === count,
    count,
  );

/** Empties both lists. */
async function empty(page) {
  for (const name of [".convert-results", ".convert-files"]) {
    const button = page.locator(name).getByRole("button", { name: "Clear", exact: true });
    if (await button.count()) await button.click();
  }
  await page.waitForSelector(".empty");
}

/** The names in a ZIP, by its central directory. */
function namesIn(archive) {
  const names = [];
  for (let at = archive.indexOf("PK\x01\x02", 0, "latin1"); at >= 0; ) {
    const length = archive.readUInt16LE(at + 28);
    names.push(archive.toString("utf8", at + 46, at + 46 + length));
    at = archive.indexOf("PK\x01\x02", at + 46, "latin1");
  }
  return names;
}

journey("convert", { expected: [[415, /^\/api\/media\/resize$/]] }, (step) => {
  step("says what it is for when there is no file", async (page) => {
    await signIn(page, "/convert");
    await page.waitForSelector(".empty");
    await expectAccessible(page, "nothing to convert");
  });

  step("converts several images at once and shows before and after", async (page) => {
    await page.setInputFiles(SOURCES, [
      picture("shore.png", 1),
      picture("dune.png", 2),
      picture("reef.png", 3),
    ]);
    await page.waitForFunction(() => document.querySelectorAll(".convert-source").length === 3);
    await page.selectOption("select[name=format]", "jpg");
    await page.getByLabel("Quality", { exact: true }).fill("60");
    await page.getByLabel("Store the results in Files").click();
    await press(page, "Start with 3 files");
    await results(page, 3);
    const { jobs } = await ask(page, "/api/jobs");
    assert.deepEqual(
      jobs.map(({ jobType, status, totalFiles }) => [jobType, status, totalFiles]),
      Array(3).fill(["convert", "completed", 1]),
      "a job for each, so that each can be cancelled",
    );
    assert.equal((await ask(page, "/api/files")).files.length, 0, "nothing was stored");
    await page.getByRole("button", { name: "Compare" }).first().click();
    await page.waitForSelector(".compare");
    await page.locator(".compare input").fill("30");
    await expectAccessible(page, "a comparison");
    await screenshots(page, "convert");
    await page.getByText("Side by side", { exact: true }).click();
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".convert-sides img")].every(({ naturalWidth }) => naturalWidth === 600),
    );
    await expectAccessible(page, "both sides");
  });

  step("packs all results into one archive", async (page) => {
    const [download] = await Promise.all([page.waitForEvent("download"), press(page, "Download all")]);
    const archive = readFileSync(await download.path());
    assert.deepEqual(namesIn(archive).sort(), ["dune.jpg", "reef.jpg", "shore.jpg"]);
  });

  step("stores a result afterwards", async (page) => {
    await press(page, "Store in Files");
    await page.getByRole("link", { name: "Open in Files" }).waitFor();
    const { files } = await ask(page, "/api/files");
    assert.equal(files.length, 1);
    assert.equal(files[0].mime_type, "image/jpeg");
    const link = await page.getByRole("link", { name: "Open in Files" }).getAttribute("href");
    assert.ok(link.endsWith(`/files?file=${files[0].id}`));
  });

  step("asks for every field of every tool in its request", async (page) => {
    const { tools } = await ask(page, "/api/catalogue");
    assert.ok(tools.length > 15);
    const skipped = new Set(["resizeWidth", "resizeHeight"]);
    for (const { name, fields } of tools) {
      await useTool(page, name);
      const place = page.locator(".convert-tool");
      const expected = [];
      for (const field of fields) {
        const control = place.locator(`[name=${field.name}]`);
        if (skipped.has(field.name) && (await control.count()) === 0) continue;
        if (field.input === "file") {
          await page.setInputFiles("input[data-pick=own]", picture("mark.png", 9, 40, 40));
          expected.push(`${field.name}=@mark.png`);
        } else if (field.input === "position") {
          await place.locator("input[value=top-left]").check();
          expected.push(`${field.name}=top-left`);
        } else if (field.input === "flag") {
          if ((await control.count()) === 0) continue;
          await control.click();
          expected.push(`${field.name}=${!field.default}`);
          // Without loss there is no quality to choose
          if (field.name === "lossless")
            expected.splice(0, expected.length, ...expected.filter((part) => !part.startsWith("quality=")));
        } else if (field.values.length > 0) {
          const offered = await control.locator("option").evaluateAll((all) => all.map(({ value }) => value));
          const other = offered.filter(Boolean).at(-1);
          // A size without sides of its own leaves their fields where they are
          const value = field.name === "resizePreset" ? "" : other;
          await control.selectOption(value);
          if (value) expected.push(`${field.name}=${value}`);
        } else if (field.type === "string") {
          const text = field.name === "colour" ? "ff0000" : "© us";
          await control.fill(text);
          expected.push(`${field.name}=${text}`);
        } else {
          const value = String(
            Math.min(field.maximum, Math.max(field.minimum, Number(field.default ?? 0)) + 1),
          );
          await control.fill(value);
          expected.push(`${field.name}=${value}`);
        }
      }
      await place.getByRole("button", { name: "Show as curl" }).click();
      await page.waitForSelector("dialog textarea");
      const command = await page.inputValue("dialog textarea");
      for (const part of expected)
        assert.ok(command.includes(`-F '${part}'`), `${name}: ${part} in ${command}`);
      await page.keyboard.press("Escape");
      await closed(page);
    }
  });

  step("names what is out of range, and what is missing, at its field", async (page) => {
    await useTool(page, "thumbnail");
    await press(page, "Reset");
    await page.fill("input[name=width]", "99999");
    await page.waitForSelector(".convert-tool .field-error");
    await expectAccessible(page, "a value out of range");
    await press(page, "Reset");
    await useTool(page, "resize");
    await press(page, "Reset");
    await page.selectOption("select[name=resizePreset]", "width");
    await start(page);
    await page.waitForFunction(() => document.activeElement.name === "resizeWidth");
    await page.fill("input[name=resizeWidth]", "300");
    await page.waitForSelector(".convert-tool .field-error", { state: "detached" });
  });

  step("keeps the tool and its values over a reload, but no texts", async (page) => {
    await useTool(page, "watermark");
    await page.fill("input[name=text]", "for your eyes");
    await useTool(page, "resize");
    await page.reload();
    await shown(page);
    assert.equal(await page.inputValue("select[name=tool]"), "resize");
    assert.equal(await page.inputValue("input[name=resizeWidth]"), "300");
    const kept = await page.evaluate(() => JSON.stringify(localStorage));
    assert.ok(!kept.includes("for your eyes"));
    await expectNoSecrets(page);
  });

  step("says why a file cannot be converted, and tries it again", async (page) => {
    await page.setInputFiles(SOURCES, {
      name: "not.png",
      mimeType: "image/png",
      buffer: Buffer.from("no image at all"),
    });
    await start(page);
    await page.locator(".convert-work [role=alert]").waitFor();
    await expectAccessible(page, "a failure");
    await page.locator(".convert-work").getByRole("button", { name: "Try again" }).click();
    await page.locator(".convert-work [role=alert]").waitFor();
    await empty(page);
  });

  step("plays a video before and after", async (page) => {
    await page.setInputFiles(SOURCES, scene.clip);
    await fresh(page, "trim");
    await page.fill("input[name=duration]", "1");
    await page.selectOption("select[name=mode]", "fast");
    await start(page);
    await page.waitForFunction(
      () =>
        document.querySelectorAll(".convert-sides video").length === 2 &&
        [...document.querySelectorAll(".convert-sides video")].every(({ readyState }) => readyState > 0),
    );
    await expectAccessible(page, "two players");
    await empty(page);
  });

  step("shows progress, and cancels", async (page) => {
    await page.setInputFiles(SOURCES, scene.long);
    await fresh(page, "convert");
    await page.selectOption("select[name=format]", "webm");
    await start(page);
    await page.waitForFunction(() => document.querySelector(".convert-progress progress")?.value > 0);
    await expectAccessible(page, "progress");
    await page.getByRole("button", { name: /^Cancel / }).click();
    await page.locator(".convert-work", { hasText: "cancelled" }).waitFor();
    assert.equal((await ask(page, "/api/jobs?limit=1")).jobs[0].status, "cancelled");
    await empty(page);
  });

  step("takes stored files by their address, and stores results beside them", async (page) => {
    const { files } = await ask(page, "/api/files");
    await visit(page, `/convert?file=${files[0].id}&tool=thumbnail`);
    await page.waitForSelector(".convert-source");
    assert.equal(await page.inputValue("select[name=tool]"), "thumbnail");
    await fresh(page, "thumbnail");
    await page.fill("input[name=width]", "64");
    await page.fill("input[name=height]", "64");
    await start(page);
    await results(page, 1);
    const stored = (await ask(page, "/api/files")).files;
    assert.ok(stored.some(({ width, height }) => width === 64 && height === 64));
    await empty(page);
  });

  step("chooses among stored files", async (page) => {
    await press(page, "From Files");
    await page.locator(".choose-file").first().click();
    await page.locator(".choose-file").nth(1).click();
    await expectAccessible(page, "the choice of files");
    await press(page, "Take 2 files");
    await closed(page);
    assert.equal(await page.locator(".convert-source").count(), 2);
    await fresh(page, "image-to-pdf");
    await page
      .getByRole("button", { name: /^Move .* down$/ })
      .first()
      .click();
    await press(page, "Join 2 files");
    await results(page, 1);
    await page.getByText("2 files joined").waitFor();
    await empty(page);
  });

  step("joins audio in the order of the list", async (page) => {
    await page.setInputFiles(SOURCES, [scene.clip, scene.clip]);
    await fresh(page, "concat-audio");
    await page.selectOption("select[name=format]", "wav");
    await press(page, "Join 2 files");
    await page.waitForFunction(() => document.querySelector(".convert-sides audio")?.duration > 3.5);
    await empty(page);
  });

  step("shows hostile names as text", async (page) => {
    await page.setInputFiles(
      SOURCES,
      HOSTILE.map((name, i) => picture(`${name.replaceAll("/", "_")}.png`, i, 60, 40)),
    );
    await fresh(page, "resize");
    await page.fill("input[name=resizeWidth]", "30");
    await press(page, `Start with ${HOSTILE.length} files`);
    await results(page, HOSTILE.length);
    await expectAccessible(page, "hostile names");
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  });
});

journey("convert by keyboard", {}, (step) => {
  step("converts and compares without a mouse", async (page) => {
    await signIn(page, "/convert");
    const opened = page.waitForEvent("filechooser");
    await tabTo(page, ".empty .btn-solid");
    await page.keyboard.press("Enter");
    const chooser = await opened;
    await chooser.setFiles(picture("keys.png", 5));
    await page.waitForSelector(".convert-source");
    await tabTo(page, "select[name=tool]");
    await typeChoice(page, "Make", "compress");
    assert.equal(await page.inputValue("select[name=tool]"), "compress");
    await tabTo(page, ".convert-start .btn-solid");
    await page.keyboard.press("Enter");
    await results(page, 1);
    await page.waitForSelector(".compare");
    await tabTo(page, ".compare input");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.inputValue(".compare input"), "51");
  });
});

journey("convert as a viewer", { expected: [[403, /^\/api\//]] }, (step) => {
  step("is looked at, and a forged call is refused", async (page) => {
    await page.goto(scene.viewer);
    await page.fill("input[name=newPassword]", "only looking here");
    await page.click("button[type=submit]");
    await shown(page);
    await visit(page, "/convert");
    await page.waitForSelector(".empty");
    assert.equal(await page.locator(".convert-start .btn-solid").count(), 0);
    assert.equal(await page.getByRole("button", { name: "Choose files" }).count(), 0);
    await expectAccessible(page, "convert as a viewer");
    const { status } = await call(page, "POST", "/api/jobs", {
      jobType: "convert",
      format: "webp",
      fileIds: [],
    });
    assert.equal(status, 403);
  });
});
