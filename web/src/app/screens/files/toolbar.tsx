/** Search, kind, order and look of the list. */
import { Button } from "../../parts/button";
import { Select } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { SearchField } from "../../parts/search";
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

export function Toolbar({ view, look, folderName, onLook, onSort }: ToolbarProps) {
  return (
    <div class="toolbar files-toolbar" role="search">
      <SearchField
        label={folderName === null ? words.search : words.searchIn(folderName)}
        value={view.q}
        place={view.folder}
        maxLength={200}
        id="files-search"
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
