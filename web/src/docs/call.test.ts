import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Call, callOf, startingValues } from "./call";
import { type Entry, entriesByTag, type OpenApi } from "./document";
import { exampleOf } from "./example";
import { isFound, wordsOf } from "./search";
import { LANGUAGES, type Language, snippet } from "./snippets";

const api = JSON.parse(readFileSync("../docs/reference/openapi.json", "utf8")) as OpenApi;
const entries = [...entriesByTag(api).values()].flat();
const BASE = "https://media.example.org";

function entryOf(method: string, path: string): Entry {
  const found = entries.find((entry) => entry.method === method && entry.path === path);
  assert.ok(found, `${method} ${path}`);
  return found;
}

const exampleCall = (entry: Entry): Call => callOf(api, entry, BASE, startingValues(api, entry));
const allIn = (language: Language) => entries.map((entry) => snippet(language, exampleCall(entry)));

/** Has a program read all examples; it fails at what it does not understand. */
function check(program: string, args: string[], input: string) {
  const env = { ...process.env, LC_ALL: "C.UTF-8" };
  const { stderr, status } = spawnSync(program, args, { input, env, encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

test("every operation has an example in each language, in its grammar, with the host", () => {
  assert.ok(entries.length > 100, `${entries.length} operations`);
  for (const language of LANGUAGES) {
    for (const text of allIn(language))
      assert.ok(text.includes(`${BASE}/`) && !/undefined|\[object/.test(text), text);
  }
  const parse = "import ast, json, sys\nfor text in json.load(sys.stdin): ast.parse(text)";
  check("python3", ["-c", parse], JSON.stringify(allIn("Python")));
  check("sh", ["-n"], allIn("curl").join("\n"));
  for (const text of allIn("JavaScript")) {
    const body = text.replace(/^import .*$/gm, "");
    assert.doesNotThrow(() => new Function(`return async () => {\n${body}\n}`), text);
  }
});

test("a call with JSON in three languages", () => {
  const call = exampleCall(entryOf("post", "/api/live/inputs"));
  assert.equal(
    snippet("curl", call),
    [
      `curl -X POST ${BASE}/api/live/inputs`,
      '-H "Authorization: Bearer $SLUICE_API_KEY"',
      '-H "Content-Type: application/json"',
      `-d '{"name":"Example"}'`,
    ].join(" \\\n  "),
  );
  assert.match(snippet("JavaScript", call), /method: "POST".*body: JSON\.stringify\(\{\s+"name": "Example"/s);
  assert.match(
    snippet("Python", call),
    /requests\.post\(.*os\.environ\['SLUICE_API_KEY'\].*json=\{\s+"name": "Example"/s,
  );
});

test("what was entered is in the call, quoted and encoded", () => {
  const entry = entryOf("get", "/api/files/search");
  const values = { ...startingValues(api, entry), parameters: { "query.q": "Jean's $HOME & co" } };
  const call = callOf(api, entry, BASE, values);
  assert.equal(call.url, `${BASE}/api/files/search?q=Jean%27s+%24HOME+%26+co`);
  const change = entryOf("patch", "/api/files/{id}");
  const changed = {
    ...startingValues(api, change),
    parameters: { "path.id": "a/b" },
    json: `{"name": "it's"}`,
  };
  const text = snippet("curl", callOf(api, change, BASE, changed));
  assert.ok(text.includes("/api/files/a%2Fb") && text.includes(`{"name":"it'\\''s"}`), text);
});

test("a form with a file, bytes to be saved, a stream, and an operation without a credential", () => {
  const upload = snippet("curl", exampleCall(entryOf("post", "/api/convert")));
  assert.match(upload, /-F files?=@photo\.jpg/);
  assert.ok(snippet("curl", exampleCall(entryOf("get", "/api/folders/{id}/zip"))).endsWith("-o answer.bin"));
  assert.match(snippet("curl", exampleCall(entryOf("get", "/api/changes"))), /^curl -N /);
  assert.equal(snippet("curl", exampleCall(entryOf("get", "/healthz"))), `curl ${BASE}/healthz`);
  assert.match(
    snippet("curl", exampleCall(entryOf("delete", "/api/session"))),
    /__Host-sluice_session=\$SLUICE_SESSION.*X-CSRF-Token/s,
  );
});

test("examples are calls that the service takes, as far as the description says what it takes", () => {
  const lines = (method: string, path: string) => snippet("curl", exampleCall(entryOf(method, path)));
  assert.match(
    lines("patch", "/api/workflows/{id}"),
    /-d '\{"isActive":true\}'$/,
    "a change changes something",
  );
  assert.match(lines("patch", "/api/uploads/tus/{id}"), /Tus-Resumable: 1\.0\.0.*Upload-Offset: 0/s);
  assert.match(lines("post", "/mcp"), /application\/json, text\/event-stream.*tools\/list/s);
  assert.match(lines("post", "/api/jobs"), /-F files=@photo\.jpg.*-F format=webp/s);
});

test("a call that is sent has no placeholders", () => {
  const entry = entryOf("get", "/api/files/{id}");
  assert.equal(callOf(api, entry, "", startingValues(api, entry), { examples: false }).url, "/api/files/");
});

test("examples end, also in a schema that holds itself", () => {
  const Loop = {
    type: "object",
    required: ["next"],
    properties: { next: { $ref: "#/components/schemas/Loop" } },
  };
  const document = { ...api, components: { schemas: { Loop } } };
  assert.ok(JSON.stringify(exampleOf(document, Loop)).startsWith('{"next":{'));
});

test("operations are found by all words, in any order and case", () => {
  const found = (query: string) =>
    entries.filter((entry) => isFound(wordsOf(api, entry), query)).map(({ id }) => id);
  assert.ok(found("KEY rotate").includes("post-api-live-inputs-id-rotate-key"));
  assert.ok(found("reconnectWindow").includes("post-api-live-inputs"), "by a field of its body");
  assert.deepEqual(found("no such thing at all"), []);
  assert.equal(found("").length, entries.length);
});
