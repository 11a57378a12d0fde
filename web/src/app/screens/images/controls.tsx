/** The parameters of the catalogue as controls, in panels by their group. */
import { Button } from "../../parts/button";
import { Field, Switch } from "../../parts/form";
import { Badge } from "../../parts/states";
import { problemOf, saysNothing, type Values } from "./address";
import type { CdnParameter } from "./types";
import { words } from "./words";

/** Open at first; the others once they have a value. */
const OPEN = ["size", "format", "crop"];
/** Numbers of at most so many steps of 1 have a slider too. */
const SLIDER_SPAN = 720;

interface PanelsProps {
  parameters: CdnParameter[];
  values: Values;
  onChange: (name: string, value: string) => void;
}

export function Panels({ parameters, values, onChange }: PanelsProps) {
  const groups = [...new Set(parameters.map(({ group }) => group))];
  return (
    <>
      {groups.map((group) => {
        const own = parameters.filter((parameter) => parameter.group === group);
        const set = own.filter((parameter) => !saysNothing(parameter, values[parameter.name])).length;
        return (
          <details key={group} class="builder-panel" open={OPEN.includes(group) || set > 0}>
            <summary>
              {words.groups[group] ?? group} {set > 0 && <Badge tone="info">{set}</Badge>}
            </summary>
            <div class="builder-controls">
              {own.map((parameter) => (
                <Control
                  key={parameter.name}
                  parameter={parameter}
                  value={values[parameter.name] ?? ""}
                  onChange={(value) => onChange(parameter.name, value)}
                />
              ))}
            </div>
          </details>
        );
      })}
    </>
  );
}

interface ControlProps {
  parameter: CdnParameter;
  value: string;
  onChange: (value: string) => void;
}

/** The longest of a parameter's names, with the one that addresses have. */
export function labelOf({ name, aliases }: CdnParameter): string {
  const longest = [name, ...aliases].reduce((best, alias) => (alias.length > best.length ? alias : best));
  return longest === name ? name : `${longest} (${name})`;
}

function Control({ parameter, value, onChange }: ControlProps) {
  const { name, input, summary } = parameter;
  const label = labelOf(parameter);
  if (input === "flag")
    return (
      <Switch
        label={label}
        hint={summary}
        checked={value === "1" || value === "true"}
        onChange={(checked) => onChange(checked ? "1" : "")}
      />
    );
  return (
    <Field label={label} name={name} hint={summary} error={problemOf(parameter, value)}>
      {(bound) => {
        const props = { bound, parameter, value, onChange, label };
        if (input === "choice") return <Choice {...props} />;
        if (input === "quality") return <Quality {...props} />;
        if (input === "integer" || input === "number") return <Numeric {...props} />;
        if (input === "colour") return <Colour {...props} />;
        if (input === "point") return <Point {...props} />;
        return <Text {...props} />;
      }}
    </Field>
  );
}

type InputProps = ControlProps & { bound: { id: string; name: string }; label: string };

function Text({ bound, value, onChange }: InputProps) {
  return (
    <input
      {...bound}
      class="input"
      autoComplete="off"
      spellcheck={false}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value.trim())}
    />
  );
}

function Choice({ bound, parameter, value, onChange }: InputProps) {
  const byDefault = parameter.default === null ? null : String(parameter.default);
  const others = parameter.values.filter((word) => word !== byDefault);
  return (
    <select
      {...bound}
      class="input"
      value={value === byDefault ? "" : value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">{byDefault === null ? words.unset : words.byDefault(byDefault)}</option>
      {value && value !== byDefault && !parameter.values.includes(value) && <option>{value}</option>}
      {others.map((word) => (
        <option key={word}>{word}</option>
      ))}
    </select>
  );
}

function Numeric({ bound, parameter, value, onChange, label }: InputProps) {
  const { minimum, maximum, step, input } = parameter;
  const span = minimum !== null && maximum !== null ? maximum - minimum : Number.POSITIVE_INFINITY;
  const unset = parameter.default === null ? "" : String(parameter.default);
  const bounds = { min: minimum ?? undefined, max: maximum ?? undefined };
  // A slider of a thousand steps cannot be held to one of them; fine values are typed.
  const coarse = input === "integer" ? 1 : span <= 10 ? 0.1 : 1;
  return (
    <span class="builder-pair">
      <input
        {...bound}
        {...bounds}
        type="number"
        class="input"
        step={step ?? "any"}
        placeholder={unset || words.unset}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {span <= SLIDER_SPAN && (
        <input
          {...bounds}
          type="range"
          step={coarse}
          aria-label={words.slider(label)}
          value={value || unset || String(minimum)}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </span>
  );
}

const NUMBER = "#";

function Quality(props: InputProps) {
  const { bound, parameter, value, onChange, label } = props;
  const byDefault = parameter.default === null ? words.unset : words.byDefault(String(parameter.default));
  const isNumber = value !== "" && !parameter.values.includes(value);
  return (
    <>
      <select
        {...bound}
        class="input"
        value={isNumber ? NUMBER : value}
        onChange={({ currentTarget: { value: next } }) =>
          onChange(next === NUMBER ? String(parameter.default ?? parameter.maximum ?? 1) : next)
        }
      >
        <option value="">{byDefault}</option>
        <option value={NUMBER}>{words.number}</option>
        {parameter.values.map((word) => (
          <option key={word}>{word}</option>
        ))}
      </select>
      {isNumber && (
        <Numeric
          {...props}
          bound={{ id: `${bound.id}-number`, name: bound.name, "aria-label": label } as InputProps["bound"]}
        />
      )}
    </>
  );
}

function Colour(props: InputProps) {
  const { value, onChange } = props;
  const digits = /^[0-9a-f]{3}$/i.test(value) ? value.replace(/./g, "$&$&") : value;
  return (
    <span class="builder-pair">
      <Text {...props} />
      <input
        type="color"
        class="builder-colour"
        aria-label={words.pick}
        value={/^[0-9a-f]{6}$/i.test(digits) ? `#${digits}` : "#ffffff"}
        onInput={(event) => onChange(event.currentTarget.value.slice(1))}
      />
    </span>
  );
}

function Point({ bound, value, onChange, label: name }: InputProps) {
  const [x = "", y = ""] = value.split(",");
  const share = (text: string, label: string, id: string, onShare: (next: string) => void) => (
    <input
      {...bound}
      id={id}
      type="number"
      class="input"
      min={0}
      max={1}
      step={0.01}
      aria-label={`${name}, ${label.toLowerCase()}`}
      placeholder={label}
      value={text}
      onInput={(event) => onShare(event.currentTarget.value)}
    />
  );
  const set = (nextX: string, nextY: string) =>
    onChange(nextX || nextY ? `${nextX || 0.5},${nextY || 0.5}` : "");
  return (
    <span class="builder-pair">
      {share(x, words.across, bound.id, (next) => set(next, y))}
      {share(y, words.down, `${bound.id}-y`, (next) => set(x, next))}
      {value && <Button small look="quiet" icon="close" label={words.clear} onClick={() => onChange("")} />}
    </span>
  );
}
