import assert from "node:assert/strict";
import { test } from "node:test";
import { type Group, readGroup } from "../shared/conditions";
import { type Json, readFlow } from "../shared/flow";
import { countOf, groupInWords, writeGroup } from "./conditions";
import { layoutOf } from "./layout";
import { type Chain, outlineOf } from "./order";
import { canonical, isSameFlow, writeFlow } from "./write";

/** An outline as a text: `1 upload 2 wide [3 large >4 | >4] 4 webp.` */
function asText(chain: Chain): string {
  const items = chain.items.map(({ step, number, arms }) => {
    const ways = arms.length > 0 ? ` [${arms.map(asText).join(" | ")}]` : "";
    return `${number} ${step.id}${ways}`;
  });
  const end = chain.end ? (chain.end.next ? `>${chain.end.next}` : ".") : "";
  return [...items, end].filter(Boolean).join(" ");
}
const outline = (definition: object) => asText(outlineOf(readFlow("", definition)).main);

const nodes = (kinds: Record<string, string>) =>
  Object.entries(kinds).map(([id, kind]) => ({ id, data: { kind } }));
const edges = (...list: string[]) =>
  list.map((text) => {
    const [source = "", kind = "", target = ""] = text.split(" ");
    return kind === "-" ? { source, target } : { source, target, kind };
  });

test("nested branches meet where their ways meet", () => {
  const definition = {
    nodes: nodes({
      up: "upload",
      a: "branch",
      b: "branch",
      x: "resize",
      y: "resize",
      z: "convert",
      end: "storage",
    }),
    edges: edges("up - a", "a true b", "b true x", "b false y", "x - z", "y - z", "z - end", "a false end"),
  };
  assert.equal(outline(definition), "1 up 2 a [3 b [4 x >z | 5 y >z] 6 z >end | >end] 7 end .");
});

test("ways that do not meet, that end, and that cross", () => {
  const definition = {
    nodes: nodes({ up: "upload", a: "branch", b: "branch", c: "branch", j: "storage", k: "webhook" }),
    edges: edges("up - a", "a true b", "a false c", "b true j", "b false k", "c true j", "c false k"),
  };
  assert.equal(outline(definition), "1 up 2 a [3 b [>j | 4 k .] | 5 c [>j | >k]] 6 j .");
  const open = {
    nodes: nodes({ up: "upload", a: "branch", b: "storage" }),
    edges: edges("up - a", "a true b"),
  };
  assert.equal(outline(open), "1 up 2 a [3 b . | .]");
});

test("steps without a way to them are listed apart, a cycle does not hang", () => {
  const flow = readFlow("", {
    nodes: nodes({ up: "upload", a: "resize", b: "convert", c: "storage" }),
    edges: edges("a - b", "b - a"),
  });
  const { main, loose } = outlineOf(flow);
  assert.deepEqual([main, ...loose].map(asText), ["1 up .", "2 c .", "3 a 4 b >a"]);
  assert.equal(layoutOf(flow).places.size, 4);
});

test("a definition in other spellings is the same workflow", () => {
  const plain = {
    nodes: [
      { id: "up", data: { kind: "upload" } },
      { id: "b", data: { kind: "branch" } },
      { id: "s", data: { kind: "strip_metadata", title: "Clean" } },
    ],
    edges: edges("up - b", "b true s", "b false s"),
    uploadGate: { logic: "and", conditions: [{ field: "mime", operator: "starts_with", value: "image/" }] },
    branchConditions: { b: { logic: "or", conditions: [{ field: "width", operator: "gt", value: 5 }] } },
  };
  const other = {
    nodes: [
      { id: "up", type: "upload" },
      {
        id: "b",
        data: {
          kind: "branch",
          config: { logic: "any", conditions: [{ field: "width", operator: "gt", value: 5 }] },
        },
      },
      { id: "s", kind: "strip-metadata", label: "Clean" },
    ],
    edges: [
      { source: "up", target: "b" },
      { source: "b", target: "s" },
    ],
    upload_conditions: ["images-only"],
  };
  assert.ok(isSameFlow(readFlow("", plain), readFlow("", other)));
});

test("what the service does not know is kept", () => {
  const definition = {
    nodes: [{ id: "up", colour: "red", x: 3, y: 4, data: { kind: "upload", note: [1] } }],
    edges: [],
    viewport: { zoom: 2 },
    uploadGate: { matches: "something newer" },
  };
  assert.equal(canonical(writeFlow(readFlow("", definition))), canonical(definition));
});

