/** Forms whose errors appear at the field that the API's message names. */
import {
  type ComponentChildren,
  createContext,
  type PartialInputHTMLAttributes,
  type PartialSelectHTMLAttributes,
  type TargetedSubmitEvent,
  type TextareaHTMLAttributes,
} from "preact";
import { useContext, useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { offlineSince } from "../api/connection";
import { type ApiError, asApiError, isAborted } from "../api/error";
import { ErrorText } from "./states";

interface FormState {
  isBusy: boolean;
  error: ApiError | undefined;
  fields: Set<string>;
}

export const FormContext = createContext<FormState>({ isBusy: false, error: undefined, fields: new Set() });

interface FormProps {
  /** Asks the service. An error is shown at its field, or above the form's end; the form keeps what was typed. */
  action: (values: FormData) => Promise<unknown>;
  children: ComponentChildren;
  class?: string;
  label?: string;
}

export function Form({ action, children, class: extra = "", label }: FormProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const fields = useRef(new Set<string>()).current;
  const form = useRef<HTMLFormElement>(null);
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isBusy || offlineSince.value) return;
    setBusy(true);
    setError(undefined);
    try {
      await action(new FormData(event.currentTarget));
    } catch (thrown) {
      if (!isAborted(thrown)) setError(asApiError(thrown));
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid="true"], [role="alert"]')?.focus();
  }, [error]);
  const state = useMemo(() => ({ isBusy, error, fields }), [isBusy, error, fields]);
  const isAtField = error?.field !== undefined && fields.has(error.field);
  return (
    <FormContext.Provider value={state}>
      <form ref={form} class={`form ${extra}`} onSubmit={submit} aria-label={label} noValidate={false}>
        {children}
        {error && !isAtField && <ErrorText error={error} />}
      </form>
    </FormContext.Provider>
  );
}

interface FieldProps {
  label: string;
  /** The field of the request that an error names, and the name in the form's values. */
  name: string;
  hint?: ComponentChildren;
  /** An error that the screen found; errors of the API come by the form. */
  error?: string | undefined;
  /** Hide the label where the place says it (a search box above its list). */
  hiddenLabel?: boolean;
}

interface Bound {
  id: string;
  name: string;
  "aria-describedby"?: string;
  "aria-invalid"?: "true";
}

/** A label, a control that `children` draws with the attributes it is given, a hint and an error. */
export function Field({
  label,
  name,
  hint,
  error,
  hiddenLabel,
  children,
}: FieldProps & { children: (bound: Bound) => ComponentChildren }) {
  const id = useId();
  const form = useContext(FormContext);
  useEffect(() => {
    form.fields.add(name);
    return () => {
      form.fields.delete(name);
    };
  }, [form.fields, name]);
  const message = error ?? (form.error?.field === name ? form.error.message : undefined);
  const described = [hint && `${id}-hint`, message && `${id}-error`].filter(Boolean).join(" ");
  const bound: Bound = { id, name };
  if (described) bound["aria-describedby"] = described;
  if (message) bound["aria-invalid"] = "true";
  return (
    <div class="field">
      <label for={id} class={hiddenLabel ? "visually-hidden" : undefined}>
        {label}
      </label>
      {children(bound)}
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {message && (
        <p class="field-error" id={`${id}-error`}>
          {message}
        </p>
      )}
    </div>
  );
}

type InputProps = FieldProps & Omit<PartialInputHTMLAttributes<HTMLInputElement>, "label" | "name" | "role">;

export function TextField({ label, name, hint, error, hiddenLabel, class: extra, ...input }: InputProps) {
  return (
    <Field {...{ label, name, hint, error, hiddenLabel }}>
      {(bound) => (
        <input
          type="text"
          autoComplete="off"
          {...(input as object)}
          {...bound}
          class={`input ${extra ?? ""}`}
        />
      )}
    </Field>
  );
}

export function TextArea({
  label,
  name,
  hint,
  error,
  ...input
}: FieldProps & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "label" | "name" | "role">) {
  return (
    <Field {...{ label, name, hint, error }}>
      {(bound) => <textarea rows={3} {...(input as object)} {...bound} class="input input-area" />}
    </Field>
  );
}

export interface Choice {
  value: string;
  label: string;
}

const isSelected = (choice: Choice, value: unknown) =>
  value === undefined ? undefined : choice.value === value;

const isMissing = (choices: Choice[], value: unknown) =>
  Boolean(value) && !choices.some((choice) => choice.value === value);

export function Select({
  label,
  name,
  hint,
  error,
  hiddenLabel,
  choices,
  defaultValue,
  ...select
}: FieldProps & { choices: Choice[] } & Omit<
    PartialSelectHTMLAttributes<HTMLSelectElement>,
    "label" | "name" | "role"
  >) {
  return (
    <Field {...{ label, name, hint, error, hiddenLabel }}>
      {(bound) => (
        <select {...(select as object)} {...bound} class="input">
          {isMissing(choices, select.value) && (
            // Kept until its choice has come: a list without it would have no value
            <option value={select.value} selected>
              …
            </option>
          )}
          {choices.map((choice) => (
            // The browser knows the value of a list by its options only, which may arrive after it.
            <option
              key={choice.value}
              value={choice.value}
              selected={isSelected(choice, select.value ?? defaultValue)}
            >
              {choice.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface SwitchProps {
  label: string;
  /** For a column whose head says it. */
  hiddenLabel?: boolean;
  hint?: ComponentChildren;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
  name?: string;
}

/** On or off, in force at once. */
export function Switch({ label, hiddenLabel, hint, checked, onChange, disabled, name }: SwitchProps) {
  const id = useId();
  return (
    <div class="switch-row">
      <input
        type="checkbox"
        role="switch"
        aria-checked={checked}
        class="switch"
        id={id}
        name={name}
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={({ currentTarget: input }) => {
          const wanted = input.checked;
          // It shows what is in force: a change that is refused, or waits for an answer, has not turned it.
          input.checked = checked;
          onChange(wanted);
        }}
      />
      <label for={id} class={hiddenLabel ? "visually-hidden" : undefined}>
        {label}
      </label>
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

export function Checkbox({
  label,
  hint,
  ...input
}: { label: ComponentChildren; hint?: ComponentChildren } & Omit<
  PartialInputHTMLAttributes<HTMLInputElement>,
  "label"
>) {
  const id = useId();
  return (
    <div class="check-row">
      <input
        {...(input as object)}
        type="checkbox"
        class="check"
        id={id}
        aria-describedby={hint ? `${id}-hint` : undefined}
      />
      <label for={id}>{label}</label>
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}
