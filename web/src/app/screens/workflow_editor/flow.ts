/**
 * A workflow as the editor has it: steps, edges between them and conditions, without the several spellings that a definition
 * may have. Values are never changed in place, so that undo keeps old ones and views compare by identity. Pure.
 */
import { type Group, readGroup, readLegacy, writeGroup } from "./conditions";
import { ordered } from "./order";

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

/** The ways out of a step, the true one first. */
export const placesOf = (step: Step): Place[] =>
  (isBranch(step) ? (["true", "false"] as const) : (["default"] as const)).map((result) => ({
    source: step.id,
    result,
  }));

/** A workflow with nothing but its beginning. */
export const emptyFlow = (name: string): Flow => ({
  name,
  steps: [newStep("upload", "upload")],
  edges: [],
  gate: null,
  renamePattern: "",
  webhookUrl: "",
  triggerFolder: "",
  rest: {},
});

export const newStep = (id: string, kind: string): Step => ({
  id,
  kind,
  title: "",
  config: {},
  condition: null,
  rest: {},
  dataRest: {},
});

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
    gate: isGiven(gate) ? readGroup(gate) : readLegacy(oldGate.conditions, oldGate.logic),
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
  const given = [underId, named, group].find(isGiven);
  const rest = given === group && group ? {} : reader.rest;
  for (const name of Object.keys(config)) delete config[name];
  Object.assign(config, rest);
  return given === undefined ? readLegacy(isGiven(old) ? old : forAll.condition, logic) : readGroup(given);
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
    const kind = fields.take("kind");
    const label = String(kind ?? fields.peek("sourceHandle")).toLowerCase();
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
 * The definition as it is saved. Steps are in the order of the outline and edges in that of their steps, so that two
 * flows that do the same are written alike, however they were made.
 */
export function writeFlow(flow: Flow): Fields {
  const order = ordered(flow);
  const place = new Map(order.map((step, i) => [step.id, i]));
  const rank = (edge: Edge) => (place.get(edge.source) ?? 0) * 3 + (edge.result === "true" ? 0 : 1);
  const edges = [...flow.edges].sort((a, b) => rank(a) - rank(b));
  const conditions = order.flatMap(({ id, kind, condition }) =>
    kind === "branch" && condition ? [[id, writeGroup(condition)] as const] : [],
  );
  return {
    ...flow.rest,
    nodes: order.map(writeStep),
    edges: edges.map(({ source, target, result, rest }) => ({
      ...rest,
      source,
      target,
      ...(result === "default" ? {} : { kind: result }),
    })),
    ...(flow.gate ? { uploadGate: writeGroup(flow.gate) } : {}),
    ...(conditions.length > 0 ? { branchConditions: Object.fromEntries(conditions) } : {}),
    ...(flow.renamePattern ? { renamePattern: flow.renamePattern } : {}),
    ...(flow.webhookUrl ? { webhookUrl: flow.webhookUrl } : {}),
    ...(flow.triggerFolder ? { trigger: { folderId: flow.triggerFolder } } : {}),
  };
}

const writeStep = ({ id, kind, title, config, at, rest, dataRest }: Step): Fields => ({
  ...rest,
  id,
  ...(at ? { x: at.x, y: at.y } : {}),
  data: {
    ...dataRest,
    kind,
    ...(title.trim() ? { title } : {}),
    ...(Object.keys(config).length > 0 ? { config } : {}),
  },
});

/** Whether two flows are saved as the same; the order of fields in an object does not count. */
export const isSameFlow = (a: Flow, b: Flow) =>
  a === b || (a.name === b.name && canonical(writeFlow(a)) === canonical(writeFlow(b)));

/** JSON with sorted keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    inner && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** Takes fields out of an object, in camelCase or snake_case; what is left is kept. */
class Reader {
  readonly rest: Fields;

  constructor(fields: Fields) {
    this.rest = { ...fields };
  }

  peek(name: string): Json {
    const spelling = this.spelling(name);
    return spelling === undefined ? null : (this.rest[spelling] ?? null);
  }

  take(name: string): Json {
    const value = this.peek(name);
    const spelling = this.spelling(name);
    if (spelling !== undefined) delete this.rest[spelling];
    return value;
  }

  private spelling(name: string): string | undefined {
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return [name, snake].find((one) => Object.hasOwn(this.rest, one) && this.rest[one] !== null);
  }
}

const isGiven = (value: Json | undefined): value is Json =>
  !(
    value == null ||
    (typeof value === "string" && !value.trim()) ||
    (Array.isArray(value) && value.length === 0)
  );
const asList = (value: Json): Json[] => (Array.isArray(value) ? value : []);
const asFields = (value: Json): Fields =>
  value && typeof value === "object" && !Array.isArray(value) ? value : {};
const asText = (value: Json): string =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
