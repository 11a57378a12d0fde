import assert from "node:assert/strict";
import { test } from "node:test";
import {
  acceptedBy,
  entriesByTag,
  limitWords,
  type OpenApi,
  resolve,
  type Schema,
  titleOf,
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

test("below a tag a collection comes before its items, and making before looking", () => {
  const of = (methods: string[]) =>
    Object.fromEntries(methods.map((method) => [method, { tags: ["Files"] }]));
  const paths = {
    "/files": of(["get", "post"]),
    "/files/search": of(["get"]),
    "/files/{id}": of(["delete", "get", "patch"]),
    "/files/{id}/preview": of(["get"]),
  };
  const entries = entriesByTag({ ...document, tags: [], paths }).get("Files") ?? [];
  assert.deepEqual(
    entries.map(({ method, path }) => `${method} ${path}`),
    [
      "post /files",
      "get /files",
      "get /files/{id}",
      "patch /files/{id}",
      "delete /files/{id}",
      "get /files/{id}/preview",
      "get /files/search",
    ],
  );
});

test("titles of groups and accepted credentials", () => {
  const tags = [{ name: "tus", "x-displayName": "Resumable uploads" }];
  assert.equal(titleOf({ ...document, tags }, "tus"), "Resumable uploads");
  assert.equal(titleOf(document, "playback_keys"), "Playback keys");
  assert.deepEqual(acceptedBy(document, {}), ["bearer"]);
  assert.deepEqual(acceptedBy(document, { security: [{}] }), []);
});
