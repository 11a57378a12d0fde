/** Conditions in words: pure. */
import type { Condition, Group } from "./workflow_types";

/** Comparisons in words. */
export const OPERATORS: Record<string, string> = {
  equals: "is",
  not_equals: "is not",
  contains: "contains",
  not_contains: "does not contain",
  starts_with: "starts with",
  not_starts_with: "does not start with",
  ends_with: "ends with",
  not_ends_with: "does not end with",
  matches: "matches",
  not_matches: "does not match",
  gt: "is greater than",
  lt: "is less than",
  gte: "is at least",
  lte: "is at most",
  is_empty: "is empty",
  is_not_empty: "is not empty",
};

const isGroup = (each: Condition | Group): each is Group => !("field" in each);

/** "mime starts with “image/” and not (width is greater than 1600 or …)". */
export function conditionText(group: Group | Condition | null | undefined): string {
  if (!group) return "";
  if (!isGroup(group)) return rule(group);
  const parts = [...(group.conditions ?? []), ...(group.groups ?? [])]
    .map((each) => {
      const text = conditionText(each);
      return isGroup(each) && !each.negate && text.includes(" ") ? `(${text})` : text;
    })
    .filter(Boolean);
  const isAny = group.logic === "or" || group.logic === "any";
  const text = parts.join(isAny ? " or " : " and ");
  return group.negate && text ? `not (${text})` : text;
}

function rule({ field, operator, value, negate }: Condition): string {
  const word = OPERATORS[operator.replaceAll("-", "_")] ?? operator.replaceAll(/[_-]/g, " ");
  const name = field.replaceAll("_", " ");
  const given =
    value === undefined || value === null ? "" : ` ${typeof value === "string" ? `“${value}”` : value}`;
  const text = `${name} ${word}${word.endsWith("empty") ? "" : given}`;
  return negate ? `not ${text}` : text;
}
