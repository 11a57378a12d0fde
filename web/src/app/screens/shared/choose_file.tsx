/** Stored files, found by their names: one or several of them. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { Dialog, openDialog } from "../../parts/dialog";
import { TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { useSettledText } from "../../parts/search";
import { Loaded, Skeleton } from "../../parts/states";
import { Bytes, Name } from "../../parts/values";
import { thumbnailOf } from "./thumbnail";

const MOST = 24;

const words = {
  title: (isSeveral: boolean) => (isSeveral ? "Choose files" : "Choose a file"),
  search: "Search files by name",
  none: "No file has that name.",
  noneStored: "Nothing that fits is stored yet.",
  more: "There are more: type a part of the name.",
  cancel: "Cancel",
  take: (count: number) => (count === 1 ? "Take 1 file" : `Take ${count} files`),
};

/** The part of a file's record that a choice shows. */
export interface ChosenFile {
  id: string;
  filename: string;
  mime_type: string;
  size_bytes: number;
  width: number | null;
  height: number | null;
  preview_url: string | null;
}

interface Wanted {
  /** Kinds of files by commas, as `GET /api/files` takes them; any without. */
  types?: string;
  search?: string;
  /** Said when nothing is stored. */
  noneStored?: string;
}

/** Resolves with the file, or undefined when none was chosen. */
export const chooseFile = async (wanted: Wanted = {}): Promise<ChosenFile | undefined> =>
  (await choose(wanted, false))[0];

/** Resolves with the files, or with none when the dialog was left. */
export const chooseFiles = (wanted: Wanted = {}): Promise<ChosenFile[]> => choose(wanted, true);

async function choose(wanted: Wanted, isSeveral: boolean): Promise<ChosenFile[]> {
  let chosen: ChosenFile[] = [];
  await openDialog((close) => (
    <Dialog title={words.title(isSeveral)} onClose={close} wide>
      <Choices
        {...wanted}
        isSeveral={isSeveral}
        close={close}
        take={(files) => {
          chosen = files;
          close();
        }}
      />
    </Dialog>
  ));
  return chosen;
}

interface Found {
  files: ChosenFile[];
  pagination: { hasMore: boolean };
}

interface ChoicesProps extends Wanted {
  isSeveral: boolean;
  take: (files: ChosenFile[]) => void;
  close: () => void;
}

function Choices({ types, search, noneStored, isSeveral, take, close }: ChoicesProps) {
  const [typed, setTyped] = useState("");
  const q = useSettledText(typed);
  const [marked, setMarked] = useState<ChosenFile[]>([]);
  const found = useResource(
    (signal) =>
      api.get<Found>("/api/files", { query: { q, type: types, limit: MOST, total: false }, signal }),
    [q],
    { on: ["file"], keep: true },
  );
  const isMarked = ({ id }: ChosenFile) => marked.some((file) => file.id === id);
  const press = (file: ChosenFile) => {
    if (!isSeveral) return take([file]);
    setMarked(isMarked(file) ? marked.filter(({ id }) => id !== file.id) : [...marked, file]);
  };
  return (
    <div class="stack">
      <TextField
        label={search ?? words.search}
        name="q"
        type="search"
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown") return;
          event.preventDefault();
          document.querySelector<HTMLElement>(".choose-files button")?.focus();
        }}
      />
      <Loaded of={found} skeleton={<Skeleton rows={4} height={72} />}>
        {({ files, pagination }) => (
          <>
            {files.length === 0 && <p class="soft">{q ? words.none : (noneStored ?? words.noneStored)}</p>}
            <ul class="choose-files" onKeyDown={moveFocus}>
              {files.map((file) => (
                <li key={file.id}>
                  <Choice file={file} onChoose={press} isMarked={isSeveral ? isMarked(file) : undefined} />
                </li>
              ))}
            </ul>
            {pagination.hasMore && <p class="soft small">{words.more}</p>}
          </>
        )}
      </Loaded>
      {isSeveral && (
        <div class="dialog-actions">
          <Button onClick={close}>{words.cancel}</Button>
          <Button look="solid" disabled={marked.length === 0} onClick={() => take(marked)}>
            {words.take(marked.length)}
          </Button>
        </div>
      )}
    </div>
  );
}

interface ChoiceProps {
  file: ChosenFile;
  onChoose: (file: ChosenFile) => void;
  isMarked: boolean | undefined;
}

function Choice({ file, onChoose, isMarked }: ChoiceProps) {
  const [isBroken, setBroken] = useState(false);
  const src = isBroken ? null : thumbnailOf(file, 320);
  return (
    <button type="button" class="choose-file" aria-pressed={isMarked} onClick={() => onChoose(file)}>
      <span class="choose-image">
        {src ? <img src={src} alt="" loading="lazy" onError={() => setBroken(true)} /> : <Icon name="file" />}
      </span>
      <Name>{file.filename}</Name>
      <span class="soft small">
        <Bytes value={file.size_bytes} />
      </span>
    </button>
  );
}

/** Arrows go through the files as they lie on the page. */
function moveFocus(event: KeyboardEvent) {
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
  if (at < 0) return;
  const top = buttons[0]?.getBoundingClientRect().top;
  const columns = buttons.filter((button) => button.getBoundingClientRect().top === top).length;
  const steps: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
  };
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  if (at + step < 0 && event.key === "ArrowUp")
    return document.querySelector<HTMLElement>("dialog [type=search]")?.focus();
  buttons[Math.max(0, Math.min(buttons.length - 1, at + step))]?.focus();
}
