/** Changes of conditions, their form in a definition, and their short form in words. Pure. */
import { emptyGroup, type Group, type Rule } from "../shared/conditions";
import type { Fields, Json } from "../shared/flow";

export const LIMITS = { depth: 8, conditions: 200 };

export const newRule = (): Rule => ({
  field: "mime",
  operator: "starts_with",
  value: "image/",
  negate: false,
});

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
