// Files: a folder of 300 pictures uploaded over cuts and a reload, looked at, chosen, moved, renamed, tagged, packed,
// deleted, shared; again by keyboard and by touch; hostile names and a hostile drawing; what a viewer may not do.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { folderOfPictures, png } from "./pictures.mjs";
import {
  ask,
  closed,
  expectAccessible,
  expectNoSecrets,
  journey,
  press,
  scene,
  screenshots,
  selection,
  shown,
  signIn,
  until,
  visit,
} from "./support.mjs";

const PICTURES = 300;
const CUT = 3;

/** Every stored file as "folder/name", by pages. */
async function everyFile(page) {
  const names = [];
  for (let offset = 0; ; offset += 100) {
    const path = `/api/files?folderId=null&recursive=true&sort=name&limit=100&offset=${offset}`;
    const { files, pagination } = await ask(page, path);
    names.push(...files.map(({ folder_id, filename }) => `${folder_id}/${filename}`));
    if (!pagination.hasMore) return names;
  }
}

const cell = (page, name) => page.locator(".files-list [data-index]", { hasText: name }).first();
const headline = (page, text) =>
  page.waitForFunction(
    (wanted) => document.querySelector(".uploads-head strong")?.textContent.includes(wanted),
    text,
  );
const chosen = (page, count) =>
  page.waitForFunction(
    (wanted) =>
      (document.querySelector(".files-chosen strong")?.textContent ?? "0 ").startsWith(`${wanted} `),
    count,
  );
const counted = (page, count) =>
  page.waitForFunction(
    (wanted) => document.querySelector(".page-aside")?.textContent.startsWith(`${wanted} file`),
    count,
  );

/** Closes the tray of uploads, which closes itself some seconds after all of them have ended. */
async function closeTray(page) {
  await page.evaluate(() => [...document.querySelectorAll(".uploads-head button")].at(-1)?.click());
  await page.waitForSelector(".tray", { state: "detached" });
}

/** Goes into folders by the list. */
async function enter(page, ...names) {
  for (const name of names) {
    await cell(page, name).click();
    await page.waitForFunction((title) => document.querySelector("h1")?.textContent === title, name);
    await shown(page);
  }
}

