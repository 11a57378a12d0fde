/**
 * Problems of a flow that are found without asking the service, at each key. The service's lint knows more and comes later;
 * where both find the same, these sentences stay. Pure.
 */
import { capitalized } from "../../parts/format";
import type { Group, Rule } from "../shared/conditions";
import { type Flow, isBranch, type Json, placesOf, type Step, targetAt, uploadOf } from "../shared/flow";
import { comparesNumbers, isSpelling, meant } from "../shared/meaning";
import { reachedFrom } from "./order";
import type { Catalogue, KindField, Problem } from "./types";
import { words } from "./words";

const texts = words.problems;

type Say = (severity: "error" | "warning", code: string, message: string, field?: string) => void;

export function problemsOf(flow: Flow, catalogue: Catalogue | undefined): Problem[] {
  const found: Problem[] = [];
  const at =
    (nodeId: string | null): Say =>
    (severity, code, message, field) =>
      found.push({ severity, code, message, nodeId, field: field ?? null });
  checkWhole(flow, at(null), catalogue);
  const reached = reachedFrom(flow, uploadOf(flow)?.id ?? null);
  for (const step of flow.steps) {
    const say = at(step.id);
    if (!reached.has(step.id)) say("warning", "unreachable_node", texts.unreachable, "edges");
    if ([...step.title].length > 200) say("error", "invalid_title", texts.longTitle, "title");
    if (isBranch(step)) checkBranch(flow, step, say, catalogue);
    else if (step.kind === "webhook" && isEmpty(step.config.url) && !flow.webhookUrl)
      say("warning", "webhook_without_url", texts.noAddress, "url");
    for (const field of catalogue?.kinds.find(({ kind }) => kind === step.kind)?.fields ?? [])
      checkField(step, field, say);
  }
  return found;
}

function checkWhole(flow: Flow, say: Say, catalogue: Catalogue | undefined) {
  const has = (...kinds: string[]) => flow.steps.some(({ kind }) => kinds.includes(kind));
  if (!flow.name.trim()) say("error", "invalid_name", texts.noName, "name");
  if (flow.gate && catalogue) checkGroup(flow.gate, "uploadGate", say, catalogue);
  if (flow.webhookUrl && !isAddress(flow.webhookUrl)) say("error", "invalid_url", texts.noUrl, "webhookUrl");
  if (!has("storage", "webhook", "hls")) say("warning", "no_delivery", texts.noDelivery, "nodes");
  if (flow.webhookUrl && !has("webhook"))
    say("warning", "unused_webhook_url", texts.unusedAddress, "webhookUrl");
}

function checkBranch(flow: Flow, step: Step, say: Say, catalogue: Catalogue | undefined) {
  const prefix = `branchConditions.${step.id}`;
  if (!step.condition) say("error", "missing_condition", texts.noCondition, "branchConditions");
  else if (catalogue) checkGroup(step.condition, prefix, say, catalogue);
  for (const place of placesOf(step))
    if (targetAt(flow, place) === null)
      say("warning", "missing_branch_edge", texts.endsOn(place.result === "true"), "edges");
}

/** Conditions without a value, and numbers that are none. */
function checkGroup(group: Group, path: string, say: Say, catalogue: Catalogue) {
  for (const [i, rule] of group.rules.entries()) {
    const problem = ruleProblem(rule, catalogue);
    if (problem) say("error", problem.code, problem.message, `${path}.conditions[${i}].value`);
  }
  for (const [i, inner] of group.groups.entries()) checkGroup(inner, `${path}.groups[${i}]`, say, catalogue);
}

function ruleProblem({ field, operator, value }: Rule, { conditions }: Catalogue) {
  const compared = meant(conditions.operators, operator);
  if (!compared || compared.takes === "nothing") return undefined;
  if (value === undefined || (typeof value === "string" && !value.trim()))
    return { code: "missing_value", message: texts.noValue };
  if (comparesNumbers(meant(conditions.fields, field), compared) && !Number.isFinite(Number(value)))
    return { code: "invalid_value", message: texts.noNumber(String(value)) };
  return undefined;
}

