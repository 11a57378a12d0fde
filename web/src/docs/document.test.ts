import assert from "node:assert/strict";
import { test } from "node:test";
import {
  curlFor,
  entriesByTag,
  exampleOf,
  limitWords,
  type OpenApi,
  resolve,
  type Schema,
  typeWords,
} from "./document";

const document: OpenApi = {
  openapi: "3.1.0",
  info: { title: "Test", version: "1.0.0" },
  tags: [{ name: "Live" }, { name: "Empty" }],
  security: [{ bearer: [] }],
  paths: {
    "/healthz": { get: { security: [], responses: {} } },
    "/api/live/inputs/{id}": {
      parameters: [{ $ref: "#/components/parameters/id" }],
      patch: {
        tags: ["Live"],
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Patch" } } } },
      },
    },
  },
  components: {
    parameters: { id: { name: "id", in: "path", required: true } },
    schemas: {
      Patch: {
        type: "object",
        properties: {
          name: { type: "string", examples: ["Jean's"] },
          next: { $ref: "#/components/schemas/Patch" },
        },
      },
      Loop: { $ref: "#/components/schemas/Loop" },
    },
  },
};

test("operations are listed under their tag, with the parameters of their path", () => {
  const groups = entriesByTag(document);
  assert.deepEqual([...groups.keys()], ["Live", "Other"]);
  const [patch] = groups.get("Live") ?? [];
  assert.equal(patch?.id, "patch-api-live-inputs-id");
  assert.deepEqual(patch?.parameters, [{ name: "id", in: "path", required: true }]);
  assert.equal(entriesByTag({ openapi: "3.1.0", info: document.info }).size, 0);
});

test("references that lead nowhere, outside or in a circle are left alone", () => {
  for (const $ref of ["#/components/schemas/Nothing", "other.json#/X", "#/components/schemas/Loop"]) {
    assert.ok(resolve(document, { $ref }).$ref, $ref);
  }
});

test("types in words", () => {
  const table: [Schema, string][] = [
    [{}, "any"],
    [{ type: ["string", "null"], format: "date-time" }, "string (date-time) or null"],
    [{ type: "array", items: { $ref: "#/components/schemas/LiveInput" } }, "array of LiveInput"],
    [{ anyOf: [{ type: "integer" }, { type: "null" }] }, "integer or null"],
    [{ const: "live" }, '"live"'],
    [{ properties: {} }, "object"],
  ];
  for (const [schema, expected] of table) assert.equal(typeWords(schema), expected);
});

test("limits in words", () => {
  assert.deepEqual(limitWords({}), []);
  assert.deepEqual(limitWords({ minimum: 0, maximum: 10, default: 0 }), ["0–10", "default 0"]);
  assert.deepEqual(limitWords({ enum: ["low", "standard"] }), ['one of "low", "standard"']);
});

test("examples end, also in a schema that holds itself", () => {
  const example = JSON.stringify(exampleOf(document, { $ref: "#/components/schemas/Patch" }));
  assert.ok(example.startsWith('{"name":"Jean\'s","next":{'), example);
});

test("the command is quoted for a shell and carries a key only where one is needed", () => {
  const groups = entriesByTag(document);
  const [patch] = groups.get("Live") ?? [];
  const [health] = groups.get("Other") ?? [];
  assert.ok(patch && health);
  assert.match(curlFor(document, patch, "http://host"), /-X PATCH .*Bearer \$SLUICE_API_KEY.*Jean'\\''s/s);
  assert.equal(curlFor(document, health, "http://host"), 'curl "http://host/healthz"');
});
