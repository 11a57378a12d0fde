/** A stored file, found by its name. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Dialog, openDialog } from "../../parts/dialog";
import { TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { Loaded, Skeleton } from "../../parts/states";
import { Bytes, Name } from "../../parts/values";

/** The texts of the dialog. */
export const words = {
  file: {
    title: "Choose a file",
    search: "Search files by name",
    none: "No file has that name.",
    noneStored: "Nothing is stored yet.",
  },
  more: "There are more: type a part of the name.",
};

const MOST = 24;

export interface ChosenFile {
  id: string;
  filename: string;
  size_bytes: number;
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
export async function chooseFile(wanted: Wanted = {}): Promise<ChosenFile | undefined> {
  let chosen: ChosenFile | undefined;
  await openDialog((close) => (
    <Dialog title={words.file.title} onClose={close} wide>
      <Choices
        {...wanted}
        onChoose={(file) => {
          chosen = file;
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

function Choices({ types, search, noneStored, onChoose }: Wanted & { onChoose: (file: ChosenFile) => void }) {
  const [typed, setTyped] = useState("");
  const [q, setQ] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setQ(typed.trim()), 200);
    return () => clearTimeout(timer);
  }, [typed]);
  const found = useResource(
    (signal) =>
      api.get<Found>("/api/files", {
        query: { q, type: types, limit: MOST, total: false },
        signal,
      }),
    [q],
    { on: ["file"], keep: true },
  );
  return (
    <div class="stack">
      <TextField
        label={search ?? words.file.search}
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
            {files.length === 0 && (
              <p class="soft">{q ? words.file.none : (noneStored ?? words.file.noneStored)}</p>
            )}
            <ul class="choose-files" onKeyDown={moveFocus}>
              {files.map((file) => (
                <li key={file.id}>
                  <Choice file={file} onChoose={onChoose} />
                </li>
              ))}
            </ul>
            {pagination.hasMore && <p class="soft small">{words.more}</p>}
          </>
        )}
      </Loaded>
    </div>
  );
}

function Choice({ file, onChoose }: { file: ChosenFile; onChoose: (file: ChosenFile) => void }) {
  const [isBroken, setBroken] = useState(false);
  const src = isBroken ? null : thumbnailOf(file);
  return (
    <button type="button" class="choose-file" onClick={() => onChoose(file)}>
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

/** The service's own small preview of a file, on this origin. */
function thumbnailOf(file: ChosenFile): string | null {
  if (!file.preview_url) return null;
  const url = new URL(file.preview_url, location.href);
  url.searchParams.set("w", "320");
  return url.pathname + url.search;
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
