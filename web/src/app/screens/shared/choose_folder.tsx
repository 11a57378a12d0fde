/** A folder, found by its name; one that does not exist yet is made. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { useSettledText } from "../../parts/search";
import { Loaded, Skeleton } from "../../parts/states";
import { Name } from "../../parts/values";

/** The texts of the dialog. */
const words = {
  title: "Choose a folder",
  search: "Search folders by name",
  none: "No folder has that name.",
  noneYet: "There is no folder yet. Type a name to make one.",
  more: "There are more: type a part of the name.",
  make: (name: string) => `Make the folder “${name}”`,
};

const MOST = 30;
const LONGEST_NAME = 255;

export interface ChosenFolder {
  id: string;
  name: string;
  ancestors: { id: string; name: string }[];
}

/** The folder's name after those that it is in. */
export const folderPath = ({ ancestors, name }: ChosenFolder) =>
  [...ancestors, { name }].map((each) => each.name).join(" / ");

/** Resolves with the folder, or undefined when none was chosen. */
export async function chooseFolder(): Promise<ChosenFolder | undefined> {
  let chosen: ChosenFolder | undefined;
  await openDialog((close) => (
    <Dialog title={words.title} onClose={close}>
      <Choices
        onChoose={(folder) => {
          chosen = folder;
          close();
        }}
      />
    </Dialog>
  ));
  return chosen;
}

interface Found {
  folders: ChosenFolder[];
  nextCursor?: string | null;
}

function Choices({ onChoose }: { onChoose: (folder: ChosenFolder) => void }) {
  const [typed, setTyped] = useState("");
  const q = useSettledText(typed);
  const found = useResource(
    (signal) => api.get<Found>("/api/folders", { query: { q: q || undefined, limit: MOST }, signal }),
    [q],
    { on: ["folder"], keep: true },
  );
  const make = async () => {
    const { folder } = await api.post<{ folder: ChosenFolder }>("/api/folders", { name: q });
    onChoose(folder);
  };
  return (
    <div class="stack">
      <TextField
        label={words.search}
        name="q"
        type="search"
        maxLength={LONGEST_NAME}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <Loaded of={found} skeleton={<Skeleton rows={4} height={36} />}>
        {({ folders, nextCursor }) => (
          <>
            {folders.length === 0 && <p class="soft">{q ? words.none : words.noneYet}</p>}
            <ul class="rows choose-folders">
              {folders.map((folder) => (
                <li key={folder.id}>
                  <button type="button" class="menu-item" onClick={() => onChoose(folder)}>
                    <Icon name="files" />
                    <Name>{folderPath(folder)}</Name>
                  </button>
                </li>
              ))}
            </ul>
            {nextCursor && <p class="soft small">{words.more}</p>}
            {q && !folders.some(({ name }) => name.toLowerCase() === q.toLowerCase()) && (
              <Button icon="folder_plus" action={make}>
                {words.make(q)}
              </Button>
            )}
          </>
        )}
      </Loaded>
    </div>
  );
}
