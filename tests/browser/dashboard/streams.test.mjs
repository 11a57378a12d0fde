// Video streams: made of an upload, watched before they are ready, captions, signed playback and tokens, code for other pages;
// by keyboard, with hostile titles, and as a viewer.
import assert from "node:assert/strict";
import {
  ask,
  call,
  closed,
  expectAccessible,
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
  visit,
} from "./support.mjs";

const tab = async (page, name) => {
  await page.locator(".tabs a", { hasText: name }).click();
  await page.locator(".tabs a[aria-current]", { hasText: name }).waitFor();
};
const status = (page, wanted) =>
  page.waitForFunction(
    (wanted) => document.querySelector(".page-aside .tag")?.textContent === wanted,
    wanted,
    { timeout: 2 * PATIENCE_MS },
  );
/** Waits until the player shows a frame behind the first second. */
const plays = (page) =>
  page.waitForFunction(() => {
    const video = document.querySelector(".stream-video");
    if (!video) return false;
    video.muted = true;
    if (video.paused) video.play().catch(() => {});
    return video.currentTime > 1;
  });
const CAPTIONS = "1\n00:00:01,000 --> 00:00:03,000\nHello.\n";
const captions = (text, name = "english.srt") => ({
  name,
  mimeType: "application/x-subrip",
  buffer: Buffer.from(text),
});
/** Asks as somebody who has no session. */
const outside = (path) => fetch(new URL(path, scene.base));

let stream;

journey(
  "video streams",
  {
    expected: [
      [400, /\/captions$/],
      [415, /\/api\/video\/streams$/],
    ],
  },
  (step, at) => {
    step("say what they are for when there is none", async (page) => {
      await signIn(page, "/streams");
      await page.waitForSelector(".empty");
      await expectAccessible(page, "no streams");
    });

    step("are made of an upload", async (page) => {
      await press(page, "New stream");
      await press(page, "Make the stream");
      await page.locator("dialog [role=alert]", { hasText: "Choose a file first" }).waitFor();
      await page.setInputFiles("input[data-pick=stream]", scene.long);
      await page.fill("dialog [name=title]", "The reef at night");
      await page.locator("dialog summary").click();
      await page.fill("dialog [name=segmentDuration]", "2");
      await expectAccessible(page, "a new stream");
      await inDialog(page, "Make the stream");
      await closed(page);
      await page.waitForURL(/\/streams\/[0-9a-f-]{36}$/);
      stream = new URL(page.url()).pathname.split("/").at(-1);
    });

    step("play before they are ready", async (page) => {
      const shownAt = await page.waitForFunction(() => {
        const isThere = document.querySelector(".stream-video");
        return isThere && document.querySelector(".page-aside")?.innerText;
      });
      assert.match(await shownAt.jsonValue(), /in progress[\s\S]*plays already/);
      await plays(page);
      await expectAccessible(page, "a stream in progress");
      await visit(page, "/streams");
      await page.waitForSelector(".stream-list progress");
      await expectAccessible(page, "streams");
    });

    step("are listed with their renditions once they are ready", async (page) => {
      await visit(page, `/streams/${stream}`);
      await status(page, "ready");
      await plays(page);
      const { stream: record } = await ask(page, `/api/video/streams/${stream}`);
      const rows = page.locator("main tbody tr");
      await page.waitForFunction(
        (count) => document.querySelectorAll("main tbody tr").length === count,
        record.renditions.length,
      );
      assert.match(await rows.first().innerText(), /160 × 90[\s\S]*bit\/s[\s\S]*avc1/);
      await expectAccessible(page, "a stream");
      await screenshots(page, "stream");
      await visit(page, "/streams");
      await page.locator(".stream-list li", { hasText: "12:00" }).waitFor();
      await screenshots(page, "streams");
      await page.selectOption("select[name=status]", "failed");
      await page.getByText("No stream has this status.").waitFor();
      await page.selectOption("select[name=status]", "");
    });

    step("get captions and lose them", async (page) => {
      await visit(page, `/streams/${stream}/captions`);
      await page.setInputFiles("main input[type=file]", captions("this is no caption"));
      await page.fill("[name=language]", "en");
      await press(page, "Add");
      await page.locator("main .field-error, main [role=alert]").first().waitFor();
      await page.setInputFiles("main input[type=file]", captions(CAPTIONS));
      await page.fill("[name=label]", HOSTILE[0]);
      await page.getByLabel("Turn on by default").check();
      await press(page, "Add");
      await page.locator(".rows li", { hasText: HOSTILE[0] }).waitFor();
      await expectAccessible(page, "captions");
      await tab(page, "Watch");
      await page.waitForFunction(() => document.querySelector(".stream-video")?.textTracks.length === 1);
      await tab(page, "Captions");
      await page.getByRole("button", { name: `Remove ${HOSTILE[0]}` }).click();
      await inDialog(page, "Remove");
      await closed(page);
      assert.equal((await ask(page, `/api/video/streams/${stream}`)).stream.captions.length, 0);
    });

    step(
      "are played elsewhere only with a token once they are signed, and here all the same",
      async (page) => {
        const { stream: record } = await ask(page, `/api/video/streams/${stream}`);
        const { pathname } = new URL(record.manifestUrl);
        assert.equal((await outside(pathname)).status, 200);
        await tab(page, "Access");
        await page.getByRole("switch").click();
        await page.waitForFunction(() => document.querySelector("[role=switch]")?.checked);
        assert.equal((await outside(pathname)).status, 403);
        await page.selectOption("[name=expiresIn]", "3600");
        await press(page, "Make a token");
        const address = page.locator(".copy-field", { hasText: "Address for players" }).locator("input");
        await address.waitFor();
        assert.equal((await outside(new URL(await address.inputValue()).pathname)).status, 200);
        await page.fill("[name=allowedDomains]", "shop.example\n*.example.org");
        await page.fill("[name=tokenTtlSeconds]", "120");
        await press(page, "Save");
        await page.locator(".toast", { hasText: "Saved" }).waitFor();
        await expectAccessible(page, "access");
        await screenshots(page, "stream-access", { phone: false });
        const { stream: changed } = await ask(page, `/api/video/streams/${stream}`);
        assert.deepEqual(changed.allowedDomains, ["shop.example", "*.example.org"]);
        assert.equal(changed.tokenTtlSeconds, 120);
        await tab(page, "Watch");
        await plays(page);
        await tab(page, "Embed");
        await page.getByText("put a token of your server in place of TOKEN").waitFor();
        await expectAccessible(page, "code of a signed stream");
      },
    );

    step("play in a page of another site by their code", async (page) => {
      const body = { access: "public", allowedDomains: [] };
      assert.equal((await call(page, "PATCH", `/api/video/streams/${stream}`, body)).status, 200);
      await page.waitForFunction(
        () => document.querySelector("main textarea")?.value.includes("TOKEN") === false,
      );
      const code = await page.locator("main textarea").first().inputValue();
      const other = await at.context().newPage();
      await other.setContent(`<!doctype html><title>Bare</title>${code}`);
      const frame = other.frameLocator("iframe");
      await frame.locator("video").waitFor();
      await other.close();
    });

    step("are renamed and deleted", async (page) => {
      await tab(page, "Settings");
      await page.fill("[name=title]", HOSTILE[3]);
      await press(page, "Save");
      await page.waitForFunction((title) => document.querySelector("h1")?.textContent === title, HOSTILE[3]);
      await expectAccessible(page, "settings of a stream");
      await press(page, "Delete");
      await page.waitForSelector("dialog");
      await expectAccessible(page, "deleting a stream");
      await inDialog(page, "Delete");
      await page.waitForURL(/\/streams$/);
      assert.equal((await ask(page, "/api/video/streams")).streams.length, 0);
    });

    step("of files that are no video say why", async (page) => {
      await press(page, "New stream");
      await page.setInputFiles("input[data-pick=stream]", {
        name: "fake.mp4",
        mimeType: "video/mp4",
        buffer: Buffer.from("no video at all"),
      });
      await inDialog(page, "Make the stream");
      await page.locator("dialog [role=alert]").waitFor();
      await expectAccessible(page, "a rejected stream");
      await page.keyboard.press("Escape");
      await closed(page);
      const { files } = await ask(page, "/api/files?q=fake.mp4");
      await call(page, "DELETE", `/api/files/${files[0].id}`);
    });

    step("with hostile titles are shown as text", async (page) => {
      const { files } = await ask(page, "/api/files?type=video");
      for (const title of HOSTILE) {
        const { status: code } = await call(page, "POST", "/api/video/streams", {
          sourceFileId: files[0].id,
          title: title.slice(0, 200),
          profile: "basic",
        });
        assert.equal(code, 202);
      }
      await visit(page, "/streams");
      await page.waitForFunction(
        (count) => document.querySelectorAll(".stream-list li").length === count,
        HOSTILE.length,
      );
      await expectAccessible(page, "hostile titles");
      assert.equal(await page.evaluate(() => globalThis.pwned), undefined);
      const { streams } = await ask(page, "/api/video/streams");
      for (const { id } of streams.slice(1)) await call(page, "DELETE", `/api/video/streams/${id}`);
    });
  },
);

