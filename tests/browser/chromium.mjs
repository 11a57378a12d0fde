// Starts Debian's Chromium as the tests want it: headless, a fresh profile, and silent towards the outside.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // The default of a desktop browser: no audio before the first click.
  "--autoplay-policy=document-user-activation-required",
];

/**
 * @param flags further flags of Chromium
 * @param host a name that leads to this machine, for pages without a secure context
 * @param options further options of Playwright, such as `javaScriptEnabled` and `hasTouch`
 * @returns {Promise<{page: import("playwright-core").Page, close: () => Promise<void>}>}
 */
export async function openChromium({
  width = 1280,
  height = 800,
  scheme = "light",
  host,
  flags = [],
  ...options
} = {}) {
  const profile = mkdtempSync(join(tmpdir(), "sluice-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [...FLAGS, ...flags, ...(host ? [`--host-resolver-rules=MAP ${host} 127.0.0.1`] : [])],
    viewport: { width, height },
    colorScheme: scheme,
    ...options,
  });
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
  };
  return { page: context.pages()[0] ?? (await context.newPage()), close };
}
