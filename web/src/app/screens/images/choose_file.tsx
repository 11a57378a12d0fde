/** A stored file, found by its name. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Dialog, openDialog } from "../../parts/dialog";
import { TextField } from "../../parts/form";
import { Icon } from "../../parts/icon";
import { Loaded, Skeleton } from "../../parts/states";
import { Bytes, Name } from "../../parts/values";
import { thumbnailOf } from "./thumbnail";
import type { StoredFile } from "./types";
import { words } from "./words";

const MOST = 24;

/** Resolves with the id of the file, or undefined when none was chosen. */
export async function chooseFile(): Promise<string | undefined> {
  let chosen: string | undefined;
  await openDialog((close) => (
    <Dialog title={words.file.chooseTitle} onClose={close} wide>
      <Choices
        onChoose={(id) => {
          chosen = id;
          close();
        }}
      />
    </Dialog>
  ));
  return chosen;
}

interface Found {
  files: StoredFile[];
  pagination: { hasMore: boolean };
}

function Choices({ onChoose }: { onChoose: (id: string) => void }) {
  const [typed, setTyped] = useState("");
  const [q, setQ] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setQ(typed.trim()), 200);
    return () => clearTimeout(timer);
  }, [typed]);
  const found = useResource(
    (signal) =>
      api.get<Found>("/api/files", {
        query: { q, type: "image,video,audio,document", limit: MOST, total: false },
        signal,
      }),
    [q],
    { on: ["file"], keep: true },
  );
  return (
    <div class="stack">
      <TextField
        label={words.file.searchLabel}
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
            {files.length === 0 && <p class="soft">{q ? words.file.none : words.file.noneStored}</p>}
            <ul class="choose-files" onKeyDown={moveFocus}>
              {files.map((file) => (
                <li key={file.id}>
                  <Choice file={file} onChoose={onChoose} />
                </li>
              ))}
            </ul>
            {pagination.hasMore && <p class="soft small">{words.file.more}</p>}
          </>
        )}
      </Loaded>
    </div>
  );
}

function Choice({ file, onChoose }: { file: StoredFile; onChoose: (id: string) => void }) {
  const [isBroken, setBroken] = useState(false);
  const src = isBroken ? null : thumbnailOf(file, 320);
  return (
    <button type="button" class="choose-file" onClick={() => onChoose(file.id)}>
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