journey(
  "files",
  {
    expected: [
      [0, /^\/api\/uploads\/tus\//],
      [404, /^\/api\/folders\/[^/]+\/share$/],
    ],
  },
  (step, at) => {
    const holiday = scene && folderOfPictures(PICTURES);

    step("says what files are for when there are none", async (page) => {
      at.page().on("dialog", (dialog) => dialog.accept());
      await signIn(page, "/files");
      await page.waitForSelector(".empty");
      await expectAccessible(page, "no files");
    });

    step("continues an upload of 300 files after a reload", async (page) => {
      // From a half on they are held back, so that the reload cuts some on a machine of any speed.
      const sending = "**/api/uploads/tus/*";
      let sent = 0;
      await page.route(sending, (route) => {
        if (route.request().method() === "PATCH" && ++sent > PICTURES / 2) return;
        return route.continue();
      });
      await page.setInputFiles("[data-pick=folder]", holiday);
      await page.waitForFunction((least) => {
        const text = document.querySelector(".uploads-head strong")?.textContent ?? "";
        return Number(/Uploading (\d+)/.exec(text)?.[1] ?? 0) >= least;
      }, PICTURES / 4);
      // The queue lasts over a change of screen
      await page.click(".side a:has-text('Overview')");
      await shown(page);
      assert.match(await page.textContent(".uploads-head strong"), /Uploading/);
      await page.reload();
      await page.unroute(sending);
      await visit(page, "/files");
      const before = (await everyFile(page)).length;
      assert.ok(before > 0 && before < PICTURES, `${before} before the reload`);
    });

    step("sends none twice, and what was cut when it is retried", async (page) => {
      const cut = new Set();
      let requests = 0;
      await page.route("**/api/uploads/tus/*", (route) => {
        const request = route.request();
        if (request.method() !== "PATCH") return route.continue();
        if (cut.size < CUT && ++requests % 5 === 0) cut.add(request.url());
        return cut.has(request.url()) ? route.abort("connectionreset") : route.continue();
      });
      await page.setInputFiles("[data-pick=folder]", holiday);
      await headline(page, `${CUT} uploads failed`);
      assert.equal((await everyFile(page)).length, PICTURES - CUT);
      await expectAccessible(page, "failed uploads");
      await page.unroute("**/api/uploads/tus/*");
      await press(page, "Retry all failed");
      await headline(page, `${PICTURES} files uploaded`);
      const names = await everyFile(page);
      assert.equal(names.length, PICTURES);
      assert.equal(new Set(names).size, PICTURES, "none twice");
      await closeTray(page);
      await expectNoSecrets(page);
    });

    step("shows folders, files and how many there are", async (page) => {
      await visit(page, "/files");
      await counted(page, PICTURES);
      await enter(page, "Holiday");
      await counted(page, PICTURES);
      await page.waitForSelector(".files-thumb img");
      await expectAccessible(page, "grid of files");
      await enter(page, "Beach", "Evening");
      await counted(page, PICTURES / 3);
      assert.equal(await page.locator(".breadcrumb a").count(), 3);
      await page.locator(".breadcrumb a", { hasText: "Holiday" }).click();
      await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Holiday");
      await page.waitForFunction(
        () => document.querySelector(".tree [aria-selected=true]")?.textContent === "Holiday",
      );
    });

    step("finds by name below the folder, and sorts", async (page) => {
      await page.fill("[type=search]", "picture 01");
      await page.waitForFunction(() =>
        document.querySelector(".page-aside")?.textContent.startsWith("10 files found"),
      );
      await page.fill("[type=search]", "");
      await page.waitForFunction(() => !location.search.includes("q="));
      await page.selectOption("select[name=sort]", "name:desc");
      await page.waitForFunction(() =>
        document.querySelector(".files-list [data-index='1']")?.textContent.includes("picture 297"),
      );
      await page.selectOption("select[name=sort]", "name:asc");
      await page.waitForFunction(() =>
        document.querySelector(".files-list [data-index='1']")?.textContent.includes("picture 000"),
      );
    });

    step("previews a picture and sets its focal point by a click", async (page) => {
      await cell(page, "picture 003").click();
      await page.waitForFunction(() => document.querySelector(".stage img")?.naturalWidth > 0);
      assert.match(await page.getAttribute(".stage img", "src"), /^\/api\/files\/[^/]+\/preview\?/);
      await page.getByRole("button", { name: "Focal point" }).click();
      const box = await page.locator(".stage img").boundingBox();
      await page.mouse.click(box.x + box.width * 0.75, box.y + box.height * 0.25);
      await press(page, "Save");
      await page.waitForSelector(".stage-point");
      await page.waitForFunction(() => !document.querySelector(".stage-aim"));
      const id = new URL(page.url()).searchParams.get("file");
      const point = await page.evaluate(async (id) => {
        const answer = await fetch(`/api/files/${id}`, { headers: { accept: "application/json" } });
        return (await answer.json()).file.focal_point;
      }, id);
      assert.ok(Math.abs(point.x - 0.75) < 0.03 && Math.abs(point.y - 0.25) < 0.05, JSON.stringify(point));
      // The message closes itself too.
      await page.evaluate(() => document.querySelector(".toast [aria-label='Close the message']")?.click());
      await page.waitForSelector(".toast", { state: "detached" });
      await expectAccessible(page, "preview");
      await screenshots(page, "files");
    });

    step("chooses a range, moves it by dragging, and back", async (page) => {
      await press(page, "Close");
      await cell(page, "picture 000").locator("input").click();
      await cell(page, "picture 012").click({ modifiers: ["Shift"] });
      await chosen(page, 5);
      await expectAccessible(page, "chosen files");
      await cell(page, "picture 003").dragTo(page.locator(".tree-item", { hasText: "All files" }));
      await page.locator(".toast", { hasText: "5 files moved to All files" }).waitFor();
      const top = await ask(page, "/api/files?folderId=null");
      assert.equal(top.files.length, 5);
      await page.getByRole("button", { name: "Undo" }).click();
      await until(page, async () => {
        const { files } = await (await fetch("/api/files?folderId=null")).json();
        return files.length === 0;
      });
    });

    step("moves by the dialog, into a folder made there", async (page) => {
      await visit(page, new URL(page.url()).pathname.replace("/app", ""));
      await cell(page, "picture 000").locator("input").click();
      await cell(page, "picture 003").locator("input").click();
      await chosen(page, 2);
      await press(page, "Move");
      await page.fill("dialog [name=name]", "Best");
      await press(page, "Create");
      await page.locator("dialog .tree-item[aria-selected=true]", { hasText: "Best" }).waitFor();
      await expectAccessible(page, "move dialog");
      await press(page, "Move here");
      await closed(page);
      await visit(page, "/files");
      await enter(page, "Best");
      await counted(page, 2);
    });

    step("renames and tags", async (page) => {
      await cell(page, "picture 000").click();
      await page.waitForSelector(".pane");
      await page.locator(".pane").getByRole("button", { name: "More" }).click();
      await page.getByRole("menuitem", { name: "Rename" }).click();
      await page.waitForSelector("dialog [name=filename]");
      assert.equal(await selection(page), "picture 000");
      await page.keyboard.type("Sunrise");
      await page.keyboard.press("Enter");
      await closed(page);
      await cell(page, "Sunrise.png").waitFor();
      await press(page, "Close");
      await page.locator(".files-list [data-index='0']").focus();
      await page.keyboard.press("Control+a");
      await chosen(page, 2);
      await press(page, "Tag");
      await page.fill("dialog [name=tags]", "sea, morning");
      await press(page, "Save");
      await closed(page);
      const { files } = await ask(page, "/api/files?tag=sea");
      assert.equal(files.length, 2);
      assert.deepEqual(files[0].tags.toSorted(), ["morning", "sea"]);
    });

    step("packs what is chosen into one archive", async (page) => {
      const [download] = await Promise.all([page.waitForEvent("download"), press(page, "Download zip")]);
      const archive = readFileSync(await download.path());
      assert.equal(archive.subarray(0, 2).toString(), "PK");
      assert.ok(archive.includes("Sunrise.png") && archive.includes("picture 003.png"));
    });

    step("converts what is chosen, and shows how far it is", async (page) => {
      await press(page, "Convert");
      await page.waitForSelector("dialog [name=format]");
      await page.selectOption("dialog [name=format]", "jpg");
      await expectAccessible(page, "convert dialog");
      await page.locator("dialog [type=submit]").click();
      await closed(page);
      await page.waitForFunction(() =>
        document.querySelector(".uploads-name")?.textContent.includes("2 files made"),
      );
      await counted(page, 4);
      await page.locator(".uploads-list").getByRole("button", { name: "Close" }).click();
    });

    step("shares a folder with a password, and revokes the link", async (page) => {
      await press(page, "Share");
      await page.waitForSelector("dialog [name=password]");
      await expectAccessible(page, "share dialog");
      await page.fill("dialog [name=password]", "correct horse");
      await page.fill("dialog [name=downloadLimit]", "3");
      await page.check("dialog [name=looking]");
      await press(page, "Make the link");
      const link = await page.locator("dialog .copy-field input").first().inputValue();
      assert.match(link, /\/share\//);
      assert.match(await page.textContent("dialog .facts"), /looking only/);
      await expectAccessible(page, "shared folder");
      await screenshots(page, "share");
      await press(page, "Done");
      await visit(page, "/files/shares");
      await page.locator("tbody tr", { hasText: "Best" }).waitFor();
      await expectAccessible(page, "shares");
      await screenshots(page, "shares");
      await press(page, "Revoke");
      await page.locator("dialog [type=submit]").click();
      await page.waitForSelector(".empty");
      await expectAccessible(page, "no shares");
      const answer = await page.context().request.get(link);
      assert.equal(answer.status(), 404);
    });

    step("deletes many only when their number is typed", async (page) => {
      await visit(page, "/files");
      await enter(page, "Holiday", "Beach", "Evening");
      await page.waitForSelector(".files-list [data-index='1']");
      await page.locator(".files-list [data-index='0']").focus();
      await page.keyboard.press("Control+a");
      await chosen(page, PICTURES / 3);
      await press(page, "Delete");
      const end = page.locator("dialog [type=submit]");
      assert.ok(await end.isDisabled());
      await expectAccessible(page, "delete dialog");
      await page.fill("dialog [name=confirmation]", `${PICTURES / 3} files`);
      await end.click();
      await page.waitForSelector(".empty");
      await press(page, "Folder");
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await page.locator("dialog [type=submit]").click();
      await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Beach");
    });
  },
);

journey("files by keyboard", {}, (step) => {
  const isAt = (page, index) =>
    page.waitForFunction(
      (index) => document.activeElement.closest("[data-index]")?.dataset.index === String(index),
      index,
    );

  step("reaches list, preview, selection and acts without a mouse", async (page) => {
    await signIn(page, "/files");
    await enter(page, "Holiday");
    await page.waitForSelector(".files-list [data-index='1'] img");
    await page.locator(".files-list [data-index='0']").focus();
    await page.keyboard.press("ArrowRight");
    await isAt(page, 1);
    await page.keyboard.press("x");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    await chosen(page, 3);
    await page.keyboard.press("Space");
    await page.waitForSelector(".pane");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector(".files-list .is-open[data-index='2']");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".files-pane", { state: "detached" });
    // The focus stays at the item.
    await isAt(page, 2);
    await page.keyboard.press("F2");
    await page.waitForSelector("dialog [name=filename]");
    await page.keyboard.type("By keys");
    await page.keyboard.press("Enter");
    await closed(page);
    await cell(page, "By keys.png").waitFor();
    await page.keyboard.press("End");
    await page.keyboard.press("Delete");
    await page.waitForSelector("dialog");
    await page.keyboard.press("Escape");
    await closed(page);
    await page.keyboard.press("/");
    await page.waitForFunction(() => document.activeElement.type === "search");
  });

  step("walks the tree by arrows", async (page) => {
    await page.locator(".tree-item[tabindex='0']").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Files");
    await page.locator(".tree-item[tabindex='0']").focus();
    await page.locator(".tree-item", { hasText: "Holiday" }).waitFor();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("h1")?.textContent !== "Files");
  });
});

