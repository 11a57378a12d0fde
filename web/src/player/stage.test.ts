import assert from "node:assert/strict";
import { test } from "node:test";
import { type Facts, isNewBroadcast, parseReply, type Reply, stageOf } from "./stage";

const still: Facts = {
  feed: "following",
  reply: null,
  supported: true,
  advancing: false,
  hasPlayed: false,
  paused: false,
  draining: false,
};

const reply = (state: Reply["state"]): Reply => ({ state, version: "1" });

test("every situation has its stage", () => {
  const table: [string, Partial<Facts>, string][] = [
    ["no player at all", { supported: false, reply: reply("live") }, "unsupported"],
    ["nothing known yet", { feed: "connecting" }, "connecting"],
    ["unknown playback id, even after an answer", { feed: "unknown", reply: reply("live") }, "unknown"],
    ["playback token refused", { feed: "forbidden" }, "forbidden"],
    [
      "service away while the buffer still plays",
      { feed: "failing", reply: reply("live"), advancing: true },
      "unreachable",
    ],
    ["service away from the start", { feed: "failing" }, "unreachable"],
    ["no broadcast", { reply: reply("idle") }, "waiting"],
    ["encoder there, no playlist yet", { reply: reply("starting") }, "starting"],
    ["playlist there, no frame yet", { reply: reply("live") }, "starting"],
    ["playing", { reply: reply("live"), advancing: true, hasPlayed: true }, "live"],
    ["paused by the viewer", { reply: reply("live"), hasPlayed: true, paused: true }, "live"],
    ["paused before the first frame", { reply: reply("live"), paused: true }, "starting"],
    ["starved", { reply: reply("live"), hasPlayed: true }, "stalled"],
    ["encoder lost", { reply: reply("reconnecting"), hasPlayed: true, advancing: true }, "reconnecting"],
    ["the last second before the end", { reply: reply("ended"), draining: true, advancing: true }, "live"],
    ["ended", { reply: reply("ended") }, "ended"],
  ];
  for (const [name, facts, expected] of table) {
    assert.equal(stageOf({ ...still, ...facts }), expected, name);
  }
});

test("a source is loaded again for another broadcast and for nothing else", () => {
  const table: [Reply["state"] | null, Reply["state"], boolean][] = [
    [null, "live", false],
    ["live", "live", false],
    ["live", "reconnecting", false],
    ["reconnecting", "live", false],
    ["live", "ended", false],
    ["ended", "starting", false],
    ["starting", "live", true],
    ["ended", "live", true],
    ["idle", "live", true],
    ["ended", "reconnecting", true],
  ];
  for (const [before, after, expected] of table) {
    const previous = before === null ? null : reply(before);
    assert.equal(isNewBroadcast(previous, reply(after)), expected, `${before} → ${after}`);
  }
  const named = (broadcast: string): Reply => ({ ...reply("live"), broadcast });
  assert.equal(isNewBroadcast(named("a"), named("a")), false);
  assert.equal(isNewBroadcast(named("a"), named("b")), true, "one broadcast ended and another began unseen");
  assert.equal(isNewBroadcast(reply("live"), named("b")), false);
});

test("what is not an answer of the service is refused", () => {
  for (const body of [
    null,
    7,
    "live",
    [],
    {},
    { state: "live" },
    { state: "on", version: "1" },
    { state: "live", version: 1 },
  ]) {
    assert.equal(parseReply(body), null, JSON.stringify(body));
  }
  assert.deepEqual(parseReply({ state: "ended", version: "a", reconnectUntil: 5, latency: "odd" }), {
    state: "ended",
    version: "a",
    reconnectUntil: null,
    latency: "low",
    broadcast: null,
  });
});
