/** The tool and its fields, drawn from the catalogue. */
import { useId, useRef } from "preact/hooks";
import { Button } from "../../parts/button";
import { Field, Select, Switch } from "../../parts/form";
import { capitalized } from "../../parts/format";
import {
  counts,
  describe,
  formatsFor,
  groupOf,
  inForce,
  isRequired,
  labelOf,
  takes,
  type Values,
} from "./fields";
import type { Catalogue, ResizePreset, Source, Tool, ToolField } from "./types";
import { words } from "./words";

/** Numbers of at most so many steps have a slider too. */
const SLIDER_SPAN = 1_000;
const GROUPS = ["often", "image", "media", "any"] as const;

interface ToolChoiceProps {
  catalogue: Catalogue;
  sources: Source[];
  tool: Tool;
  onChange: (name: string) => void;
}

export function ToolChoice({ catalogue: { tools, formats }, sources, tool, onChange }: ToolChoiceProps) {
  const fits = (each: Tool) => sources.length === 0 || sources.some((source) => takes(each, source, formats));
  const option = ({ name }: Tool) => (
    <option key={name} value={name} selected={name === tool.name}>
      {words.tool.names[name] ?? labelOf(name.replaceAll("-", " "))}
    </option>
  );
  const unfit = tools.filter((each) => !fits(each));
  return (
    <Field label={words.tool.label} name="tool" hint={`${tool.summary}.`}>
      {(bound) => (
        <select
          {...bound}
          class="input"
          value={tool.name}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {GROUPS.map((group) => {
            const own = tools.filter((each) => groupOf(each) === group && fits(each));
            return (
              own.length > 0 && (
                <optgroup key={group} label={words.tool.groups[group]}>
                  {own.map(option)}
                </optgroup>
              )
            );
          })}
          {unfit.length > 0 && <optgroup label={words.tool.groups.unfit}>{unfit.map(option)}</optgroup>}
        </select>
      )}
    </Field>
  );
}

interface FieldsProps {
  tool: Tool;
  values: Values;
  catalogue: Catalogue;
  classes: Set<string>;
  problems: Record<string, string>;
  onChange: (name: string, value: string) => void;
  own: File | undefined;
  setOwn: (file: File | undefined) => void;
}

export function ToolFields({ tool, values, catalogue, ...rest }: FieldsProps) {
  const { resizePresets } = catalogue;
  const shown = tool.fields.filter((field) => counts(tool, field, values, resizePresets));
  return (
    <div class="convert-fields">
      {shown.map((field) => (
        <ToolControl
          key={`${tool.name} ${field.name}`}
          field={field}
          tool={tool}
          values={values}
          catalogue={catalogue}
          {...rest}
        />
      ))}
    </div>
  );
}

function ToolControl({ field, ...props }: FieldsProps & { field: ToolField }) {
  const { values, problems, onChange, tool, catalogue } = props;
  const { name, input } = field;
  const { label, hint } = describe(field);
  const set = (value: string) => onChange(name, value);
  const required = isRequired(tool, field, values, catalogue.resizePresets);
  if (input === "flag")
    return (
      <Switch
        name={name}
        label={label}
        hint={hint}
        checked={inForce(field, values) === "true"}
        onChange={(checked) => set(String(checked))}
      />
    );
  if (input === "position") return <Position field={field} value={inForce(field, values)} onChange={set} />;
  if (input === "file") return <OwnFile label={label} hint={hint} file={props.own} set={props.setOwn} />;
  if (input === "choice" || input === "format") {
    const choices = choicesOf(field, props, required);
    return (
      <Select
        label={label}
        name={name}
        hint={hint}
        error={problems[name]}
        value={values[name] ?? ""}
        choices={choices}
        onChange={(event) => set(event.currentTarget.value)}
      />
    );
  }
  return (
    <Field label={label} name={name} hint={hint} error={problems[name]}>
      {(bound) => {
        if (input === "integer" || input === "number")
          return <Numeric {...{ bound, field, label, required }} value={values[name] ?? ""} onChange={set} />;
        if (name === "colour")
          return <Colour {...{ bound, field }} value={values[name] ?? ""} onChange={set} />;
        return (
          <input
            {...bound}
            class="input"
            autoComplete="off"
            maxLength={field.maxLength ?? undefined}
            value={values[name] ?? ""}
            onInput={(event) => set(event.currentTarget.value)}
          />
        );
      }}
    </Field>
  );
}

