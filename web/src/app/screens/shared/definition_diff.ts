/** Differences between two definitions, in the words of the editor: pure. */
import { conditionText } from "./condition_text";
import {
  configOf,
  type Definition,
  type DefinitionEdge,
  type DefinitionNode,
  kindInWords,
  kindOf,
  titleOf,
  wayOf,
} from "./workflow_types";

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
 * difference.
 */
export function differences(before: Definition, after: Definition): Difference[] {
  return [...steps(before, after), ...connections(before, after), ...settings(before, after)];
}

function steps(before: Definition, after: Definition): Difference[] {
  const old = new Map((before.nodes ?? []).map((node) => [node.id, node]));
  const now = new Map((after.nodes ?? []).map((node) => [node.id, node]));
  const found: Difference[] = [];
  for (const [id, node] of old)
    if (!now.has(id)) found.push({ kind: "removed", what: "step", title: titleOf(node), lines: [] });
  for (const [id, node] of now) {
    const was = old.get(id);
    const lines = changes(was && factsOf(was, before), factsOf(node, after));
    const isNamed = titleOf(node) !== kindInWords(kindOf(node));
    const shown = lines.filter(({ label }) => label !== "Title" && (isNamed || label !== "Kind"));
    if (!was) found.push({ kind: "added", what: "step", title: titleOf(node), lines: shown });
    else if (lines.length > 0) found.push({ kind: "changed", what: "step", title: titleOf(node), lines });
  }
  return found;
}

/** Everything of a step that the service works by, as texts under their names. */
function factsOf(node: DefinitionNode, definition: Definition): Map<string, string> {
  const facts = new Map([["Kind", kindInWords(kindOf(node))]]);
  if (titleOf(node) !== kindInWords(kindOf(node))) facts.set("Title", titleOf(node));
  for (const [name, value] of Object.entries(configOf(node)))
    if (name !== "condition" && value !== null && value !== undefined && value !== "")
      facts.set(fieldInWords(name), text(value));
  const condition = definition.branchConditions?.[node.id] ?? (configOf(node).condition as never);
  if (kindOf(node) === "branch" && condition) facts.set("Condition", conditionText(condition));
  return facts;
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

function connections(before: Definition, after: Definition): Difference[] {
  const key = (edge: DefinitionEdge) => JSON.stringify([edge.source, wayOf(edge), edge.target]);
  const old = new Map((before.edges ?? []).map((edge) => [key(edge), edge]));
  const now = new Map((after.edges ?? []).map((edge) => [key(edge), edge]));
  const title = (edge: DefinitionEdge, definition: Definition) => {
    const name = (id: string) => titleOf(definition.nodes.find((node) => node.id === id) ?? { id });
    const way = wayOf(edge);
    return `${name(edge.source)}${way === "default" ? "" : ` (${way})`} → ${name(edge.target)}`;
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

const SETTINGS: [string, (definition: Definition) => string][] = [
  ["Gate", ({ uploadGate }) => conditionText(uploadGate)],
  ["Names of results", ({ renamePattern }) => renamePattern ?? ""],
  ["Address for webhooks", ({ webhookUrl }) => webhookUrl ?? ""],
  ["Folder that starts it", ({ trigger }) => trigger?.folderId ?? ""],
];

function settings(before: Definition, after: Definition): Difference[] {
  return SETTINGS.flatMap(([title, of]): Difference[] => {
    const [was, is] = [of(before), of(after)];
    if (was === is) return [];
    const kind = was === "" ? "added" : is === "" ? "removed" : "changed";
    return [{ kind, what: "setting", title, lines: [{ label: "", before: was, after: is }] }];
  });
}

/** "Resize width" of `resizeWidth`. */
function fieldInWords(name: string): string {
  const words = name.replaceAll(/[_-]/g, " ").replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const text = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : String(value));
