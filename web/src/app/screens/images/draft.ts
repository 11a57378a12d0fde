/** What is being built. It lasts while one looks at the other tabs, and the address of the page has it, so that a reload and a sent link keep it. */
import { signal } from "@preact/signals";
import { query, setQuery } from "../../router";
import { type Values, valuesOf } from "./address";

export interface Draft {
  file: string;
  key: string;
  /** Name of the preset that delivers; empty: the values do. */
  preset: string;
  /** Id of the preset whose values are being changed. */
  edit: string;
  values: Values;
}

export const draft = signal<Draft>({ file: "", key: "", preset: "", edit: "", values: { w: "960" } });

export function changeDraft(changes: Partial<Draft>) {
  draft.value = { ...draft.value, ...changes };
}

export function setValue(name: string, value: string) {
  const { [name]: _, ...others } = draft.value.values;
  changeDraft({ values: value === "" ? others : { ...others, [name]: value } });
}

/** The query of the page for a draft. */
export const inQuery = ({ file, key, preset, edit, values }: Draft) => ({
  file,
  key,
  preset,
  edit,
  p: new URLSearchParams(values).toString(),
});

/** Takes what the address of the page says; what it does not name stays. */
export function readQuery() {
  const given = query.peek();
  const changes: Partial<Draft> = {};
  for (const name of ["file", "key", "preset"] as const) {
    const value = given.get(name);
    if (value !== null) changes[name] = value;
  }
  const p = given.get("p");
  if (p !== null) {
    changes.values = valuesOf(p);
    changes.preset = given.get("preset") ?? "";
    changes.edit = given.get("edit") ?? "";
  }
  changeDraft(changes);
}

export const writeQuery = () => setQuery(inQuery(draft.peek()));