journey("files by touch", { width: 360, height: 740, hasTouch: true, isMobile: true }, (step) => {
  step("looks at a file, and moves one by the menu", async (page) => {
    await signIn(page, "/files");
    await cell(page, "Holiday").tap();
    await page.waitForSelector(".files-list [data-index='2'] img");
    const name = await page.locator(".files-list [data-index='2'] bdi").textContent();
    await cell(page, name).tap();
    await page.waitForFunction(() => document.querySelector("dialog .stage img")?.naturalWidth > 0);
    await page.locator("dialog").getByRole("button", { name: "More" }).tap();
    await page.getByRole("menuitem", { name: "Move" }).tap();
    await page.locator("dialog .tree-item", { hasText: "Best" }).tap();
    await page.getByRole("button", { name: "Move here" }).tap();
    await page.locator(".toast", { hasText: "moved" }).waitFor();
    await page.keyboard.press("Escape");
    await closed(page);
    const { folders } = await ask(page, "/api/folders?parentId=null&q=Best");
    const { files } = await ask(page, `/api/files?folderId=${folders[0].id}`);
    assert.ok(files.some(({ filename }) => filename === name));
  });

  step("has targets that a finger meets", async (page) => {
    const small = await page.evaluate(() =>
      [...document.querySelectorAll("main button, main select, main a")]
        .filter((element) => element.offsetParent && !element.closest(".breadcrumb"))
        .map((element) => [element.getBoundingClientRect(), element.outerHTML.slice(0, 80)])
        .filter(([box]) => box.width < 24 || box.height < 24)
        .map(([, html]) => html),
    );
    assert.deepEqual(small, []);
  });
});

