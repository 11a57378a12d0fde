/**
 * A workflow as pages have it: steps, edges between them and conditions, without the several spellings that a definition
 * may have; the one reader of definitions. Values are never changed in place, so that the editor's undo keeps old ones and
 * views compare by identity. Pure.
 */
import { type Group, isGiven, readGroup } from "./conditions";
import { kindInWords } from "./workflow_types";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

/** On which result an edge is followed; `default` out of everything but a branch. */
export type Result = "default" | "true" | "false";

/** A way out of a step: where another step can be put or connected. */
export interface Place {
  source: string;
  result: Result;
}

export interface Edge extends Place {
  target: string;
  /** Fields of the definition that the service does not know. */
  rest: Fields;
}

export interface Step {
  id: string;
  kind: string;
  /** Empty: the kind in words. */
  title: string;
  config: Fields;
  /** A branch's condition; null when it has none yet. */
  condition: Group | null;
  /** Place on the canvas that a user gave it; undefined: that of the layout. */
  at?: Point | undefined;
  rest: Fields;
  dataRest: Fields;
}

export interface Point {
  x: number;
  y: number;
}

export interface Flow {
  name: string;
  steps: Step[];
  edges: Edge[];
  gate: Group | null;
  renamePattern: string;
  webhookUrl: string;
  triggerFolder: string;
  rest: Fields;
}

export const isBranch = (step: Step | undefined) => step?.kind === "branch";
export const stepOf = (flow: Flow, id: string | null | undefined) =>
  id == null ? undefined : flow.steps.find((step) => step.id === id);
export const uploadOf = (flow: Flow) => flow.steps.find((step) => step.kind === "upload");
export const edgeAt = (flow: Flow, { source, result }: Place) =>
  flow.edges.find((edge) => edge.source === source && edge.result === result);
export const targetAt = (flow: Flow, place: Place): string | null => edgeAt(flow, place)?.target ?? null;

/** The title as given, else the kind in words: as the log of a run has it. */
export const titleOf = ({ id, kind, title }: Step) => title.trim() || kindInWords(kind) || id;

/** The ways out of a step, the true one first. */
export const placesOf = (step: Step): Place[] =>
  (isBranch(step) ? (["true", "false"] as const) : (["default"] as const)).map((result) => ({
    source: step.id,
    result,
  }));

/** Reads a definition that the service has accepted: camelCase or snake_case, older forms of conditions, `null` is absent. */
export function readFlow(name: string, definition: object): Flow {
  const fields = new Reader(definition as Fields);
  const conditions = asFields(fields.take("branchConditions"));
  const forAll = {
    condition: fields.take("branchCondition"),
    logic: fields.take("branchLogicGate"),
  };
  const steps = asList(fields.take("nodes")).map((node) => readStep(asFields(node), conditions, forAll));
  const gate = fields.take("uploadGate");
  const oldGate = { conditions: fields.take("uploadConditions"), logic: fields.take("uploadLogicGate") };
  return {
    name,
    steps,
    edges: readEdges(asList(fields.take("edges")), steps),
    gate: gate !== null ? readGroup(gate) : readGroup(oldGate.conditions, oldGate.logic),
    renamePattern: asText(fields.take("renamePattern")),
    webhookUrl: asText(fields.take("webhookUrl")),
    triggerFolder: asText(new Reader(asFields(fields.take("trigger"))).take("folderId")),
    rest: fields.rest,
  };
}

function readStep(node: Fields, conditions: Fields, forAll: { condition: Json; logic: Json }): Step {
  const own = new Reader(node);
  const data = new Reader(asFields(own.take("data")));
  const first = (...names: string[]) => {
    for (const reader of [data, own])
      for (const name of names) {
        const value = reader.take(name);
        if (value !== null) return value;
      }
    return null;
  };
  const id = asText(own.take("id"));
  const kind = asText(first("kind", "type")).trim().toLowerCase().replace(/-/g, "_");
  const title = asText(first("title", "label"));
  const config = { ...asFields(first("config")) };
  const condition =
    kind === "branch"
      ? conditionOf(Object.hasOwn(conditions, id) ? conditions[id] : null, config, forAll)
      : null;
  const position = asFields(own.take("position"));
  const x = own.take("x") ?? position.x;
  const y = own.take("y") ?? position.y;
  const at = typeof x === "number" && typeof y === "number" ? { at: { x, y } } : {};
  return { id, kind, title, config, condition, ...at, rest: own.rest, dataRest: data.rest };
}

/** A branch's condition from wherever it may be; what is found in the config is taken out of it. */
function conditionOf(underId: Json | undefined, config: Fields, forAll: { condition: Json; logic: Json }) {
  const reader = new Reader(config);
  const logic = reader.take("branchLogicGate") ?? forAll.logic;
  const named = reader.take("condition");
  const old = reader.take("branchCondition");
  const isGroup = ["conditions", "groups", "rules", "field"].some((name) => isGiven(reader.peek(name)));
  const group = isGroup ? { ...reader.rest } : null;
  const given = [underId, named, group, old, forAll.condition].find(isGiven);
  const rest = given === group && group ? {} : reader.rest;
  for (const name of Object.keys(config)) delete config[name];
  Object.assign(config, rest);
  return given === undefined ? null : readGroup(given, logic);
}

/** One edge for each way out. Out of a branch, an edge without a result counts for each result without its own. */
function readEdges(list: Json[], steps: Step[]): Edge[] {
  const kinds = new Map(steps.map((step) => [step.id, step.kind]));
  const edges: Edge[] = [];
  const unlabelled: Edge[] = [];
  const isFree = (edge: Place) =>
    !edges.some((other) => other.source === edge.source && other.result === edge.result);
  for (const value of list) {
    const fields = new Reader(asFields(value));
    const [source, target] = [asText(fields.take("source")), asText(fields.take("target"))];
    // Editors that draw graphs keep a branch's way out in the edge's handle.
    const label = String(fields.take("kind") ?? fields.rest.sourceHandle)
      .trim()
      .toLowerCase();
    if (!kinds.has(source) || !kinds.has(target)) continue;
    const isLabelled = label === "true" || label === "false";
    const edge: Edge = { source, target, result: "default", rest: fields.rest };
    if (kinds.get(source) !== "branch") isFree(edge) && edges.push(edge);
    else if (isLabelled) edges.push({ ...edge, result: label });
    else unlabelled.push(edge);
  }
  for (const edge of unlabelled)
    for (const result of ["true", "false"] as const)
      if (isFree({ ...edge, result })) edges.push({ ...edge, result });
  return edges;
}

/**
 * Takes fields out of an object, in camelCase or, where that is not there, in snake_case; `null` is none. What is left is
 * kept.
 */
class Reader {
  readonly rest: Fields;

  constructor(fields: Fields) {
    this.rest = { ...fields };
  }

  peek(name: string): Json {
    const spelling = Object.hasOwn(this.rest, name) ? name : snakeCase(name);
    return (Object.hasOwn(this.rest, spelling) ? this.rest[spelling] : null) ?? null;
  }

  /** Takes both spellings away: what the service does not read must not be read once the other is gone. */
  take(name: string): Json {
    const value = this.peek(name);
    delete this.rest[name];
    delete this.rest[snakeCase(name)];
    return value;
  }
}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const asList = (value: Json): Json[] => (Array.isArray(value) ? value : []);
const asFields = (value: Json): Fields =>
  value && typeof value === "object" && !Array.isArray(value) ? value : {};
const asText = (value: Json): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
