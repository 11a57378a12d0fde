/** A flow in the catalogue's own words, whichever of their spellings its definition has. Pure. */
import type { Catalogue, ConditionField, Operator } from "../workflow_editor/types";
import { type Group, type Rule, spelled } from "./conditions";
import type { Fields, Flow, Json, Step } from "./flow";

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

/** Whether a key of a config is this field: in camelCase or snake_case, or by its other name. */
export const isSpelling = (key: string, name: string, alias?: string | null) => {
  const camel = key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return camel === name || camel === alias;
};

/** The flow with fields, properties and comparisons as the catalogue names them. What it does not know stays as it is. */
export function inOwnWords(flow: Flow, catalogue: Catalogue): Flow {
  const steps = flow.steps.map((step) => ({
    ...step,
    config: ownConfig(step, catalogue),
    condition: step.condition && ownGroup(step.condition, catalogue),
  }));
  return { ...flow, steps, gate: flow.gate && ownGroup(flow.gate, catalogue) };
}

function ownConfig({ kind, config }: Step, { kinds }: Catalogue): Fields {
  const fields = kinds.find((one) => one.kind === kind)?.fields ?? [];
  const nameOf = (key: string) => fields.find(({ name, alias }) => isSpelling(key, name, alias))?.name ?? key;
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [nameOf(key), value]));
}

function ownGroup(group: Group, catalogue: Catalogue): Group {
  return {
    ...group,
    rules: group.rules.map((rule) => ownRule(rule, catalogue)),
    groups: group.groups.map((inner) => ownGroup(inner, catalogue)),
  };
}

function ownRule(rule: Rule, { conditions }: Catalogue): Rule {
  const field = meant(conditions.fields, rule.field);
  const operator = meant(conditions.operators, rule.operator);
  return {
    ...rule,
    field: field?.name ?? rule.field,
    operator: operator?.name ?? rule.operator,
    ...(rule.value === undefined ? {} : { value: ownValue(rule.value, field, operator) }),
  };
}

/** The right side of a comparison, a number where one is compared with. */
function ownValue(value: Json, field: ConditionField | undefined, operator: Operator | undefined): Json {
  if (!comparesNumbers(field, operator) || typeof value !== "string" || !value.trim()) return value;
  const number = Number(value);
  return Number.isFinite(number) ? number : value;
}

export const comparesNumbers = (field: ConditionField | undefined, operator: Operator | undefined) =>
  operator?.takes === "number" || (operator?.takes === "same" && field?.isNumber === true);
