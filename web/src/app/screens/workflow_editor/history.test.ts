import assert from "node:assert/strict";
import { test } from "node:test";
import type { Group } from "../shared/conditions";
import { type Fields, type Flow, readFlow, targetAt } from "../shared/flow";
import * as edit from "./edit";
import { type Action, apply, begin, reduce } from "./history";
import { ordered, outlineOf } from "./order";
import { canonical, emptyFlow, isSameFlow, writeFlow } from "./write";

/** docs/guide/workflows.md, "Product photos". */
const GUIDE: Fields = {
  nodes: [
    { id: "upload", data: { kind: "upload" } },
    { id: "wide", data: { kind: "branch", title: "Wider than 1200 pixels?" } },
    { id: "large", data: { kind: "resize", title: "For the product page", config: { resizeWidth: 1200 } } },
    { id: "small", data: { kind: "resize", title: "For the list", config: { resizeWidth: 800 } } },
    { id: "webp", data: { kind: "convert", config: { format: "webp", compression: 82 } } },
    { id: "keep", data: { kind: "storage", title: "Into the shop's folder", config: { folderId: "F" } } },
    { id: "tell", data: { kind: "webhook", title: "Tell the shop" } },
  ],
  edges: [
    { source: "upload", target: "wide" },
    { source: "wide", target: "large", kind: "true" },
    { source: "wide", target: "small", kind: "false" },
    { source: "large", target: "webp" },
    { source: "small", target: "webp" },
    { source: "webp", target: "keep" },
    { source: "keep", target: "tell" },
  ],
  uploadGate: { logic: "and", conditions: [{ field: "mime", operator: "starts_with", value: "image/" }] },
  branchConditions: {
    wide: { logic: "and", conditions: [{ field: "width", operator: "gt", value: 1200 }] },
  },
  renamePattern: "{original}-{width}",
  webhookUrl: "http://127.0.0.1:9000/",
};

const group = (field: string, operator: string, value: string | number): Group => ({
  logic: "and",
  negate: false,
  rules: [{ field, operator, value, negate: false }],
  groups: [],
});
const after = (source: string) => ({ source, result: "default" }) as const;
const on = (source: string, result: "true" | "false") => ({ source, result }) as const;

/** Titles, fields and conditions, which both views set in the same panel. */
const PANEL: Action[] = [
  { type: "title", id: "wide", title: "Wider than 1200 pixels?" },
  { type: "condition", id: "wide", condition: group("width", "gt", 1200) },
  { type: "title", id: "large", title: "For the product page" },
  { type: "config", id: "large", name: "resizeWidth", value: 1200 },
  { type: "title", id: "small", title: "For the list" },
  { type: "config", id: "small", name: "resizeWidth", value: 800 },
  { type: "config", id: "webp", name: "format", value: "webp" },
  { type: "config", id: "webp", name: "compression", value: 82 },
  { type: "title", id: "keep", title: "Into the shop's folder" },
  { type: "config", id: "keep", name: "folderId", value: "F" },
  { type: "title", id: "tell", title: "Tell the shop" },
  { type: "gate", gate: group("mime", "starts_with", "image/") },
  { type: "setting", name: "renamePattern", value: "{original}-{width}" },
  { type: "setting", name: "webhookUrl", value: "http://127.0.0.1:9000/" },
];

/** Each step after the one before; the two ways of the branch meet by themselves. */
const OUTLINE: Action[] = [
  { type: "add", kind: "convert", id: "webp", place: after("upload") },
  { type: "add", kind: "storage", id: "keep", place: after("webp") },
  { type: "add", kind: "webhook", id: "tell", place: after("keep") },
  { type: "add", kind: "branch", id: "wide", place: after("upload") },
  { type: "add", kind: "resize", id: "large", place: on("wide", "true") },
  { type: "add", kind: "resize", id: "small", place: on("wide", "false") },
  ...PANEL,
];

