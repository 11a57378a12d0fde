/** Search and filters of the list. */
import { Select } from "../../parts/form";
import { SearchField } from "../../parts/search";
import { setQuery } from "../../router";
import { words } from "./words";

interface ToolbarProps {
  q: string;
  kind: string;
  state: string;
  since: string;
}

export function Toolbar({ q, kind, state, since }: ToolbarProps) {
  return (
    <div class="toolbar" role="search">
      <SearchField label={words.search} value={q} maxLength={120} id="activity-search" />
      <Filter name="kind" label={words.kind} value={kind} choices={words.kinds} />
      <Filter name="state" label={words.state} value={state} choices={words.states} />
      <Filter name="since" label={words.since} value={since} choices={words.spans} />
    </div>
  );
}

interface FilterProps {
  name: string;
  label: string;
  value: string;
  choices: Record<string, string>;
}

function Filter({ name, label, value, choices }: FilterProps) {
  // Numbers come first among the names of an object
  const any = { value: "", label: choices[""] ?? "" };
  const others = Object.entries(choices).filter(([choice]) => choice !== "");
  return (
    <Select
      label={label}
      hiddenLabel
      name={name}
      value={value}
      choices={[any, ...others.map(([choice, text]) => ({ value: choice, label: text }))]}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value || undefined })}
    />
  );
}
