/** Differences between two definitions, in the words of the editor: pure. */
import { capitalized } from "../../parts/format";
import type { Catalogue } from "../workflow_editor/types";
import { conditionText } from "./condition_text";
import { type Edge, type Flow, readFlow, type Step, stepOf, titleOf } from "./flow";
import { inOwnWords } from "./meaning";
import { kindInWords } from "./workflow_types";

export interface Line {
  label: string;
  before?: string;
  after?: string;
}

export interface Difference {
  kind: "added" | "removed" | "changed";
  what: "step" | "connection" | "setting";
  title: string;
  lines: Line[];
}

/**
 * Steps first, then what connects them, then the gate, patterns and addresses. Places of nodes in an editor are no
 * difference, nor are spellings that the service reads alike.
 */
export function differences(before: object, after: object, catalogue?: Catalogue): Difference[] {
  const read = (definition: object) => {
    const flow = readFlow("", definition);
    return catalogue ? inOwnWords(flow, catalogue) : flow;
  };
  const [old, now] = [read(before), read(after)];
  return [...steps(old, now), ...connections(old, now), ...settings(old, now)];
}

function steps(before: Flow, after: Flow): Difference[] {
  const found: Difference[] = [];
  for (const step of before.steps)
    if (!stepOf(after, step.id))
      found.push({ kind: "removed", what: "step", title: titleOf(step), lines: [] });
  for (const step of after.steps) {
    const was = stepOf(before, step.id);
    const title = titleOf(step);
    const lines = changes(was && factsOf(was), factsOf(step));
    const isNamed = title !== kindInWords(step.kind);
    const shown = lines.filter(({ label }) => label !== "Title" && (isNamed || label !== "Kind"));
    if (!was) found.push({ kind: "added", what: "step", title, lines: shown });
    else if (lines.length > 0) found.push({ kind: "changed", what: "step", title, lines });
  }
  return found;
}

/** Everything of a step that the service works by, as texts under their names. */
function factsOf(step: Step): Map<string, string> {
  const facts = new Map([["Kind", kindInWords(step.kind)]]);
  if (titleOf(step) !== kindInWords(step.kind)) facts.set("Title", titleOf(step));
  return new Map([...facts, ...settingsOf(step)]);
}

/** The fields of a step and its condition, as texts under their names. */
export function settingsOf({ config, condition }: Step): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [name, value] of Object.entries(config))
    if (value !== null && value !== "") settings.set(fieldInWords(name), text(value));
  if (condition) settings.set("Condition", conditionText(condition));
  return settings;
}

function changes(before: Map<string, string> | undefined, after: Map<string, string>): Line[] {
  const lines: Line[] = [];
  for (const label of new Set([...(before?.keys() ?? []), ...after.keys()])) {
    const [was, is] = [before?.get(label), after.get(label)];
    if (was === is) continue;
    lines.push({
      label,
      ...(was !== undefined ? { before: was } : {}),
      ...(is !== undefined ? { after: is } : {}),
    });
  }
  return lines;
}

function connections(before: Flow, after: Flow): Difference[] {
  const key = (edge: Edge) => JSON.stringify([edge.source, edge.result, edge.target]);
  const old = new Map(before.edges.map((edge) => [key(edge), edge]));
  const now = new Map(after.edges.map((edge) => [key(edge), edge]));
  const title = ({ source, result, target }: Edge, flow: Flow) => {
    const name = (id: string) => {
      const step = stepOf(flow, id);
      return step ? titleOf(step) : id;
    };
    return `${name(source)}${result === "default" ? "" : ` (${result})`} → ${name(target)}`;
  };
  const gone = [...old].filter(([each]) => !now.has(each));
  const come = [...now].filter(([each]) => !old.has(each));
  return [
    ...gone.map(([, edge]) => ({
      kind: "removed",
      what: "connection",
      title: title(edge, before),
      lines: [],
    })),
    ...come.map(([, edge]) => ({ kind: "added", what: "connection", title: title(edge, after), lines: [] })),
  ] as Difference[];
}

const SETTINGS: [string, (flow: Flow) => string][] = [
  ["Gate", ({ gate }) => (gate ? conditionText(gate) : "")],
  ["Names of results", ({ renamePattern }) => renamePattern],
  ["Address for webhooks", ({ webhookUrl }) => webhookUrl],
  ["Folder that starts it", ({ triggerFolder }) => triggerFolder],
];

function settings(before: Flow, after: Flow): Difference[] {
  return SETTINGS.flatMap(([title, of]): Difference[] => {
    const [was, is] = [of(before), of(after)];
    if (was === is) return [];
    const kind = was === "" ? "added" : is === "" ? "removed" : "changed";
    return [{ kind, what: "setting", title, lines: [{ label: "", before: was, after: is }] }];
  });
}

/** "Resize width" of `resizeWidth`. */
const fieldInWords = (name: string) =>
  capitalized(name.replaceAll(/[_-]/g, " ").replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));

const text = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : String(value));
