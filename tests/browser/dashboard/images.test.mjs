// Images: a picture dropped, a key made in place, every parameter of the catalogue, a focal point by pointer and by numbers,
// code that works in a bare page, presets, statistics, purge; again by keyboard alone.
import assert from "node:assert/strict";
import { png } from "./pictures.mjs";
import {
  ask,
  closed,
  expectAccessible,
  expectNoSecrets,
  hasFocus,
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

const result = ".builder-images figure:nth-child(2) img";

/** The address in the tab URL, once it holds for `wanted` (a part of it). */
async function addressWith(page, wanted) {
  const field = ".builder-code .copy-field input";
  await page.waitForFunction(
    ([field, wanted]) => document.querySelector(field)?.value.includes(wanted),
    [field, wanted],
  );
  return page.inputValue(field);
}

/** Waits until the preview shows what the address delivers, `width` pixels wide. */
const pictureOf = (page, width) =>
  page.waitForFunction(
    ([result, width]) => {
      const image = document.querySelector(result);
      return image?.complete && image.naturalWidth === width;
    },
    [result, width],
  );

/** A value for a parameter that differs from its default, by its control. */
const VALUES = { colour: "ffcc00", point: "0.25" };
const otherValue = ({ input, values, minimum, maximum, default: byDefault }) => {
  if (VALUES[input]) return VALUES[input];
  if (values.length > 0) return values.find((word) => word !== byDefault);
  return String(Math.min(maximum, Math.max(minimum, Number(byDefault ?? 0)) + 1));
};

const labelOf = ({ name, aliases }) => {
  const longest = [name, ...aliases].reduce((best, alias) => (alias.length > best.length ? alias : best));
  return longest === name ? name : `${longest} (${name})`;
};

journey("images", { expected: [[404, /^\/cdn\/v1\//]] }, (step, at) => {
  step("says what it is for when there is no file", async (page) => {
    await signIn(page, "/images");
    await page.waitForSelector(".empty");
    await expectAccessible(page, "no image");
  });

  step("shows a picture on a key that is made in place", async (page) => {
    await press(page, "New key");
    await page.fill("dialog input[name=name]", "my site");
    await inDialog(page, "Make the key");
    await closed(page);
    await page.setInputFiles(".builder-source input[type=file]", {
      name: "shore.png",
      mimeType: "image/png",
      buffer: png(2, 1200, 800),
    });
    await pictureOf(page, 960);
    await addressWith(page, "?w=960");
    await expectAccessible(page, "the builder");
    await screenshots(page, "images-builder");
  });

  step("takes every parameter of the catalogue into the address", async (page) => {
    const { cdnParameters } = await ask(page, "/api/catalogue");
    for (const parameter of cdnParameters) {
      const { name, input } = parameter;
      const reset = page.getByRole("button", { name: "Reset", exact: true });
      if (await reset.count()) await reset.click();
      await page.waitForFunction(
        (field) => document.querySelector(field)?.value.includes("?") === false,
        ".builder-code .copy-field input",
      );
      await page.evaluate(() => {
        for (const panel of document.querySelectorAll(".builder-panel")) panel.open = true;
      });
      const label = input === "point" ? `${labelOf(parameter)}, across` : labelOf(parameter);
      const control = page.getByLabel(label, { exact: true });
      if (input === "flag") await control.click();
      else if (input === "choice" || input === "quality") await control.selectOption(otherValue(parameter));
      else await control.fill(otherValue(parameter));
      assert.match(await addressWith(page, `?${name}=`), /\?[a-z]+=[^&]+$/);
    }
  });

  step("names a value that is out of range at its field", async (page) => {
    await press(page, "Reset");
    await page.getByLabel("width (w)", { exact: true }).fill("99999");
    await page.waitForSelector(".builder-values .field-error");
    await page.getByLabel("width (w)", { exact: true }).fill("300");
    await page.getByLabel("height (h)", { exact: true }).fill("300");
    await pictureOf(page, 300);
  });

  step("sets the focal point by a click and by numbers", async (page) => {
    const { width, height } = await page.locator(".stage-image").boundingBox();
    await page.locator(".stage-image").click({ position: { x: width / 4, y: height / 2 } });
    const address = await addressWith(page, "fp=0.2");
    const [x, y] = new URL(address).searchParams.get("fp").split(",").map(Number);
    assert.ok(Math.abs(x - 0.25) < 0.02 && Math.abs(y - 0.5) < 0.02, address);
    await page.locator("input[name=fp]").first().fill("0.9");
    await addressWith(page, "fp=0.9,");
  });

  step("gives code that works in a page of its own", async (page) => {
    for (const language of ["<img srcset>", "<picture>"]) {
      await page.getByText(language, { exact: true }).click();
      const code = await page.locator(".builder-code textarea").inputValue();
      const other = await at.context().newPage();
      await other.setContent(`<!doctype html><title>Bare</title>${code.replace('loading="lazy"', "")}`);
      await other.waitForFunction(() => document.querySelector("img")?.naturalWidth > 0);
      await other.close();
    }
    await press(page, "Ask for each");
    await page.waitForFunction(() => document.querySelectorAll(".builder-accepts dd").length === 3);
    const answers = await page.locator(".builder-accepts dd").allTextContents();
    assert.match(answers[1], /^image\/webp/);
    assert.match(answers[2], /^image\/(jpeg|png)/);
    await page.getByText("URL", { exact: true }).click();
  });

  step("keeps what was built over a reload", async (page) => {
    const before = await addressWith(page, "w=300");
    await page.waitForFunction(() => location.search.includes("w%3D300"));
    await page.reload();
    await shown(page);
    assert.equal(await addressWith(page, "w=300"), before);
  });

  step("saves a preset, changes it and deletes it", async (page) => {
    await press(page, "Save as preset");
    await page.fill("dialog input[name=name]", "card");
    await inDialog(page, "Save the preset");
    await closed(page);
    await page.getByRole("link", { name: "Presets" }).click();
    await page.waitForSelector("tbody tr");
    await expectAccessible(page, "presets");
    await screenshots(page, "images-presets", { phone: false });
    await page.getByRole("link", { name: "Use", exact: true }).click();
    await addressWith(page, "/p/card");
    await pictureOf(page, 300);
    await press(page, "Change its parameters");
    await page.getByLabel("width (w)", { exact: true }).fill("200");
    await press(page, "Save the preset");
    await page.waitForFunction(() => !document.querySelector(".builder-values .callout"));
    await until(page, async () => {
      const { presets } = await (await fetch("/api/cdn-presets")).json();
      return presets[0].name === "card" && presets[0].params.w === 200;
    });
    await visit(page, "/images/presets");
    await press(page, "Delete card");
    await inDialog(page, "Delete");
    await page.waitForSelector(".empty");
    await expectAccessible(page, "no presets");
  });

  step("counts deliveries, and purges", async (page) => {
    const { files } = await ask(page, "/api/files?limit=1");
    await visit(page, `/images/statistics?purge=asset:${files[0].id}`);
    await page.waitForFunction(() => document.querySelector("tbody")?.textContent.includes("my site"));
    await expectAccessible(page, "statistics");
    await screenshots(page, "images-statistics", { phone: false });
    await press(page, "Purge");
    await inDialog(page, "Purge");
    await closed(page);
    await page.getByText("1 of 1 purged.").first().waitFor();
    await expectNoSecrets(page);
  });

  step("is used by keyboard alone", async (page) => {
    await visit(page, "/images");
    await tabTo(page, ".builder-drop .btn");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".choose-file");
    await page.keyboard.type("shore");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await closed(page);
    await hasFocus(page, "BUTTON Choose");
    await page.waitForSelector(result);
    await tabTo(page, "input[name=w]");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("480");
    await pictureOf(page, 480);
    assert.ok(scene.base);
  });
});
