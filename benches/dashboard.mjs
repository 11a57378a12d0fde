// Figures of the dashboard's screens in Chromium, for the scenario `dashboard` of the load harness, which starts it beside a large
// account: `SLUICE_URL`, `SLUICE_PASSWORD`. Prints a line for each figure with its bar; asserts nothing.
import { openChromium } from "../tests/browser/chromium.mjs";

const base = process.env.SLUICE_URL;
const password = process.env.SLUICE_PASSWORD;
/** Measured times of each kind. */
const TIMES = 20;
const DEADLINE_MS = 15_000;

const { page, close } = await openChromium();
page.setDefaultTimeout(DEADLINE_MS);
try {
  await signIn();
  await figure("Overview", overview);
  await figure("change of screen", changeOfScreen);
  await figure("files", files);
  await figure("live inputs", liveInputs);
} finally {
  await close();
}

async function signIn() {
  await page.goto(`${base}/app/sign-in`);
  await page.fill('input[name="username"]', "admin");
  await page.fill('input[name="password"]', password);
  await Promise.all([page.waitForURL((url) => !url.pathname.endsWith("/sign-in")), page.keyboard.press("Enter")]);
  await page.waitForSelector("main h1");
}

/** A screen that is not there, or differs, costs its own figures only. */
async function figure(title, measure) {
  console.log(`screen: ${title}`);
  try {
    await measure();
  } catch (error) {
    console.log(`  left out: ${String(error.message ?? error).split("\n")[0]}`);
  }
}

function print(title, times, bar) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share) => sorted[Math.floor((sorted.length - 1) * share)];
  console.log(`  ${title}: median ${at(0.5).toFixed(0)}, 95 % ${at(0.95).toFixed(0)} (bar: ${bar})`);
}

/** Loads as a browser that has never been here, but for its session. */
async function overview() {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const [content, filled, requests] = [[], [], []];
  for (let time = 0; time < TIMES; time++) {
    await session.send("Network.clearBrowserCache");
    let asked = 0;
    const count = () => asked++;
    page.on("request", count);
    await page.goto(`${base}/app`, { waitUntil: "commit" });
    await page.waitForSelector("main h1");
    await page.waitForFunction(() => document.querySelector("main") && !document.querySelector("main [aria-busy=true]"));
    filled.push(await page.evaluate(() => performance.now()));
    content.push(
      await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN),
    );
    page.off("request", count);
    requests.push(asked);
  }
  print("first content, ms", content, "300");
  print("filled, ms", filled, "600");
  print("requests", requests, "10");
}

/** From the click to the other screen's heading. */
async function changeOfScreen() {
  const times = [];
  for (let time = 0; time < TIMES; time++) {
    for (const to of ["/app/live", "/app/files"]) {
      times.push(
        await page.evaluate(async (to) => {
          const begun = performance.now();
          const before = document.title;
          document.querySelector(`nav a[href$="${to}"]`).click();
          while (document.title === before) await new Promise(requestAnimationFrame);
          return performance.now() - begun;
        }, to),
      );
    }
  }
  print("ms", times, "150");
}

async function rowsOf(path) {
  const begun = performance.now();
  await page.goto(`${base}${path}`, { waitUntil: "commit" });
  await page.waitForSelector("[role=grid] [data-index] :not(:empty)");
  return performance.now() - begun;
}

async function files() {
  const first = [];
  for (let time = 0; time < TIMES; time++) first.push(await rowsOf("/app/files"));
  print("first rows, ms", first, "400");
  const jumps = await page.evaluate(async (times) => {
    const scroller = document.querySelector(".vlist-scroll");
    const jumps = [];
    let requests = 0;
    const asked = new PerformanceObserver((list) => {
      requests += list.getEntries().length;
    });
    asked.observe({ type: "resource" });
    for (let time = 0; time < times; time++) {
      const begun = performance.now();
      scroller.scrollTop = (scroller.scrollHeight * ((time * 7919) % 1000)) / 1000;
      await new Promise(requestAnimationFrame);
      while (!isFilled(scroller)) await new Promise(requestAnimationFrame);
      jumps.push(performance.now() - begun);
    }
    asked.disconnect();
    return { jumps, requests, elements: scroller.querySelectorAll("*").length };

    function isFilled(scroller) {
      const { top, bottom } = scroller.getBoundingClientRect();
      const rows = [...scroller.querySelectorAll("[data-index]")].filter((row) => {
        const box = row.getBoundingClientRect();
        return box.bottom > top && box.top < bottom;
      });
      return rows.length > 0 && rows.every((row) => row.textContent.trim() !== "");
    }
  }, TIMES);
  print("jump anywhere, ms", jumps.jumps, "250");
  console.log(`  requests a jump: ${(jumps.requests / TIMES).toFixed(1)} (bar: 3); elements: ${jumps.elements} (bar: 400)`);
  const scroll = await page.evaluate(async () => {
    const scroller = document.querySelector(".vlist-scroll");
    let longest = 0;
    const tasks = new PerformanceObserver((list) => {
      for (const task of list.getEntries()) longest = Math.max(longest, task.duration);
    });
    tasks.observe({ type: "longtask" });
    const frames = [];
    scroller.scrollTop = 0;
    let before = await new Promise(requestAnimationFrame);
    const end = 20 * scroller.clientHeight;
    while (scroller.scrollTop < end) {
      scroller.scrollTop += 60;
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - before);
      before = now;
    }
    tasks.disconnect();
    frames.sort((a, b) => a - b);
    return { median: frames[Math.floor(frames.length / 2)], longest };
  });
  console.log(`  scrolling: ${(1000 / scroll.median).toFixed(0)} frames a second (bar: 55), longest task ${scroll.longest.toFixed(0)} ms (bar: 50)`);
}

async function liveInputs() {
  const first = [];
  for (let time = 0; time < TIMES; time++) first.push(await rowsOf("/app/live"));
  print("first rows, ms", first, "500");
}
