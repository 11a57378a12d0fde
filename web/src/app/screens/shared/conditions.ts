/**
 * Conditions of gates and branches: groups of rules, joined by and or or, each of them may be turned round. They are read
 * as the service reads them (`workflow/condition/read.rs`), in every spelling that it takes. Pure.
 */
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
  /** What cannot be read: kept as it is until it is replaced. */
  raw?: Json | undefined;
}

export const emptyGroup = (logic: Logic = "and"): Group => ({ logic, negate: false, rules: [], groups: [] });

/** Whether there is a condition: blank text and an empty list are none, an empty group is one. */
export const isGiven = (value: Json | undefined): value is Json =>
  !(
    value == null ||
    (typeof value === "string" && !value.trim()) ||
    (Array.isArray(value) && value.length === 0)
  );

/**
 * Reads a condition in any of its forms: a group, one condition, a word of older definitions, or a list of these, which
 * `logic` joins. Null: there is none.
 */
export function readGroup(value: Json, logic: Json = null): Group | null {
  if (!isGiven(value)) return null;
  if (!Array.isArray(value)) {
    const part = readPart(value);
    return part ? intoGroup(part) : { ...emptyGroup(), raw: value };
  }
  const [joinedBy, parts] = [readLogic(logic), readParts(value)];
  if (joinedBy && parts) return assembled(joinedBy, false, parts);
  // What joins the list is not beside it any more when it is saved.
  return { ...emptyGroup(), raw: logic === null ? value : { logic, conditions: value } };
}

type Part = Rule | Group;

const isGroup = (part: Part): part is Group => "rules" in part;
const intoGroup = (part: Part): Group => (isGroup(part) ? part : { ...emptyGroup(), rules: [part] });

/** A condition or a group; null: it cannot be read. */
function readPart(value: Json): Part | null {
  if (typeof value === "string") return readWord(value);
  if (!value || typeof value !== "object" || Array.isArray(value)) return null;
  return value.field == null ? readObject(value) : readRule(value);
}

function readParts(list: Json | undefined): Part[] | null {
  if (!Array.isArray(list)) return null;
  const parts = list.map(readPart);
  return parts.every((part) => part !== null) ? parts : null;
}

function readRule(fields: Fields): Rule | null {
  const { field, operator, value } = fields;
  const negate = readNegate(fields);
  if (typeof field !== "string" || typeof operator !== "string" || negate === null) return null;
  return { field, operator, negate, ...(value == null ? {} : { value }) };
}

function readObject(fields: Fields): Group | null {
  const conditions = fields.conditions ?? fields.rules;
  const groups = fields.groups;
  const given = fields.logic ?? fields.combinator ?? null;
  if (conditions == null && groups == null && given === null) return null;
  const [logic, negate] = [readLogic(given), readNegate(fields)];
  const parts = [readParts(conditions ?? []), readParts(groups ?? [])];
  if (logic === null || negate === null || !parts.every((list) => list !== null)) return null;
  return assembled(logic, negate, parts.flat());
}

const assembled = (logic: Logic, negate: boolean, parts: Part[]): Group => ({
  logic,
  negate,
  rules: parts.filter((part): part is Rule => !isGroup(part)),
  groups: parts.filter(isGroup),
});

/** And by default. */
function readLogic(value: Json): Logic | null {
  if (value === null) return "and";
  const word = typeof value === "string" ? spelled(value) : "";
  if (["and", "all", "&&"].includes(word)) return "and";
  return ["or", "any", "||"].includes(word) ? "or" : null;
}

function readNegate(fields: Fields): boolean | null {
  const given = fields.negate ?? fields.not ?? false;
  const word = typeof given === "string" ? given.trim().toLowerCase() : given;
  if (word === true || word === "true") return true;
  return word === false || word === "false" ? false : null;
}

const WORDS: [word: string, field: string, operator: string, value: Json][] = [
  ["images-only", "mime", "starts_with", "image/"],
  ["videos-only", "mime", "starts_with", "video/"],
  ["audio-only", "mime", "starts_with", "audio/"],
  ["from-google-drive", "upload_source", "matches", "^google[-_ ]?drive$"],
  ["larger-than-100mb", "size_bytes", "gt", 100_000_000],
];

/** The condition that a word of older definitions means: one of the list, a media type, or `image/` and `image/*`. */
function readWord(text: string): Rule | null {
  const word = text.trim();
  const slash = word.indexOf("/");
  if (slash < 0) {
    const known = WORDS.find(([name]) => spelled(name) === spelled(word));
    return known ? { field: known[1], operator: known[2], value: known[3], negate: false } : null;
  }
  const [type, subtype] = [word.slice(0, slash), word.slice(slash + 1)];
  if (subtype !== "" && subtype !== "*")
    return { field: "mime", operator: "equals", value: word, negate: false };
  if (type === "" || type === "*") return null;
  return { field: "mime", operator: "starts_with", value: `${type}/`, negate: false };
}

/** Spelled as the service compares words: without case, hyphens, underscores and blanks. */
export const spelled = (word: string) => word.toLowerCase().replace(/[-_ ]/g, "");
