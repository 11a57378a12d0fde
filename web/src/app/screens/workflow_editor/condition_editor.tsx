/** Conditions with AND, OR, NOT and groups in groups; properties and comparisons come from the catalogue. */
import { useRef } from "preact/hooks";
import { Button } from "../../parts/button";
import { Checkbox, Select, TextField } from "../../parts/form";
import { capitalized } from "../../parts/format";
import { Callout } from "../../parts/states";
import { OPERATORS } from "../shared/condition_text";
import { emptyGroup, type Group, type Rule } from "../shared/conditions";
import { meant } from "../shared/meaning";
import { changedAt, countOf, LIMITS, newRule, type Path } from "./conditions";
import { useEditor } from "./state";
import { words } from "./words";

const texts = words.condition;

interface ConditionEditorProps {
  group: Group | null;
  /** `part` names what was typed into, so that it is one step of undo. */
  onChange: (group: Group | null, part?: string) => void;
  /** Its place as lint writes it: `uploadGate`, `branchConditions.ID`. */
  prefix: string;
  /** Said when there is no condition and that is no problem. */
  none?: string;
}

export function ConditionEditor({ group, onChange, prefix, none }: ConditionEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const start = () => {
    onChange({ ...emptyGroup(), rules: [newRule()] });
    focusIn(place, "select[name=field]");
  };
  if (!group)
    return (
      <div class="stack" ref={place}>
        {none && <p class="soft small">{none}</p>}
        <div class="actions">
          <Button small icon="plus" onClick={start}>
            {texts.start}
          </Button>
        </div>
      </div>
    );
  if (group.raw !== undefined)
    return (
      <div class="stack" ref={place}>
        <Callout
          tone="info"
          actions={
            <Button small onClick={start}>
              {texts.replace}
            </Button>
          }
        >
          <p class="small">{texts.raw}</p>
        </Callout>
      </div>
    );
  return (
    <div class="stack" ref={place}>
      <GroupEditor
        group={group}
        path={[]}
        prefix={prefix}
        change={(path, next, part) => {
          const changed = changedAt(group, path, () => next);
          onChange(path.length === 0 && next === null ? null : changed, part);
          if (next === null) focusIn(place, ".btn");
        }}
        room={LIMITS.conditions - countOf(group)}
      />
    </div>
  );
}

/** Puts the focus there once what was changed is drawn: what had it may be gone. */
function focusIn(
  place: { current: HTMLElement | null },
  selector: string,
  which: "first" | "last" = "first",
) {
  requestAnimationFrame(() => {
    const found = [...(place.current?.querySelectorAll<HTMLElement>(selector) ?? [])];
    found[which === "first" ? 0 : found.length - 1]?.focus();
  });
}

interface GroupEditorProps {
  group: Group;
  path: Path;
  prefix: string;
  change: (path: Path, next: Group | null, part?: string) => void;
  room: number;
}

function GroupEditor({ group, path, prefix, change, room }: GroupEditorProps) {
  const set = (next: Partial<Group>, part?: string) => change(path, { ...group, ...next }, part);
  const place = useRef<HTMLFieldSetElement>(null);
  const name = path.length === 0 ? texts.whole : texts.group(path.map((index) => index + 1).join("."));
  const setRule = (index: number, rule: Rule | null, part?: string) =>
    set(
      { rules: group.rules.flatMap((old, i) => (i === index ? (rule ? [rule] : []) : [old])) },
      part && `${path.join(".")}:${index}:${part}`,
    );
  return (
    <fieldset class="condition-group" ref={place}>
      <legend class="visually-hidden">{name}</legend>
      <div class="condition-head">
        <Select
          label={texts.logic}
          hiddenLabel
          name="logic"
          value={group.logic}
          choices={[
            { value: "and", label: texts.and },
            { value: "or", label: texts.or },
          ]}
          onInput={(event) => set({ logic: event.currentTarget.value === "or" ? "or" : "and" })}
        />
        <span class="soft small">{texts.of}</span>
        <Checkbox
          label={texts.not}
          checked={group.negate}
          onChange={(event) => set({ negate: event.currentTarget.checked })}
        />
        <Button
          small
          look="quiet"
          icon="trash"
          label={path.length === 0 ? texts.removeAll : texts.removeGroup}
          onClick={() => change(path, null)}
        />
      </div>
      {group.rules.map((rule, i) => (
        // Rules have no name but their place
        <RuleEditor
          key={i}
          rule={rule}
          index={i}
          at={`${prefix}${path.map((index) => `.groups[${index}]`).join("")}.conditions[${i}]`}
          onChange={(next, part) => {
            setRule(i, next, part);
            if (next === null) focusIn(place, ":scope > .actions .btn");
          }}
        />
      ))}
      {group.groups.map((inner, i) => (
        // Groups have no name but their place
        <GroupEditor key={i} group={inner} path={[...path, i]} prefix={prefix} change={change} room={room} />
      ))}
      <div class="actions">
        <Button
          small
          look="quiet"
          icon="plus"
          disabled={room < 1}
          onClick={() => {
            set({ rules: [...group.rules, { ...newRule(), ...defaultOf(group) }] });
            focusIn(place, ":scope > .condition-rule select[name=field]", "last");
          }}
        >
          {texts.add}
        </Button>
        {path.length + 1 < LIMITS.depth && (
          <Button
            small
            look="quiet"
            icon="plus"
            disabled={room < 2}
            onClick={() => {
              const inner = { ...emptyGroup(group.logic === "and" ? "or" : "and"), rules: [newRule()] };
              set({ groups: [...group.groups, inner] });
              focusIn(place, ":scope > .condition-group:last-of-type select[name=field]");
            }}
          >
            {texts.addGroup}
          </Button>
        )}
      </div>
    </fieldset>
  );
}

