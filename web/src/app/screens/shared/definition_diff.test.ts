import assert from "node:assert/strict";
import { test } from "node:test";
import { conditionText } from "./condition_text";
import { type Group, readGroup } from "./conditions";
import { differences } from "./definition_diff";
import type { Json } from "./flow";
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
const operator = (name: string, takes: string, aliases: string[] = [], symbols: string[] = []) => ({
  name,
  takes,
  aliases,
  symbols,
});
const field = (name: string, isNumber: boolean, aliases: string[] = []) => ({
  name,
  isNumber,
  aliases,
  operators: [],
  summary: "",
});
const CATALOGUE = {
  kinds: [
    {
      kind: "resize",
      summary: "",
      accepts: [],
      fields: [
        {
          name: "resizeWidth",
          alias: "width",
          type: "integer",
          input: "number",
          allowed: "",
          values: [],
          summary: "",
        },
      ],
    },
  ],
  conditions: {
    fields: [field("width", true, ["image_width"]), field("mime", false)],
    operators: [
      operator("gt", "number", ["greater_than"], [">"]),
      operator("gte", "number", [], [">="]),
      operator("equals", "same", ["is_equal_to"], ["=="]),
    ],
  },
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

test("spellings that mean the same are no difference", () => {
  const before = copy();
  before.uploadGate = { conditions: [{ field: "mime", operator: "equals", value: "image/png" }] };
  const after = copy();
  after.nodes[2] = { id: "small", data: { kind: "resize", config: { width: 1200 } } };
  after.branchConditions = { wide: { conditions: [{ field: "Image-Width", operator: ">", value: "1200" }] } };
  after.uploadGate = { conditions: [{ field: "mime", operator: "is equal to", value: "image/png" }] };
  assert.deepEqual(differences(before, after, CATALOGUE), []);
  after.branchConditions = { wide: { conditions: [{ field: "width", operator: ">=", value: "1200" }] } };
  assert.deepEqual(
    differences(before, after, CATALOGUE).map(({ title, lines }) => [title, lines]),
    [
      [
        "Wide?",
        [
          {
            label: "Condition",
            before: "width is greater than 1200",
            after: "width is at least 1200",
          },
        ],
      ],
    ],
  );
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
  const group: Json = {
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
  const text = (value: Json) => conditionText(readGroup(value) as Group);
  assert.equal(
    text(group),
    "size bytes greater than 5 or not extension is empty or not (filename matches “^draft”) or (width is at least 10 and width is at most 20)",
  );
  assert.equal(text({ conditions: [] }), "always");
  assert.equal(text({ groups: [], not: "True" }), "never");
  assert.equal(text({ logic: "xor", conditions: [] }), '{"logic":"xor","conditions":[]}');
});

test("conditions of older definitions are compared by what they mean", () => {
  const gateOf = (further: object) =>
    differences(base, { ...copy(), ...further }).map(({ kind, title, lines }) => [
      kind,
      title,
      lines[0]?.after,
    ]);
  const images = "mime starts with “image/”";
  for (const [further, after] of [
    [{ uploadGate: "images-only" }, images],
    [{ upload_gate: { rules: ["images-only"] } }, images],
    [{ uploadConditions: ["imagesOnly"] }, images],
    [
      { upload_conditions: ["images-only", "image/png"], uploadLogicGate: "OR" },
      `${images} or mime is “image/png”`,
    ],
    [
      { uploadGate: { combinator: "||", rules: ["image/*", { field: "width", operator: "GT", value: 5 }] } },
      `${images} or width is greater than 5`,
    ],
  ] as const)
    assert.deepEqual(gateOf(further), [["added", "Gate", after]], JSON.stringify(further));

  const branchOf = (further: object) => {
    const { branchConditions: _, ...rest } = copy();
    return differences(base, { ...rest, ...further });
  };
  const lines = [{ label: "Condition", before: "width is greater than 1200", after: images }];
  for (const further of [
    { branchConditions: { wide: "images-only" } },
    { branch_conditions: { wide: ["images-only"] } },
    { branchCondition: "images-only" },
  ])
    assert.deepEqual(branchOf(further), [{ kind: "changed", what: "step", title: "Wide?", lines }]);
});

test("steps and settings in snake_case or in other letters are the same", () => {
  const after = copy();
  after.nodes[1] = { id: "wide", data: { type: "Branch", label: "Wide?" } };
  after.nodes[2] = { id: "small", type: "RESIZE", config: { resize_width: 1200 } };
  after.edges[1] = { source: "wide", target: "small", kind: "TRUE" };
  after.edges[2] = { source: "wide", target: "keep" };
  const { branchConditions, ...rest } = after;
  const both = { webhookUrl: "https://a.example", renamePattern: "{name}", trigger: { folderId: "f" } };
  const snake = { webhook_url: "https://a.example", rename_pattern: "{name}", trigger: { folder_id: "f" } };
  const found = differences({ ...base, ...both }, { ...rest, ...snake, branch_conditions: branchConditions });
  assert.deepEqual(found, []);
});
