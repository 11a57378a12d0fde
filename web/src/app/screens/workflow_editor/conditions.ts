/** Conditions of gates and branches: groups of rules, joined by and or or, each of them may be turned round. Pure. */
import type { Fields, Json } from "./flow";

export type Logic = "and" | "or";

export interface Rule {
  field: string;
  operator: string;
  /** Undefined: none is given. */
  value?: Json | undefined;
  negate: boolean;
}

export interface Group {
  logic: Logic;
  negate: boolean;
  rules: Rule[];
  groups: Group[];
  /** A form that the editor does not show: kept as it is until it is replaced. */
  raw?: Json | undefined;
}

export const LIMITS = { depth: 8, conditions: 200 };

export const emptyGroup = (logic: Logic = "and"): Group => ({ logic, negate: false, rules: [], groups: [] });
export const newRule = (): Rule => ({
  field: "mime",
  operator: "starts_with",
  value: "image/",
  negate: false,
});

/** Reads a condition in any form that a definition may have. */
export function readGroup(value: Json): Group {
  const part = readPart(value);
  if (!part) return { ...emptyGroup(), raw: value };
  return "rules" in part ? part : { ...emptyGroup(), rules: [part] };
}

/** Reads the forms from before there were groups: a word, or a list of words. Null when there are none. */
export function readLegacy(words: Json, logic: Json): Group | null {
  const list = (Array.isArray(words) ? words : [words]).filter((word) => word !== null && word !== "");
  if (list.length === 0) return null;
  const parts = list.map(readPart);
  if (parts.some((part) => !part)) return { ...emptyGroup(), raw: words };
  return assembled(readLogic(logic), false, parts as (Rule | Group)[]);
}

function readPart(value: Json): Rule | Group | null {
  if (typeof value === "string") return legacyRule(value);
  if (Array.isArray(value)) return readLegacy(value, "and");
  if (!value || typeof value !== "object") return null;
  const negate = isTrue(value.negate);
  if (value.field != null) {
    const { field, operator, value: operand } = value;
    if (typeof field !== "string" || typeof operator !== "string") return null;
    return { field, operator, negate, ...(operand == null ? {} : { value: operand }) };
  }
  const listed = [value.conditions ?? value.rules ?? [], value.groups ?? []];
  if (!listed.every(Array.isArray)) return null;
  const parts = (listed as Json[][]).flat().map(readPart);
  if (parts.some((part) => !part)) return null;
  return assembled(readLogic(value.logic ?? null), negate, parts as (Rule | Group)[]);
}

function assembled(logic: Logic, negate: boolean, parts: (Rule | Group)[]): Group {
  return {
    logic,
    negate,
    rules: parts.filter((part): part is Rule => !("rules" in part)),
    groups: parts.filter((part): part is Group => "rules" in part),
  };
}

const isTrue = (value: Json | undefined) => value === true || value === "true";
const readLogic = (value: Json): Logic => (/^\s*(or|any)\s*$/i.test(String(value)) ? "or" : "and");

const mime = (prefix: string): Rule => ({
  field: "mime",
  operator: "starts_with",
  value: prefix,
  negate: false,
});
const WORDS = new Map<string, Rule>([
  ["images-only", mime("image/")],
  ["videos-only", mime("video/")],
  ["audio-only", mime("audio/")],
  [
    "from-google-drive",
    { field: "upload_source", operator: "matches", value: "^google[-_ ]?drive$", negate: false },
  ],
  ["larger-than-100mb", { field: "size_bytes", operator: "gt", value: 100_000_000, negate: false }],
]);

function legacyRule(word: string): Rule | null {
  const name = word.trim().toLowerCase();
  const known = WORDS.get(name.replace(/[_ ]/g, "-"));
  if (known) return known;
  if (/^[a-z]+\/(\*|)$/.test(name)) return mime(name.replace("*", ""));
  return /^[a-z]+\/[a-z0-9.+-]+$/.test(name)
    ? { field: "mime", operator: "equals", value: name, negate: false }
    : null;
}

export function writeGroup(group: Group): Json {
  if (group.raw !== undefined) return group.raw;
  return {
    logic: group.logic,
    ...(group.negate ? { negate: true } : {}),
    conditions: group.rules.map(writeRule),
    ...(group.groups.length > 0 ? { groups: group.groups.map(writeGroup) } : {}),
  };
}

const writeRule = ({ field, operator, value, negate }: Rule): Fields => ({
  field,
  operator,
  ...(value === undefined ? {} : { value }),
  ...(negate ? { negate: true } : {}),
});

/** Place of a group in another one: the index at each level. */
export type Path = number[];

/** The group with the one at `path` replaced by what `change` makes of it; null takes it out. */
export function changedAt(group: Group, path: Path, change: (group: Group) => Group | null): Group {
  const [index, ...rest] = path;
  if (index === undefined) return change(group) ?? emptyGroup();
  const groups = group.groups.flatMap((inner, i) => {
    if (i !== index) return [inner];
    const next = rest.length > 0 ? changedAt(inner, rest, change) : change(inner);
    return next ? [next] : [];
  });
  return { ...group, groups };
}

export const countOf = (group: Group): number =>
  1 + group.rules.length + group.groups.reduce((sum, inner) => sum + countOf(inner), 0);

/** Spelled as the service compares words: without case, hyphens, underscores and blanks. */
export const spelled = (word: string) => word.toLowerCase().replace(/[-_ ]/g, "");

interface Named {
  name: string;
  aliases: string[];
  symbols?: string[];
}

/** The entry of a list of the catalogue that a word of a definition means. */
export function meant<T extends Named>(list: T[], word: string): T | undefined {
  const wanted = spelled(word);
  return list.find(
    ({ name, aliases, symbols = [] }) =>
      symbols.includes(word.trim()) || [name, ...aliases].some((one) => spelled(one) === wanted),
  );
}

const SIGNS: Record<string, string> = {
  equals: "=",
  not_equals: "≠",
  gt: ">",
  lt: "<",
  gte: "≥",
  lte: "≤",
};

/** A group in one line: `width > 1200`, `not (a or b)`. */
export function groupInWords(group: Group): string {
  if (group.raw !== undefined) return "written in an older form";
  const parts = [
    ...group.rules.map(ruleInWords),
    ...group.groups.map((inner) => (inner.negate ? groupInWords(inner) : `(${groupInWords(inner)})`)),
  ];
  const text = parts.length > 0 ? parts.join(` ${group.logic} `) : "always";
  return group.negate ? `not (${text})` : text;
}

function ruleInWords({ field, operator, value, negate }: Rule): string {
  const sign = SIGNS[operator] ?? operator.replace(/_/g, " ");
  const operand = value === undefined ? "" : ` ${typeof value === "string" ? value : JSON.stringify(value)}`;
  const text = `${field.replace(/_/g, " ")} ${sign}${operand}`;
  return negate ? `not ${text}` : text;
}
