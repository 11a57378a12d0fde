import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { followChanges, type Message, onChanges, onHealth } from "./changes";
import { offlineSince } from "./connection";
import { progressOf } from "./progress";
import { isSessionOver, session } from "./session";

const opened: Source[] = [];

/** Stands for the browser's, with events that the test sends. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  readyState = 1;

  constructor(readonly url: string) {
    super();
    opened.push(this);
  }

  send(name: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }

  close() {
    this.readyState = Source.CLOSED;
  }
}

const page = Object.assign(new EventTarget(), { hidden: false });
Object.assign(globalThis, { EventSource: Source, document: page });

function hide(hidden: boolean) {
  page.hidden = hidden;
  page.dispatchEvent(new Event("visibilitychange"));
}

const open = () => opened.filter((source) => source.readyState !== Source.CLOSED);
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("one stream a tab, closed while nothing can be seen or reached", async () => {
  const fetched = mock.method(globalThis, "fetch", async () => new Response("{}", { status: 401 }));
  const seen: Message[] = [];
  const end = onChanges(["file", "folder"], (message) => seen.push(message));
  const ofOne: Message[] = [];
  onChanges(["file"], (message) => ofOne.push(message), "f1");
  followChanges();
  assert.equal(opened.length, 0, "no stream without a session");
  session.value = {
    user: { id: "u", username: "admin", role: "admin", operator: true },
    account: { id: "a", name: "Main", plan: "unlimited" },
    csrfToken: "t",
  };
  assert.equal(open().length, 1);

  const first = open()[0] as Source;
  first.send("resync", { reason: "begin", kinds: null });
  assert.deepEqual(seen, [], "what is on the screen was loaded while the first stream began");
  first.send("change", { kind: "file", id: "f2", action: "created" });
  first.send("change", { kind: "job", id: "j1", action: "created" });
  first.send("change", { kind: "file", id: null, action: "changed" });
  first.send("resync", { reason: "lagged", kinds: ["folder"] });
  assert.deepEqual(
    seen.map(({ event, kind }) => `${event} ${kind}`),
    ["change file", "change file", "resync folder"],
  );
  assert.deepEqual(
    ofOne.map((message) => "id" in message && message.id),
    [null],
    "a change without id may be of any",
  );

  first.send("progress", { kind: "job", id: "j1", percent: 40, queuePlace: null });
  assert.deepEqual(progressOf("j1"), { percent: 40, queuePlace: null });
  first.send("resync", { reason: "lagged", kinds: ["job"] });
  assert.equal(progressOf("j1"), undefined, "records that are loaded again are newer");

  hide(true);
  assert.equal(open().length, 0);
  hide(false);
  seen.length = 0;
  open()[0]?.send("resync", { reason: "begin", kinds: null });
  assert.deepEqual(seen, [{ event: "resync", kind: "file" }], "later streams begin with everything");
  end();

  offlineSince.value = new Date();
  assert.equal(open().length, 0);
  offlineSince.value = null;
  assert.equal(open().length, 1);

  const endHealth = onHealth("i1", () => {});
  assert.deepEqual(
    open().map(({ url }) => url),
    ["/api/changes?health=i1"],
  );
  endHealth();
  assert.deepEqual(
    open().map(({ url }) => url),
    ["/api/changes"],
  );

  const last = open()[0] as Source;
  last.close();
  last.dispatchEvent(new Event("error"));
  await settled();
  await settled();
  assert.equal(fetched.mock.callCount(), 1);
  assert.equal(isSessionOver.value, true, "a stream that ends for good asks whether the session has ended");
  assert.equal(open().length, 0);
});