function choicesOf(field: ToolField, { catalogue, classes, values }: FieldsProps, required: boolean) {
  const usual = field.default === null ? null : String(field.default);
  const offered = field.input === "format" ? formatsFor(field, classes, catalogue.formats) : field.values;
  const chosen = values[field.name];
  const all =
    chosen && field.values.includes(chosen) && !offered.includes(chosen) ? [...offered, chosen] : offered;
  const named = (value: string) => {
    if (field.input === "format") return value.toUpperCase();
    const preset =
      field.name === "resizePreset" && catalogue.resizePresets.find(({ name }) => name === value);
    return preset ? presetLabel(preset) : valueInWords(value);
  };
  const none = {
    value: "",
    label:
      usual !== null
        ? words.field.usual(named(usual))
        : field.input === "format"
          ? words.field.keep
          : field.name === "resizePreset"
            ? (words.field.presets[""] ?? "")
            : words.field.unset,
  };
  const rest = all.filter((value) => value !== usual).map((value) => ({ value, label: named(value) }));
  return required && usual === null ? rest : [none, ...rest];
}

const valueInWords = (value: string) => capitalized(value.replaceAll("-", " "));

function presetLabel({ name, width, height }: ResizePreset): string {
  const sides = [width, height].filter(Boolean).join(" × ");
  return valueInWords(name) + (sides ? ` (${sides})` : "");
}

interface NumericProps {
  bound: object;
  field: ToolField;
  label: string;
  value: string;
  required: boolean;
  onChange: (value: string) => void;
}

function Numeric({ bound, field, label, value, required, onChange }: NumericProps) {
  const { minimum, maximum, type } = field;
  const span = minimum !== null && maximum !== null ? maximum - minimum : Number.POSITIVE_INFINITY;
  const bounds = { min: minimum ?? undefined, max: maximum ?? undefined };
  const usual = field.default === null ? "" : String(field.default);
  const hasSlider = span <= SLIDER_SPAN && usual !== "";
  return (
    <span class="convert-pair">
      <input
        {...bound}
        {...bounds}
        type="number"
        class="input"
        step={type === "integer" ? 1 : "any"}
        placeholder={usual || words.field.unset}
        aria-required={required || undefined}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      {hasSlider && (
        <input
          {...bounds}
          type="range"
          step={type === "integer" ? 1 : span <= 1 ? 0.01 : span <= 60 ? 0.1 : 1}
          aria-label={words.field.slider(label)}
          value={value || usual}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </span>
  );
}

function Colour({ bound, field, value, onChange }: Omit<NumericProps, "label" | "required">) {
  const shown = /^[0-9a-f]{6}$/i.test(value) ? value : String(field.default ?? "000000");
  return (
    <span class="convert-pair">
      <input
        {...bound}
        class="input"
        autoComplete="off"
        spellcheck={false}
        maxLength={field.maxLength ?? undefined}
        placeholder={String(field.default ?? "")}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value.trim())}
      />
      <input
        type="color"
        class="convert-colour"
        aria-label={words.field.pick}
        value={`#${shown}`}
        onInput={(event) => onChange(event.currentTarget.value.slice(1))}
      />
    </span>
  );
}

/** The nine places of an image, as they lie on it. */
function Position({
  field,
  value,
  onChange,
}: {
  field: ToolField;
  value: string;
  onChange: (value: string) => void;
}) {
  const name = useId();
  return (
    <fieldset class="convert-position">
      <legend>{labelOf(field.name)}</legend>
      <div>
        {field.values.map((place) => (
          <label key={place} title={valueInWords(place)}>
            <input
              type="radio"
              name={name}
              value={place}
              checked={place === value}
              aria-label={valueInWords(place)}
              onChange={() => onChange(place)}
            />
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface OwnFileProps {
  label: string;
  hint: string;
  file: File | undefined;
  set: (file: File | undefined) => void;
}

/** The tool's own image. */
function OwnFile({ label, hint, file, set }: OwnFileProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="field">
      <span class="field-label">{label}</span>
      <span class="convert-own">
        <Button icon="images" onClick={() => input.current?.click()}>
          {words.field.chooseFile}
        </Button>
        <span class={file ? "one-line" : "soft small"}>
          {file ? <bdi>{file.name}</bdi> : words.field.noFile}
        </span>
        {file && (
          <Button
            small
            look="quiet"
            icon="close"
            label={words.field.dropFile}
            onClick={() => {
              set(undefined);
              input.current?.focus();
            }}
          />
        )}
      </span>
      <input
        ref={input}
        type="file"
        accept="image/*"
        hidden
        data-pick="own"
        aria-label={label}
        onChange={(event) => set(event.currentTarget.files?.[0])}
      />
      {hint && <p class="field-hint">{hint}</p>}
    </div>
  );
}
