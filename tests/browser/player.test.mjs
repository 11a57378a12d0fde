// The player page against the mock service: everything a page must live through that is left open.
// Needs web/dist (`npm run build` in web), ffmpeg and Chromium.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openChromium } from "./chromium.mjs";
import { MockService } from "./mock/service.mjs";
import { Observer } from "./observer.mjs";

describe("the player page", () => {
  let service;
  let chromium;
  let observer;

  before(async () => {
    service = await new MockService({ reconnectWindowS: 42 }).start();
    chromium = await openChromium();
    observer = new Observer(chromium.page);
    await observer.open(service.url);
  });

  after(async () => {
    await chromium?.close();
    await service?.stop();
  });

  it("opened before the stream, it says what it waits for", async () => {
    const seen = await observer.untilState("waiting", 10);
    assert.match(seen.text, /Waiting for the stream to start/);
  });

  it("it plays by itself, muted, at the live edge", async () => {
    service.publish();
    await observer.untilState("live", 10);
    const seen = await observer.untilPlayed(3, 15);
    assert.equal(seen.muted, true);
    assert.equal(seen.tapToUnmute, true);
    await observer.until("the live edge", 10, ({ latency }) => latency !== null && latency < 3);
    await observer.until("badge", 5, ({ badge }) => /^Live · Low-latency HLS · \d\.\d s behind$/.test(badge));
  });

  it("the first click brings the audio", async () => {
    await chromium.page.click("#unmute");
    const seen = await observer.until("audio", 5, (now) => !now.muted);
    assert.equal(seen.tapToUnmute, false);
  });

  it("over a reconnect it says so, and continues with the same source", async () => {
    service.drop();
    const waiting = await observer.until(
      "curtain",
      10,
      (seen) => seen.state === "reconnecting" && seen.text !== "",
    );
    assert.match(
      waiting.text,
      /The encoder lost its connection.*Waiting for it to come back \(up to \d+ s\)/,
    );
    service.publish();
    await observer.untilState("live", 10);
    const seen = await observer.untilPlayed(3, 15);
    assert.equal(seen.muted, false);
    assert.equal(chromium.page.url(), service.url);
  });

  it("a restart of the service is waited out", async () => {
    await service.stop();
    const gone = await observer.untilState("unreachable", 10);
    assert.match(gone.text, /The service is restarting/);
    await service.start();
    await observer.untilState("reconnecting", 10);
    service.publish();
    await observer.untilState("live", 10);
    await observer.untilPlayed(3, 15);
  });

  it("it plays to the end, says so, and plays the next broadcast", async () => {
    service.end();
    const over = await observer.untilState("ended", 10);
    assert.match(over.text, /The stream has ended.*play by itself/);
    service.publish();
    await observer.untilState("live", 10);
    const seen = await observer.untilPlayed(3, 15);
    assert.equal(seen.muted, false, "audio stays on over broadcasts");
  });

  it("keys pause, resume and mute", async () => {
    await chromium.page.keyboard.press("k");
    await observer.until("pause", 5, (seen) => seen.paused);
    await chromium.page.keyboard.press("k");
    await observer.untilPlayed(1, 10);
    await chromium.page.keyboard.press("m");
    await observer.until("mute", 5, (seen) => seen.muted);
  });

  it("an unknown stream is named as such", async () => {
    await observer.open(service.url.replace("pb_mock", "pb_other"));
    const seen = await observer.untilState("unknown", 10);
    assert.match(seen.text, /Unknown stream/);
  });

  it("nothing was asked of anybody else, and nothing broke the content policy", () => {
    const { foreignRequests, consoleErrors } = observer.summary();
    assert.deepEqual(foreignRequests, []);
    const unexpected = consoleErrors.filter((text) => !/Failed to load resource/.test(text));
    assert.deepEqual(unexpected, []);
  });
});
