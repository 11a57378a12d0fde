import assert from "node:assert/strict";
import { test } from "node:test";
import { imported } from "./imported";
import { TEMPLATES } from "./templates";

const definition = TEMPLATES[1]?.definition;

test("an export, an answer of the API and a definition by itself", () => {
  assert.deepEqual(imported(JSON.stringify({ name: "a", definition })), { name: "a", definition });
  assert.deepEqual(imported(JSON.stringify({ workflow: { name: "b", definition, version: 3 } })), {
    name: "b",
    definition,
  });
  assert.deepEqual(imported(JSON.stringify(definition)), { definition });
});

test("what is none says what it lacks", () => {
  assert.throws(() => imported("{"), /This is not valid JSON/);
  for (const text of [
    "{}",
    "[]",
    "null",
    "7",
    '"x"',
    '{"nodes": []}',
    '{"nodes": {}, "edges": []}',
    '{"definition": null}',
  ])
    assert.throws(() => imported(text), /`nodes` and `edges`/, text);
});

test("templates have one upload, unique ids and edges between their nodes", () => {
  for (const { name, definition } of TEMPLATES) {
    const ids = definition.nodes.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, name);
    assert.equal(definition.nodes.filter(({ data }) => data?.kind === "upload").length, 1, name);
    for (const { source, target } of definition.edges)
      assert.ok(ids.includes(source) && ids.includes(target), name);
  }
});
