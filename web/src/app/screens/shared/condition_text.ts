/** Conditions in words: pure. */
import { type Group, type Rule, spelled } from "./conditions";

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

const WORDS = new Map(Object.entries(OPERATORS).map(([name, word]) => [spelled(name), word]));

/** "mime starts with “image/” and not (width is greater than 1600 or …)". */
export function conditionText({ logic, negate, rules, groups, raw }: Group): string {
  if (raw !== undefined) return typeof raw === "string" ? raw : JSON.stringify(raw);
  const parts = [
    ...rules.map(ruleText),
    ...groups.map((inner) => {
      const text = conditionText(inner);
      return inner.negate || !text.includes(" ") ? text : `(${text})`;
    }),
  ];
  if (parts.length === 0) return negate ? "never" : "always";
  const text = parts.join(` ${logic} `);
  return negate ? `not (${text})` : text;
}

function ruleText({ field, operator, value, negate }: Rule): string {
  const word = WORDS.get(spelled(operator)) ?? operator.replaceAll(/[_-]/g, " ");
  const name = field.replaceAll("_", " ");
  const given =
    value === undefined ? "" : ` ${typeof value === "string" ? `“${value}”` : JSON.stringify(value)}`;
  const text = `${name} ${word}${word.endsWith("empty") ? "" : given}`;
  return negate ? `not ${text}` : text;
}