test("what the service does not read is not read once it is saved", () => {
  const written = (definition: object) => writeFlow(readFlow("", definition));
  const node = {
    id: "up",
    label: "Beside",
    config: { a: 1 },
    data: { kind: "upload", title: "", config: {} },
  };
  assert.deepEqual(written({ nodes: [node], edges: [] }).nodes, [node]);
  const gate = { conditions: ["images-only"] };
  const hidden = { nodes: [], edges: [], uploadGate: null, upload_gate: gate };
  assert.deepEqual(written(hidden), { nodes: [], edges: [] });
  const blank = { nodes: [], edges: [], uploadGate: " ", uploadConditions: ["images-only"] };
  assert.deepEqual(written(blank), { nodes: [], edges: [] });
});

test("words of older definitions are joined by their logic wherever they are", () => {
  const words = ["images-only", "videosOnly"];
  const branch = (config: object) => ({
    nodes: [
      { id: "up", data: { type: "Upload" } },
      { id: "b", data: { type: "BRANCH", label: "Kind?", config } },
    ],
    edges: [
      { source: "up", target: "b" },
      { source: "b", target: "up", kind: " True " },
      { source: "b", target: "up", source_handle: "true" },
    ],
  });
  const expected = {
    logic: "or",
    conditions: [
      { field: "mime", operator: "starts_with", value: "image/" },
      { field: "mime", operator: "starts_with", value: "video/" },
    ],
  };
  for (const definition of [
    { ...branch({}), branchConditions: { b: words }, branchLogicGate: "OR" },
    { ...branch({}), branch_condition: words, branch_logic_gate: "||" },
    branch({ condition: words, branchLogicGate: " Any " }),
    branch({ branchCondition: words, branch_logic_gate: "any" }),
    branch({ combinator: "||", rules: words }),
  ]) {
    const flow = readFlow("", definition);
    assert.deepEqual(
      flow.steps.map(({ kind, title }) => `${kind} ${title}`),
      ["upload ", "branch Kind?"],
    );
    assert.deepEqual(
      flow.edges.map(({ result }) => result),
      ["default", "true", "false"],
    );
    assert.deepEqual(writeFlow(flow).branchConditions, { b: expected }, JSON.stringify(definition));
  }
  const unread = { nodes: [], edges: [], uploadConditions: ["no word"], uploadLogicGate: "or" };
  assert.deepEqual(writeFlow(readFlow("", unread)).uploadGate, { logic: "or", conditions: ["no word"] });
});

test("conditions with NOT, AND, OR and nesting are read and written alike", () => {
  const group: Json = {
    logic: "or",
    negate: true,
    conditions: [
      { field: "size_bytes", operator: "gt", value: 5_000_000 },
      { field: "extension", operator: "is_empty", negate: true },
    ],
    groups: [
      {
        logic: "and",
        conditions: [],
        groups: [
          { logic: "and", negate: true, conditions: [{ field: "width", operator: "lt", value: "10" }] },
        ],
      },
    ],
  };
  const read = readGroup(group) as Group;
  assert.equal(canonical(writeGroup(read)), canonical(group));
  assert.equal(countOf(read), 6);
  assert.equal(
    groupInWords(read),
    "not (size bytes > 5000000 or not extension is empty or (not (width < 10)))",
  );
});

test("names of steps that objects have of their own are names like others", () => {
  const definition = {
    nodes: nodes({ up: "upload", ["__proto__"]: "branch", constructor: "storage" }),
    edges: edges("up - __proto__", "__proto__ true constructor"),
    branchConditions: JSON.parse('{"__proto__": {"logic": "and", "conditions": []}}'),
  };
  assert.equal(outline(definition), "1 up 2 __proto__ [3 constructor . | .]");
  const written = writeFlow(readFlow("", definition));
  assert.deepEqual(Object.keys(written.branchConditions as object), ["__proto__"]);
});

test("the layout puts boxes of one row apart and rows in the order of the path", () => {
  const definition = {
    nodes: nodes({
      up: "upload",
      a: "branch",
      b: "branch",
      x: "resize",
      y: "resize",
      z: "convert",
      end: "storage",
    }),
    edges: edges("up - a", "a true b", "b true x", "b false y", "x - z", "y - z", "z - end", "a false end"),
  };
  const flow = readFlow("", definition);
  const { places, bends, bounds } = layoutOf(flow);
  const boxes = [...places];
  for (const [id, one] of boxes)
    for (const [other, two] of boxes)
      if (id !== other && one.y === two.y) assert.ok(Math.abs(one.x - two.x) >= 208, `${id} and ${other}`);
  for (const { source, target } of flow.edges)
    assert.ok((places.get(source)?.y ?? 0) < (places.get(target)?.y ?? 0), `${source} is above ${target}`);
  assert.ok((places.get("x")?.x ?? 0) < (places.get("y")?.x ?? 0), "true is on the left");
  assert.deepEqual([...bends.keys()], ["a false"]);
  assert.ok(bounds.width > 0 && bounds.height > 0);
});
