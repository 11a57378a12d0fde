import assert from "node:assert/strict";
import { test } from "node:test";
import { shownProblems } from "./check";
import { signOf } from "./state";
import type { Problem } from "./types";
import { emptyFlow } from "./write";

const problem = (field: string, code: string): Problem => ({
  severity: "error",
  code,
  nodeId: null,
  field,
  message: code,
});

test("problems of the gate and of the folder that starts a workflow are the Upload step's", () => {
  const flow = emptyFlow("a");
  const linted = {
    flow,
    problems: [problem("trigger.folderId", "no_folder"), problem("webhookUrl", "no_url")],
  };
  const own = [problem("uploadGate.conditions[0].value", "missing_value"), problem("name", "invalid_name")];
  const shown = shownProblems(own, linted, flow);
  assert.deepEqual(
    shown.map(({ code, nodeId }) => [code, nodeId]),
    [
      ["missing_value", "upload"],
      ["invalid_name", null],
      ["no_folder", "upload"],
      ["no_url", null],
    ],
  );
  assert.equal(signOf(shown, "upload"), "error");
  assert.equal(shownProblems(own.slice(0, 1), undefined, flow)[0]?.nodeId, "upload");
  assert.deepEqual(
    shownProblems([], linted, { ...flow, triggerFolder: "F" }).map(({ code }) => code),
    [],
    "another folder was chosen since",
  );
});

test("an answer about an older text is not shown", () => {
  const flow = { ...emptyFlow("a"), webhookUrl: "http://10.0.0.1" };
  const linted = {
    flow,
    problems: [
      problem("webhookUrl", "invalid_url"),
      problem("name", "invalid_name"),
      problem("edges", "several_edges"),
      { ...problem("edges", "cycle"), nodeId: "upload" },
      { ...problem("title", "invalid_title"), nodeId: "upload" },
    ],
  };
  const shown = (now: typeof flow) => shownProblems([], linted, now).map(({ code }) => code);
  assert.equal(shown(flow).length, 5);
  assert.deepEqual(shown({ ...flow, webhookUrl: "https://shop.example.com" }), ["cycle", "invalid_title"]);
  assert.deepEqual(shown({ ...flow, name: "b" }), ["cycle", "invalid_title"]);
  assert.deepEqual(shown({ ...flow, edges: [] }), ["invalid_url", "invalid_name", "invalid_title"]);
  const steps = flow.steps.map((step) => ({ ...step, title: "First" }));
  assert.deepEqual(shown({ ...flow, steps }), ["invalid_url", "invalid_name", "several_edges"]);
});