/** A further condition looks at the same property as the one before it. */
function defaultOf({ rules }: Group): Partial<Rule> {
  const last = rules[rules.length - 1];
  return last ? { field: last.field, operator: last.operator, value: "" } : {};
}

interface RuleEditorProps {
  rule: Rule;
  index: number;
  /** Its place as lint writes it. */
  at: string;
  onChange: (rule: Rule | null, part?: string) => void;
}

function RuleEditor({ rule, index, at, onChange }: RuleEditorProps) {
  const { catalogue, problems } = useEditor();
  const fields = catalogue?.conditions.fields ?? [];
  const operators = catalogue?.conditions.operators ?? [];
  const field = meant(fields, rule.field);
  const operator = meant(operators, rule.operator);
  const offered = operators.filter(
    ({ name }) => !field || field.operators.includes(name) || name === operator?.name,
  );
  const problem = problems.find((one) => one.field?.startsWith(at));
  const setField = (name: string) => {
    const next = fields.find((one) => one.name === name);
    const isFit = next && operator && next.operators.includes(operator.name);
    const fitting = isFit ? {} : { operator: next?.operators[0] ?? "equals" };
    const isOther = next?.isNumber !== field?.isNumber;
    onChange({ ...rule, ...fitting, field: name, ...(isOther ? { value: "" } : {}) });
  };
  const isNumber = operator?.takes === "number" || (operator?.takes === "same" && field?.isNumber);
  return (
    <fieldset class="condition-rule">
      <legend class="visually-hidden">{texts.rule(index + 1)}</legend>
      <Select
        label={texts.field}
        hiddenLabel
        name="field"
        value={field?.name ?? rule.field}
        choices={withOwn(fields, field ? undefined : rule.field)}
        onInput={(event) => setField(event.currentTarget.value)}
      />
      <Select
        label={texts.operator}
        hiddenLabel
        name="operator"
        value={operator?.name ?? rule.operator}
        choices={withOwn(offered, operator ? undefined : rule.operator)}
        onInput={(event) => onChange({ ...rule, operator: event.currentTarget.value })}
      />
      {operator?.takes !== "nothing" && (
        <TextField
          label={texts.value}
          hiddenLabel
          name="value"
          placeholder={texts.value}
          inputMode={isNumber ? "decimal" : undefined}
          spellcheck={false}
          value={rule.value === undefined ? "" : String(rule.value)}
          error={problem && problemText(problem.message)}
          onInput={(event) =>
            onChange({ ...rule, value: typed(event.currentTarget.value, isNumber) }, "value")
          }
        />
      )}
      <div class="condition-end">
        <Checkbox
          label={texts.not}
          checked={rule.negate}
          onChange={(event) => onChange({ ...rule, negate: event.currentTarget.checked })}
        />
        <Button small look="quiet" icon="close" label={texts.remove} onClick={() => onChange(null)} />
      </div>
    </fieldset>
  );
}

/** The message without the path to the place, which is here. */
const problemText = (message: string) =>
  capitalized(message.replace(/^(node `[^`]*`[^:]*: )?[\w.[\]-]+: /, ""));

/** A number as a number, where it is written as numbers are. */
export const typed = (text: string, isNumber: boolean | undefined) =>
  isNumber && String(Number(text)) === text ? Number(text) : text;

const withOwn = (list: { name: string }[], own: string | undefined) =>
  [...list.map(({ name }) => name), ...(own === undefined ? [] : [own])].map((name) => ({
    value: name,
    label: OPERATORS[name] ?? name.replace(/_/g, " "),
  }));