/** Boxes dropped where a line ends, in any order, then lines taken away and drawn again. */
const CANVAS: Action[] = [
  { type: "add", kind: "webhook", id: "tell", place: after("upload") },
  { type: "add", kind: "resize", id: "small", place: after("tell") },
  { type: "add", kind: "storage", id: "keep", place: after("small") },
  { type: "add", kind: "branch", id: "wide", place: after("keep") },
  { type: "add", kind: "resize", id: "large", place: on("wide", "true") },
  { type: "add", kind: "convert", id: "webp", place: after("large") },
  ...PANEL.slice().reverse(),
  { type: "connect", place: after("upload"), target: null },
  { type: "connect", place: after("tell"), target: null },
  { type: "connect", place: after("keep"), target: null },
  { type: "connect", place: after("small"), target: "webp" },
  { type: "connect", place: on("wide", "false"), target: "small" },
  { type: "connect", place: after("large"), target: "keep" },
  { type: "connect", place: after("keep"), target: "tell" },
  { type: "connect", place: after("large"), target: "webp" },
  { type: "connect", place: after("webp"), target: "keep" },
  { type: "connect", place: after("upload"), target: "wide" },
];

const built = (actions: Action[]) =>
  actions.reduce(
    (history, action) => {
      const next = reduce(history, action);
      assert.notEqual(next, history, `${JSON.stringify(action)} does something`);
      return next;
    },
    begin(emptyFlow("Product photos")),
  );

test("the guide's workflow by the outline and by the canvas is the guide's definition", () => {
  const guide = canonical(writeFlow(readFlow("Product photos", GUIDE)));
  assert.equal(canonical(writeFlow(built(OUTLINE).present)), guide);
  assert.equal(canonical(writeFlow(built(CANVAS).present)), guide);
  assert.equal(guide, canonical(GUIDE), "the guide's own order is the outline's");
});

test("undo and redo go through every state of either way", () => {
  for (const actions of [OUTLINE, CANVAS]) {
    const states: Flow[] = [];
    let history = begin(emptyFlow("Product photos"));
    for (const action of actions) {
      states.push(history.present);
      history = reduce(history, action);
    }
    const last = history.present;
    for (const state of states.slice().reverse()) {
      history = reduce(history, { type: "undo" });
      assert.equal(history.present, state);
    }
    assert.equal(reduce(history, { type: "undo" }), history, "there is nothing more to undo");
    for (const _ of states) history = reduce(history, { type: "redo" });
    assert.equal(history.present, last);
    assert.equal(reduce(history, { type: "redo" }), history, "there is nothing more to redo");
  }
});

test("typing on in one field is one step of undo, another field another one", () => {
  let history = begin(emptyFlow("a"));
  for (const value of ["P", "Ph", "Pho"]) history = reduce(history, { type: "setting", name: "name", value });
  history = reduce(history, { type: "setting", name: "webhookUrl", value: "h" });
  history = reduce(history, { type: "undo" });
  assert.equal(history.present.name, "Pho");
  history = reduce(history, { type: "undo" });
  assert.equal(history.present.name, "a");
});

test("a drag, a save and a field that is left end a step of undo", () => {
  const typed = (value: string) => ({ type: "setting", name: "name", value }) as const;
  const dragged = (x: number) => ({ type: "place", id: "upload", at: { x, y: 0 } }) as const;
  const cases: [Action, Action][] = [
    [typed("P"), typed("Ph")],
    [dragged(10), dragged(20)],
  ];
  for (const [one, other] of cases) {
    const first = reduce(begin(emptyFlow("a")), one);
    const ended = reduce(first, { type: "endGroup" });
    assert.equal(ended.present, first.present);
    assert.equal(reduce(ended, { type: "endGroup" }), ended, "it has ended already");
    const second = reduce(ended, other);
    assert.equal(reduce(second, { type: "undo" }).present, first.present);
  }
  const undone = reduce(reduce(begin(emptyFlow("a")), typed("P")), { type: "undo" });
  assert.equal(reduce(undone, { type: "endGroup" }), undone, "what can be redone stays");
});