function checkField(step: Step, field: KindField, say: Say) {
  const value = fieldValue(step, field);
  if (isEmpty(value)) return;
  const wrong = (message: string, code = "invalid_config") => say("error", code, message, field.name);
  if (field.input === "url") {
    if (!isAddress(String(value))) wrong(texts.noUrl, "invalid_url");
  } else if (field.type === "integer" || field.type === "number") {
    const number = Number(value);
    const isWhole = field.type === "number" || Number.isInteger(number);
    const isWithin = number >= (field.minimum ?? -Infinity) && number <= (field.maximum ?? Infinity);
    if (!(Number.isFinite(number) && isWhole && isWithin)) wrong(texts.notAllowed(field.allowed));
  } else if (field.values.length > 0) {
    if (!field.values.includes(String(value))) wrong(texts.notAllowed(field.allowed));
  } else if (field.maxLength && [...String(value)].length > field.maxLength)
    wrong(texts.notAllowed(field.allowed));
}

/** The value of a field in a config, in whatever spelling it is there. */
export function fieldValue(step: Step, field: KindField): Json | undefined {
  const key = Object.keys(step.config).find((name) => isSpelling(name, field.name, field.alias));
  return key === undefined ? undefined : step.config[key];
}

const isEmpty = (value: Json | undefined) => value === undefined || value === null || value === "";

/** The form that the service asks for; it checks the host when it saves. */
export function isAddress(text: string): boolean {
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1];
  return Boolean(authority) && !authority?.includes("@") && !/[\s\p{Cc}]/u.test(text) && text.length <= 2_048;
}

/** The answer of lint for a flow. */
export interface Linted {
  flow: Flow;
  problems: Problem[];
}

/**
 * Problems to show: those found in the present flow, and of the last answer of lint those about what has not
 * changed since and is not found here anyway.
 */
export function shownProblems(own: Problem[], linted: Linted | undefined, flow: Flow): Problem[] {
  if (!linted) return own.map((problem) => atUpload(problem, flow));
  const isUnchanged = ({ nodeId, field }: Problem) => {
    if (linted.flow === flow) return true;
    if ((field === "edges" || field === "nodes") && !isSameGraph(linted.flow, flow)) return false;
    if (nodeId == null) return SETTINGS.every((name) => linted.flow[name] === flow[name]);
    const before = linted.flow.steps.find(({ id }) => id === nodeId);
    return before !== undefined && flow.steps.includes(before);
  };
  const isFound = (problem: Problem) =>
    own.some(
      ({ nodeId, code, field }) =>
        nodeId === (problem.nodeId ?? null) && (code === problem.code || (field && field === problem.field)),
    );
  const further = linted.problems.filter(
    (problem) => !GRAPH.has(problem.code) && isUnchanged(problem) && !isFound(problem),
  );
  const isError = ({ severity }: Problem) => severity === "error";
  const all = [...own, ...further].map((problem) => atUpload(problem, flow));
  return [...all.filter(isError), ...all.filter((problem) => !isError(problem))];
}

const SETTINGS = ["name", "gate", "renamePattern", "webhookUrl", "triggerFolder"] as const;

const isSameGraph = (a: Flow, b: Flow) => a.edges === b.edges && a.steps.length === b.steps.length;

/** A problem of the gate or of the folder that starts the workflow, at the Upload step, whose fields these are. */
function atUpload(problem: Problem, flow: Flow): Problem {
  const isOfUpload = problem.nodeId == null && /^(uploadGate|trigger)\b/.test(problem.field ?? "");
  return isOfUpload ? { ...problem, nodeId: uploadOf(flow)?.id ?? null } : problem;
}

/** Found here as soon as they are there, so an older answer has nothing to add. */
const GRAPH = new Set([
  "unreachable_node",
  "missing_branch_edge",
  "missing_condition",
  "no_delivery",
  "unused_webhook_url",
  "webhook_without_url",
]);

/** The message without the step's name before it, for places that show the step. */
export const shortMessage = ({ message }: Problem) =>
  capitalized(message.replace(/^node `[^`]*`(?: \([^\n]*?\))?: /, ""));
