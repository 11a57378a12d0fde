// Observes one page: its states and texts over time, its errors, and the targets of its requests.
import { writeFileSync } from "node:fs";

/** Interval at which the page's `window.sluice` is read. */
const POLL_MS = 50;
/** Advance beyond the elapsed time from which on media counts as skipped. */
const JUMP_S = 1;
const FASTEST_RATE = 1.5;

export class Observer {
  constructor(page) {
    this.page = page;
    this.openedAt = performance.now();
    this.states = [];
    this.jumps = [];
    this.consoleErrors = [];
    this.foreignRequests = [];
    page.on("console", (message) => {
      if (message.type() === "error") this.consoleErrors.push(message.text());
    });
    page.on("pageerror", (error) => this.consoleErrors.push(String(error)));
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (/^(https?|wss?):$/.test(url.protocol) && url.origin !== this.origin)
        this.foreignRequests.push(request.url());
    });
  }

  async open(url) {
    this.origin = new URL(url).origin;
    this.openedAt = performance.now();
    this.states = [];
    this.jumps = [];
    this.seen = null;
    await this.page.goto(url, { waitUntil: "domcontentloaded" });
    this.watching ??= setInterval(() => this.sample().catch(() => undefined), POLL_MS);
  }

  get atMs() {
    return Math.round(performance.now() - this.openedAt);
  }

  /** The page's `window.sluice`, and the words that can be read on it. */
  async sample() {
    const seen = await this.evaluate(account);
    if (seen.state && this.states.at(-1)?.state !== seen.state) {
      this.states.push({ state: seen.state, atMs: this.atMs, text: seen.text });
    }
    const sample = { atMs: this.atMs, ...seen };
    this.noteJump(sample);
    return sample;
  }

  noteJump(sample) {
    const before = this.seen;
    this.seen = sample;
    if (!["live", "stalled"].includes(before?.state) || sample.state !== "live") return;
    // By the page's clock: an answer may come late.
    const allowedS = ((sample.lookedAtMs - before.lookedAtMs) / 1000) * FASTEST_RATE + JUMP_S;
    if (sample.currentTime - before.currentTime > allowedS) {
      this.jumps.push({ atMs: sample.atMs, from: before.currentTime, to: sample.currentTime });
    }
  }

  /** Playwright's own `evaluate` and `screenshot` count as a user's gesture, which would allow audio; these do not. */
  async evaluate(expression) {
    const session = await this.devtools();
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression: `(${expression})()`,
      returnByValue: true,
      userGesture: false,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async screenshot(path) {
    const session = await this.devtools();
    const { data } = await session.send("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  async devtools() {
    this.session ??= await this.page.context().newCDPSession(this.page);
    return this.session;
  }

  /** Samples until `condition(sample)` holds. Throws with the last sample after `seconds`. */
  async until(what, seconds, condition) {
    const deadline = performance.now() + seconds * 1000;
    let seen = null;
    while (performance.now() < deadline) {
      seen = await this.sample();
      if (condition(seen)) return seen;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    throw new Error(`not within ${seconds} s: ${what}; last seen ${JSON.stringify(seen)}`);
  }

  untilState(state, seconds) {
    return this.until(`state ${state}`, seconds, (seen) => seen.state === state);
  }

  /** Waits until playback has advanced by `byS` seconds of media. */
  async untilPlayed(byS, seconds) {
    let from = null;
    return this.until(`${byS} s of video`, seconds, (seen) => {
      if (from === null || seen.currentTime < from) from = seen.currentTime;
      return ["live", "playing"].includes(seen.state) && seen.currentTime - from >= byS;
    });
  }

  summary() {
    clearInterval(this.watching);
    const { states, jumps, consoleErrors, foreignRequests } = this;
    return { states, jumps, consoleErrors, foreignRequests };
  }
}

/** Runs in the page. */
function account() {
  const visible = (id) => {
    const element = document.getElementById(id);
    return element?.checkVisibility() ? element.textContent.trim() : "";
  };
  return {
    lookedAtMs: performance.timeOrigin + performance.now(),
    ...globalThis.sluice,
    text: [visible("title"), visible("detail"), visible("notice")].filter(Boolean).join(" | "),
    badge: visible("badge"),
    tapToUnmute: visible("unmute") !== "",
  };
}
