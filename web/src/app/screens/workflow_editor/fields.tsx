/** The fields of a step's config, drawn from the catalogue. */
import { useId } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { Checkbox, Select, TextField } from "../../parts/form";
import { capitalized } from "../../parts/format";
import { Name } from "../../parts/values";
import type { Json, Step } from "../shared/flow";
import { fieldValue, shortMessage } from "./check";
import { typed } from "./condition_editor";
import { nameInWords } from "./kinds";
import { useEditor } from "./state";
import type { KindField } from "./types";
import { words } from "./words";

const texts = words.panel;

export function StepFields({ step }: { step: Step }) {
  const { catalogue } = useEditor();
  const fields = catalogue?.kinds.find(({ kind }) => kind === step.kind)?.fields ?? [];
  return (
    <>
      {fields
        .filter(({ input }) => input !== "condition")
        .map((field) => (
          <StepField key={field.name} step={step} field={field} />
        ))}
    </>
  );
}

/** A number's unit or meaning, and what is allowed where the control does not say so itself. */
function hintOf({ summary, allowed, input, type }: KindField): string {
  const isNumber = type === "integer" || type === "number";
  return isNumber && input !== "flag"
    ? `${capitalized(summary)}; ${allowed.replace(/^an? (whole )?number /, "")}`
    : capitalized(summary);
}

function StepField({ step, field }: { step: Step; field: KindField }) {
  const { dispatch, problems } = useEditor();
  const value = fieldValue(step, field);
  const problem = problems.find((one) => one.nodeId === step.id && one.field === field.name);
  const set = (next: Json | undefined) =>
    dispatch({
      type: "config",
      id: step.id,
      name: field.name,
      value: next,
      ...(field.alias ? { alias: field.alias } : {}),
    });
  const shared = {
    label: capitalized(nameInWords(field.name.replace(/Id$/, ""))),
    name: field.name,
    hint: hintOf(field),
    error: problem && shortMessage(problem),
  };
  if (field.input === "flag") {
    const isOn = value === undefined ? field.default === true : value === true || value === "true";
    return (
      <Checkbox
        label={shared.label}
        hint={shared.hint}
        name={field.name}
        checked={isOn}
        onChange={({ currentTarget: { checked } }) =>
          set(checked === (field.default === true) ? undefined : checked)
        }
      />
    );
  }
  if (field.input === "folder")
    return <Stored {...shared} value={value} set={set} of="folder" empty={texts.root} />;
  if (field.input === "file")
    return <Stored {...shared} value={value} set={set} of="file" empty={texts.empty} />;
  if (field.values.length > 0) {
    const known = field.default == null ? texts.anyNothing : texts.asDefault(String(field.default));
    const own = value === undefined || field.values.includes(String(value)) ? [] : [String(value)];
    return (
      <Select
        {...shared}
        value={value === undefined ? "" : String(value)}
        choices={[
          { value: "", label: known },
          ...[...field.values, ...own].map((one) => ({ value: one, label: one })),
        ]}
        onInput={(event) => set(event.currentTarget.value || undefined)}
      />
    );
  }
  const isNumber = field.type === "integer" || field.type === "number";
  return (
    <TextField
      {...shared}
      type={field.input === "url" ? "url" : "text"}
      inputMode={isNumber ? "decimal" : undefined}
      spellcheck={false}
      placeholder={field.default == null ? undefined : String(field.default)}
      value={value === undefined || value === null ? "" : String(value)}
      onInput={({ currentTarget: { value: text } }) => set(text === "" ? undefined : typed(text, isNumber))}
    />
  );
}

interface StoredProps {
  label: string;
  hint: string;
  error?: string | undefined;
  value: Json | undefined;
  set: (value: string | undefined) => void;
  of: "file" | "folder";
  /** Said without one. */
  empty: string;
}

/** A stored file or a folder: its name, and a dialog that finds another one. */
export function Stored({ label, hint, error, value, set, of, empty }: StoredProps) {
  const id = useId();
  const given = typeof value === "string" && value ? value : undefined;
  const named = useResource(
    async (signal) => {
      if (of === "folder")
        return (await api.get<{ folder: Named }>(`/api/folders/${given}`, { signal })).folder.name;
      return (await api.get<{ file: Named }>(`/api/files/${given}`, { signal })).file.filename;
    },
    [given],
    { when: given !== undefined },
  );
  const choose = async () => {
    const chosen =
      of === "folder"
        ? await import("../shared/choose_folder").then(({ chooseFolder }) => chooseFolder())
        : await import("../shared/choose_file").then(({ chooseFile }) => chooseFile());
    if (chosen) set(chosen.id);
  };
  return (
    <div class="field" role="group" aria-labelledby={`${id}-label`} aria-describedby={`${id}-hint`}>
      <span class="field-label" id={`${id}-label`}>
        {label}
      </span>
      <div class="stored">
        <span class={given ? "" : "soft"}>
          {!given ? (
            empty
          ) : named.error ? (
            texts.gone
          ) : named.data ? (
            <Name>{named.data}</Name>
          ) : (
            texts.loadingName
          )}
        </span>
        <Button small action={choose}>
          {texts.choose}
        </Button>
        {given && (
          <Button
            small
            look="quiet"
            icon="close"
            label={`${texts.clear}: ${label}`}
            onClick={() => set(undefined)}
          />
        )}
      </div>
      <p class="field-hint" id={`${id}-hint`}>
        {hint}
      </p>
      {error && <p class="field-error">{error}</p>}
    </div>
  );
}

interface Named {
  name: string;
  filename: string;
}
