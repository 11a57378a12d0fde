// The first visit and what surrounds every screen: welcome link, sign-in, navigation, search and commands, help, colour
// scheme, a lost connection, an ended session, signing out.
import assert from "node:assert/strict";
import {
  expectAccessible,
  expectNoSecrets,
  hasFocus,
  journey,
  PHONE,
  scene,
  screenshots,
  shown,
  signIn,
  tabTo,
  titled,
  visit,
} from "./support.mjs";

const NEW_PASSWORD = "a password of my own";
/** One pixel. */
const PHOTO = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);
/** The user of the welcome link. */
const guest = { username: scene?.guest, password: NEW_PASSWORD };

journey(
  "the welcome link",
  {
    expected: [
      [400, /welcome$/],
      [410, /welcome$/],
    ],
  },
  (step, at) => {
    step("asks for a password and nothing else, and is gone from the address", async (page) => {
      await page.goto(scene.welcome);
      await page.waitForSelector("input[name=newPassword]");
      assert.equal(await page.evaluate(() => location.hash), "");
      assert.equal(await page.locator("input:visible:not([type=checkbox], .visually-hidden)").count(), 1);
      await expectAccessible(page, "welcome");
      await screenshots(page, "welcome");
    });

    step("leads to the overview by keyboard alone", async (page) => {
      await page.focus("input[name=newPassword]");
      await page.keyboard.type(NEW_PASSWORD);
      await page.keyboard.press("Enter");
      await shown(page);
      await titled(page, "Overview – Sluice");
      await expectNoSecrets(page);
    });

    step("works once", async () => {
      const page = await at.context().newPage();
      at.watch(page);
      await page.goto(scene.welcome);
      await page.fill("input[name=newPassword]", "another password");
      await page.click("button[type=submit]");
      await page.waitForSelector(".callout");
      await expectAccessible(page, "used welcome link");
      await page.close();
    });
  },
);