const HOSTILE = [
  "<img src=x onerror=window.pwned=1>.png",
  "javascript:window.pwned=1.png",
  "\u202egnp.exe.png",
  '=HYPERLINK("http:x").png',
  "__proto__",
  "constructor.png",
  `${"w".repeat(240)}.png`,
  `${"e\u0301".repeat(70)}.png`,
  "  .png",
];
const DRAWING =
  '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="window.top.pwned = 1">' +
  '<script>window.top.pwned = 1</script><rect width="40" height="30" fill="teal"/></svg>';

journey("hostile names and drawings", {}, (step) => {
  step("are shown as text and as pictures, and nothing runs", async (page) => {
    await signIn(page, "/files");
    const token = (await ask(page, "/api/session")).csrfToken;
    for (const name of [HOSTILE[0], "תיקיה של <b>", HOSTILE[4], "x".repeat(120)]) {
      const made = await page.evaluate(
        async ([name, token]) =>
          (
            await fetch("/api/folders", {
              method: "POST",
              headers: { "content-type": "application/json", "x-csrf-token": token },
              body: JSON.stringify({ name, parentId: null }),
            })
          ).status,
        [name, token],
      );
      assert.equal(made, 201, name);
    }
    const files = HOSTILE.map((name, i) => ({ name, mimeType: "image/png", buffer: png(900 + i) }));
    files.push({ name: "drawing.svg", mimeType: "image/svg+xml", buffer: Buffer.from(DRAWING) });
    files.push({
      name: "page.html",
      mimeType: "text/html",
      buffer: Buffer.from("<script>window.pwned=1</script>"),
    });
    await page.setInputFiles("[data-pick=files]", files);
    await headline(page, `${files.length} files uploaded`);
    await page.waitForFunction(() => document.querySelectorAll(".files-list [data-index]").length > 10);
    await expectAccessible(page, "hostile names in the grid");
    await page.locator(".choice label").nth(1).click();
    await expectAccessible(page, "hostile names in the list");
    for (const name of ["drawing.svg", "page.html", "onerror"]) {
      await page.fill("[type=search]", name);
      await page.waitForFunction(
        (name) =>
          document.querySelector(".page-aside")?.textContent.includes("found") &&
          new URLSearchParams(location.search).get("q") === name,
        name,
      );
      await page.locator(".files-list [data-index]", { hasText: name }).last().click();
      await page.waitForSelector(".pane");
      await page.keyboard.press("Escape");
    }
    const pictures = await page.evaluate(() =>
      performance
        .getEntriesByType("resource")
        .filter(({ initiatorType }) => initiatorType === "img")
        .map(({ name }) => new URL(name).pathname),
    );
    assert.ok(pictures.length > 0);
    assert.deepEqual(
      pictures.filter((path) => !path.endsWith("/preview")),
      [],
      "pictures are the service's own previews",
    );
    assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
  });
});

journey("files of a viewer", { expected: [[404, /share$/]] }, (step) => {
  step("are looked at and downloaded, and not changed", async (page) => {
    await page.goto(scene.viewer);
    await page.fill("input[name=newPassword]", "only looking here");
    await page.click("button[type=submit]");
    await shown(page);
    await visit(page, "/files");
    await cell(page, "Holiday").waitFor();
    for (const name of ["New folder", "Upload"])
      assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    await enter(page, "Holiday");
    assert.equal(await page.getByRole("button", { name: "Share", exact: true }).count(), 0);
    await page.waitForSelector(".files-list [data-index='1'] input");
    await page.locator(".files-list [data-index='1'] input").click();
    await chosen(page, 1);
    assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Download zip" }).count(), 1);
    await expectAccessible(page, "files of a viewer");
  });
});
