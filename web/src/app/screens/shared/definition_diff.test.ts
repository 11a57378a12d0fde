import assert from "node:assert/strict";
import { test } from "node:test";
import { conditionText } from "./condition_text";
import { differences } from "./definition_diff";
import type { Definition } from "./workflow_types";

const base: Definition = {
  nodes: [
    { id: "upload", data: { kind: "upload" } },
    { id: "wide", data: { kind: "branch", title: "Wide?" } },
    { id: "small", data: { kind: "resize", config: { resizeWidth: 1200 } } },
    { id: "keep", data: { kind: "storage" } },
  ],
  edges: [
    { source: "upload", target: "wide" },
    { source: "wide", target: "small", kind: "true" },
    { source: "wide", target: "keep", kind: "false" },
    { source: "small", target: "keep" },
  ],
  branchConditions: { wide: { conditions: [{ field: "width", operator: "gt", value: 1200 }] } },
};
const copy = () => structuredClone(base);

test("equal definitions and other places of nodes have no difference", () => {
  const moved = copy();
  Object.assign(moved.nodes[1] ?? {}, { x: 12, position: { x: 1, y: 2 } });
  moved.viewport = { zoom: 2 };
  assert.deepEqual(differences(base, base), []);
  assert.deepEqual(differences(base, moved), []);
});

test("a step that is said in another form is the same step", () => {
  const flat = copy();
  flat.nodes[2] = { id: "small", type: "resize", config: { resizeWidth: "1200" } };
  flat.edges[1] = { source: "wide", target: "small", sourceHandle: "true" };
  assert.deepEqual(differences(base, flat), []);
});

test("a changed field has its values before and after", () => {
  const after = copy();
  after.nodes[2] = { id: "small", data: { kind: "resize", config: { resizeWidth: 800 } } };
  assert.deepEqual(differences(base, after), [
    {
      kind: "changed",
      what: "step",
      title: "Resize",
      lines: [{ label: "Resize width", before: "1200", after: "800" }],
    },
  ]);
});

test("steps that came and went are listed with what connects them", () => {
  const after = copy();
  after.nodes = after.nodes.filter(({ id }) => id !== "small");
  after.nodes.push({ id: "webp", data: { kind: "convert", title: "To WebP", config: { format: "webp" } } });
  after.edges = [
    { source: "upload", target: "wide" },
    { source: "wide", target: "webp", kind: "true" },
    { source: "wide", target: "keep", kind: "false" },
    { source: "webp", target: "keep" },
  ];
  const found = differences(base, after);
  assert.deepEqual(
    found.map(({ kind, what, title }) => `${kind} ${what} ${title}`),
    [
      "removed step Resize",
      "added step To WebP",
      "removed connection Wide? (true) → Resize",
      "removed connection Resize → Storage",
      "added connection Wide? (true) → To WebP",
      "added connection To WebP → Storage",
    ],
  );
  assert.deepEqual(found[1]?.lines, [
    { label: "Kind", after: "Convert" },
    { label: "Format", after: "webp" },
  ]);
});

test("conditions, the gate and the trigger are compared by their words", () => {
  const after = copy();
  after.branchConditions = { wide: { conditions: [{ field: "width", operator: "gt", value: 1600 }] } };
  after.uploadGate = { conditions: [{ field: "mime", operator: "starts_with", value: "image/" }] };
  after.trigger = { folderId: "f" };
  assert.deepEqual(
    differences(base, after).map(({ kind, title, lines }) => [kind, title, lines[0]?.after]),
    [
      ["changed", "Wide?", "width is greater than 1600"],
      ["added", "Gate", "mime starts with “image/”"],
      ["added", "Folder that starts it", "f"],
    ],
  );
});

test("conditions with NOT, OR and nesting in words", () => {
  const group = {
    logic: "or",
    conditions: [
      { field: "size_bytes", operator: "greater-than", value: 5 },
      { field: "extension", operator: "is_empty", negate: true },
    ],
    groups: [
      { negate: true, conditions: [{ field: "filename", operator: "matches", value: "^draft" }] },
      {
        conditions: [
          { field: "width", operator: "gte", value: 10 },
          { field: "width", operator: "lte", value: 20 },
        ],
      },
    ],
  };
  assert.equal(
    conditionText(group),
    "size bytes greater than 5 or not extension is empty or not (filename matches “^draft”) or (width is at least 10 and width is at most 20)",
  );
  assert.equal(conditionText(null), "");
  assert.equal(conditionText({}), "");
});