const at = (flow: Flow) =>
  ordered(flow)
    .map(({ id }) => id)
    .join(" ");
const guide = () => readFlow("Product photos", GUIDE);

test("a change after undo drops what could be done again", () => {
  let history = reduce(begin(guide()), { type: "remove", id: "tell" });
  history = reduce(history, { type: "undo" });
  history = reduce(history, { type: "remove", id: "keep" });
  assert.deepEqual(history.future, []);
  assert.equal(at(history.present), "upload wide large small webp tell");
});

test("removing a step closes the gap, also where two ways meet", () => {
  const flow = apply(guide(), { type: "remove", id: "webp" });
  assert.equal(at(flow), "upload wide large small keep tell");
  assert.deepEqual(
    flow.edges.filter((edge) => edge.target === "keep").map((edge) => edge.source),
    ["large", "small"],
  );
  assert.equal(apply(flow, { type: "remove", id: "upload" }), flow, "the upload stays");
});

test("removing a branch keeps one way and drops what only the other one led to", () => {
  assert.equal(
    at(apply(guide(), { type: "remove", id: "wide", keep: "true" })),
    "upload large webp keep tell",
  );
  assert.equal(
    at(apply(guide(), { type: "remove", id: "wide", keep: "false" })),
    "upload small webp keep tell",
  );
});

test("a step moves up past a branch into the way before it, and down again", () => {
  const up = apply(guide(), { type: "moveUp", id: "large" });
  assert.equal(at(up), "upload large wide small webp keep tell");
  assert.equal(targetAt(up, on("wide", "true")), "webp");
  assert.equal(
    at(apply(guide(), { type: "moveDown", id: "webp" })),
    "upload wide large small keep webp tell",
  );
  assert.equal(
    at(apply(guide(), { type: "move", id: "tell", place: on("wide", "true") })),
    "upload wide tell large small webp keep",
  );
  const same = guide();
  for (const id of ["wide", "upload", "webp"])
    assert.equal(apply(same, { type: "moveUp", id }), same, `${id} cannot move up`);
});

test("no way leads back, to the upload, or to itself", () => {
  const flow = guide();
  for (const [source, target] of [
    ["tell", "wide"],
    ["keep", "keep"],
    ["tell", "upload"],
  ] as const)
    assert.equal(apply(flow, { type: "connect", place: after(source), target }), flow);
  assert.deepEqual(
    edit.targetsFor(flow, on("wide", "true")).map(({ id }) => id),
    ["large", "small", "webp", "keep", "tell"],
  );
});

test("another id is taken over everywhere, and a taken one is not", () => {
  const flow = apply(guide(), { type: "rename", id: "wide", to: "is-wide" });
  assert.deepEqual(Object.keys(writeFlow(flow).branchConditions as object), ["is-wide"]);
  assert.equal(at(flow), "upload is-wide large small webp keep tell");
  for (const to of ["keep", "", "a\nb", "x".repeat(101)])
    assert.equal(apply(flow, { type: "rename", id: "tell", to }), flow);
});

test("steps that a user placed keep their place in the definition until they are tidied", () => {
  const flow = apply(guide(), { type: "place", id: "keep", at: { x: 10, y: -20 } });
  assert.deepEqual(
    (writeFlow(flow).nodes as { id: string }[]).find(({ id }) => id === "keep"),
    { ...(GUIDE.nodes as object[])[5], x: 10, y: -20 },
  );
  assert.ok(!isSameFlow(flow, guide()));
  assert.ok(isSameFlow(apply(flow, { type: "tidy" }), guide()));
});

test("fifty steps and no more", () => {
  let flow = emptyFlow("many");
  for (let i = 0; i < 60; i++)
    flow = apply(flow, {
      type: "add",
      kind: "resize",
      id: edit.freeId(flow, "resize"),
      place: after("upload"),
    });
  assert.equal(flow.steps.length, edit.MOST_STEPS);
  assert.equal(outlineOf(flow).numbers.size, edit.MOST_STEPS);
});
