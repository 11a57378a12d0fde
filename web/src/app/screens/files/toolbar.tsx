/** Search, kind, order and look of the list. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../parts/button";
import { Select, TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { Segmented } from "../../parts/tabs";
import { setQuery } from "../../router";
import { SORTS, type View } from "./view";
import { words } from "./words";

interface ToolbarProps {
  view: View;
  look: string;
  folderName: string | null;
  onLook: (look: string) => void;
  onSort: (sort: string) => void;
}

/** Between the last key and the search. */
const TYPING_MS = 250;

export function Toolbar({ view, look, folderName, onLook, onSort }: ToolbarProps) {
  const [text, setText] = useState(view.q);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => setText(view.q), [view.q, view.folder]);
  useEffect(() => () => clearTimeout(timer.current), [view.folder]);
  const onInput = (value: string) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ q: value.trim() || undefined }), TYPING_MS);
  };
  const label = folderName === null ? words.search : words.searchIn(folderName);
  return (
    <div class="toolbar files-toolbar" role="search">
      <TextField
        label={label}
        hiddenLabel
        type="search"
        name="q"
        id="files-search"
        placeholder={label}
        value={text}
        maxLength={200}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <Select
        label={words.type}
        hiddenLabel
        name="type"
        value={view.type}
        choices={Object.entries(words.types).map(([value, name]) => ({ value, label: name }))}
        onChange={(event) => setQuery({ type: event.currentTarget.value || undefined })}
      />
      <Select
        label={words.sort}
        hiddenLabel
        name="sort"
        value={view.sort}
        choices={SORTS.map((value) => ({ value, label: words.sorts[value] ?? value }))}
        onChange={(event) => onSort(event.currentTarget.value)}
      />
      {view.tag && (
        <Button icon="close" onClick={() => setQuery({ tag: undefined })}>
          <bdi>{words.tagged(view.tag)}</bdi>
        </Button>
      )}
      <Segmented
        label={words.view}
        value={look}
        choices={[
          { value: "grid", label: <Look icon="grid" name={words.grid} />, title: words.grid },
          { value: "list", label: <Look icon="list" name={words.rows} />, title: words.rows },
        ]}
        onChange={onLook}
      />
    </div>
  );
}

function Look({ icon, name }: { icon: "grid" | "list"; name: string }) {
  return (
    <>
      <Icon name={icon} />
      <span class="visually-hidden">{name}</span>
    </>
  );
}