journey("the shell", { expected: [[401, /./]] }, (step, at) => {
  step("asks for the password first, and comes back to the screen that was asked for", async (page) => {
    await page.goto(`${scene.base}/app/webhooks?x=1`);
    await page.fill("input[name=username]", guest.username);
    await page.fill("input[name=password]", "wrong");
    await page.keyboard.press("Enter");
    await page.waitForSelector("form [role=alert]");
    await expectAccessible(page, "sign-in");
    await screenshots(page, "sign-in");
    await page.fill("input[name=password]", guest.password);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${scene.base}/app/webhooks?x=1`);
    await shown(page);
  });

  step("names each screen and gives its heading the focus", async (page) => {
    for (const name of ["Live", "Files", "Images", "Webhooks", "Overview"]) {
      await page.click(`.side a:has-text("${name}")`);
      await titled(page, `${name} – Sluice`);
      await page.waitForFunction(() => document.activeElement.tagName === "H1");
    }
    await page.goBack();
    await page.waitForFunction(() => document.title.startsWith("Webhooks"));
    await expectAccessible(page, "webhooks");
  });

  step("goes anywhere by search and commands", async (page) => {
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog [role=option]");
    await page.waitForFunction(() => document.activeElement.getAttribute("role") === "combobox");
    await expectAccessible(page, "search and commands");
    await page.keyboard.type("usage");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.title.startsWith("Usage"));
    await page.keyboard.press("Control+k");
    await page.waitForFunction(() => document.activeElement.getAttribute("role") === "combobox");
    await page.keyboard.type("not a name of anything");
    await page.waitForFunction(() => document.querySelectorAll("dialog [role=option]").length === 0);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
  });

  step("lists its keys, and what was done as curl", async (page) => {
    await page.keyboard.press("?");
    await page.waitForSelector("dialog kbd");
    await expectAccessible(page, "keys");
    await page.keyboard.press("Escape");
    await visit(page, "/");
    await tabTo(page, ".top-user");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.getAttribute("role") === "menuitem");
    await page.click("[role=menuitem]:has-text('Show as curl')");
    const command = await page.locator("dialog textarea").first().inputValue();
    assert.ok(command.startsWith("curl -s ") && command.includes("Bearer $KEY"), command);
    await expectAccessible(page, "show as curl");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.activeElement.matches(".top-user"));
  });

  step("keeps the chosen colour scheme, and nothing else", async (page) => {
    const choose = async (scheme) => {
      await page.click(".top-user");
      await page.click("[role=menuitem]:has-text('Colour scheme')");
      await page.click(`dialog label:has-text('${scheme}')`);
      await page.keyboard.press("Escape");
    };
    await choose("Dark");
    await page.reload();
    await shown(page);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.scheme), "dark");
    assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage })), '{"sluice.scheme":"dark"}');
    await choose("As the system");
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    await expectNoSecrets(page);
  });

  step("says what is not there", async (page) => {
    await visit(page, "/nothing/at/all");
    await expectAccessible(page, "not found");
    await visit(page, "/%zz");
    await titled(page, "Not found – Sluice");
  });

  step("asks for the password when the session has ended, and goes on where it was", async (page) => {
    await visit(page, "/");
    await at.context().clearCookies();
    await page.click(".side a:has-text('Settings')");
    await page.waitForSelector("dialog:has-text('Your session is over')");
    await expectAccessible(page, "session over");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    // The browser closes it at the second Esc, and it opens again.
    await page.waitForFunction(() => document.activeElement.name === "password");
    await page.keyboard.type(guest.password);
    await page.keyboard.press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    await shown(page);
  });

  step("leaves nothing behind when one signs out", async (page) => {
    await visit(page, "/");
    await page.click(".top-user");
    await page.click("[role=menuitem]:has-text('Sign out')");
    await page.waitForSelector("input[name=password]");
    await page.goBack();
    await page.waitForSelector("input[name=password]");
    assert.equal(await page.locator(".shell").count(), 0);
    await expectNoSecrets(page);
  });
});

journey("the overview", {}, (step) => {
  step("begins with the first steps, and shows what is on air", async (page) => {
    await signIn(page, "/", guest);
    await page.waitForSelector(`.on-air-row:has-text("${scene.onAir}") img`);
    await page.waitForFunction(() => document.querySelector(".on-air-row img")?.naturalWidth > 0);
    await page.waitForSelector(`.feed-row:has-text("${scene.onAir} is on air")`);
    await page.waitForFunction(() => document.querySelectorAll(".step").length === 4);
    await page.waitForFunction(() => document.querySelectorAll(".step-done").length === 2);
    await expectAccessible(page, "overview");
    await screenshots(page, "overview");
  });

  step("hides the first steps for good", async (page) => {
    await page.click("button:has-text('Hide')");
    await page.reload();
    await page.waitForSelector(".on-air-row");
    assert.equal(await page.locator(".step").count(), 0);
    await page.evaluate(() => localStorage.clear());
  });

  step(
    "stores a dropped photo, and shows it in the builder with a key that is made on the way",
    async (page) => {
      await visit(page, "/");
      await page.setInputFiles("input[type=file]", {
        name: "photo.png",
        mimeType: "image/png",
        buffer: PHOTO,
      });
      await page.waitForURL(/\/app\/images\?file=[0-9a-f-]{36}&key=[0-9a-f-]{36}$/);
      await shown(page);
    },
  );
});

journey("a lost connection", { expected: [[0, /./]] }, (step, at) => {
  step("is said over what is shown, and healed by itself", async (page) => {
    await signIn(page, "/", guest);
    await at.context().setOffline(true);
    await page.click(".side a:has-text('Overview')");
    await page.click(".side a:has-text('Settings')");
    await page.click(".side a:has-text('Overview')");
    await page.waitForSelector(".banner:has-text('No connection since')");
    await expectAccessible(page, "offline");
    await at.context().setOffline(false);
    await page.waitForSelector(".banner", { state: "detached" });
    await shown(page);
  });
});

journey("on a phone", { ...PHONE, hasTouch: true, isMobile: true }, (step) => {
  step("everything is reached by touch", async (page) => {
    await signIn(page, "/", guest);
    await page.tap(".phone a:has-text('Files')");
    await page.waitForFunction(() => document.title.startsWith("Files"));
    await page.tap(".phone button:has-text('More')");
    await page.tap("dialog a:has-text('Webhooks')");
    await page.waitForFunction(() => document.title.startsWith("Webhooks"));
    await page.tap(".top-search");
    await page.tap("dialog [role=option]:has-text('Overview')");
    await page.waitForFunction(() => document.title.startsWith("Overview"));
    const small = await page.evaluate(() =>
      [...document.querySelectorAll("button, .btn, .phone a")]
        .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 38)
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(small, [], "targets for fingers");
  });

  step("the heading is what a screen begins with", async (page) => {
    await hasFocus(page, "H1 Overview");
  });
});