journey("video streams by keyboard", {}, (step) => {
  step("are opened, and made of a stored file", async (page) => {
    await signIn(page, "/streams");
    await tabTo(page, ".page-actions .btn");
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog");
    await page.getByRole("button", { name: "From Files" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector(".choose-file");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator("dialog .stream-source").waitFor();
    await tabTo(page, "dialog [name=title]");
    await page.keyboard.type("By keys");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("h1")?.textContent === "By keys");
    const id = new URL(page.url()).pathname.split("/").at(-1);
    // The screen of a stream would ask for it once more when it is gone.
    await visit(page, "/streams");
    await call(page, "DELETE", `/api/video/streams/${id}`);
  });
});

journey("video streams of a viewer", { expected: [[403, /^\/api\/video/]] }, (step) => {
  step("are looked at, and a forged call is refused", async (page) => {
    await page.goto(scene.viewer);
    await page.fill("input[name=newPassword]", "only looking here");
    await page.click("button[type=submit]");
    await shown(page);
    await visit(page, "/streams");
    await page.waitForSelector(".stream-list");
    assert.equal(await page.getByRole("button", { name: "New stream" }).count(), 0);
    const { streams } = await ask(page, "/api/video/streams");
    for (const part of ["captions", "access", "embed", "settings"]) {
      await visit(page, `/streams/${streams[0].id}/${part}`);
      for (const name of ["Add", "Save", "Delete", "Make a token"])
        assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, `${part}: ${name}`);
      await expectAccessible(page, `${part} of a viewer`);
    }
    const path = `/api/video/streams/${streams[0].id}`;
    for (const [method, where, body] of [
      ["PATCH", path, { access: "signed" }],
      ["POST", `${path}/playback-token`, {}],
      ["DELETE", path],
    ])
      assert.equal((await call(page, method, where, body)).status, 403, `${method} ${where}`);
  });
});
