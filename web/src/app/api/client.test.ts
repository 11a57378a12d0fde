import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { api } from "./client";
import { offlineSince } from "./connection";
import type { ApiError } from "./error";
import { isSessionOver, type Session, session, signedIn } from "./session";

interface Sent {
  path: string;
  method: string;
  token: string | null;
}

const sent: Sent[] = [];

/** Answers requests one after the other by these statuses and bodies; "fail" for none at all. */
function answer(...answers: ([number, unknown] | "fail")[]) {
  globalThis.fetch = async (path, init) => {
    sent.push({
      path: String(path),
      method: init?.method ?? "GET",
      token: new Headers(init?.headers).get("x-csrf-token"),
    });
    const next = answers.shift();
    if (!next || next === "fail") throw new TypeError("no network");
    return new Response(JSON.stringify(next[1]), { status: next[0] });
  };
}

const of = (csrfToken: string, id = "u1"): Session => ({
  user: { id, username: "admin", role: "admin", operator: true },
  account: { id: "a1", name: "Main", plan: "unlimited" },
  csrfToken,
});

afterEach(() => {
  sent.length = 0;
  offlineSince.value = null;
  isSessionOver.value = false;
});

test("a change carries the session's token, a read does not", async () => {
  session.value = of("t1");
  answer([200, { ok: 1 }], [201, { ok: 2 }]);
  await api.get("/api/things", { query: { q: "a b", none: undefined } });
  await api.post("/api/things", { name: "x" });
  assert.deepEqual(sent, [
    { path: "/api/things?q=a+b", method: "GET", token: null },
    { path: "/api/things", method: "POST", token: "t1" },
  ]);
});

test("a request of an ended session waits for the next one and is sent again with its token", async () => {
  session.value = of("t1");
  answer([401, { error: "sign in" }], [200, { done: true }]);
  const change = api.delete("/api/things/1");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isSessionOver.value, true);
  assert.equal(sent.length, 1);
  signedIn(of("t2"));
  assert.deepEqual(await change, { done: true });
  assert.equal(sent[1]?.token, "t2");
  assert.equal(isSessionOver.value, false);
});

test("a token of an older session is replaced, when the user signed in again in another tab", async () => {
  session.value = of("old");
  answer(
    [403, { error: "a change by session needs the session's csrfToken" }],
    [200, of("new")],
    [200, { done: true }],
  );
  assert.deepEqual(await api.post("/api/things"), { done: true });
  assert.deepEqual(
    sent.map(({ token }) => token),
    ["old", null, "new"],
  );
});

test("a rejected change is sent once", async () => {
  session.value = of("t1");
  answer([403, { error: "this needs scope admin", code: "insufficient_scope" }], [200, of("t1")]);
  await assert.rejects(api.post("/api/things"), {
    name: "ApiError",
    status: 403,
    code: "insufficient_scope",
  });
  assert.equal(sent.filter(({ path }) => path === "/api/things").length, 1);
});

test("no answer is an error of status 0, and changes are not even tried without connection", async () => {
  session.value = of("t1");
  answer("fail", [200, { status: "ok" }]);
  await assert.rejects(api.get("/api/things"), (error: ApiError) => error.status === 0);
  offlineSince.value = new Date();
  sent.length = 0;
  await assert.rejects(api.post("/api/things"), (error: ApiError) => error.status === 0);
  assert.deepEqual(sent, []);
});
