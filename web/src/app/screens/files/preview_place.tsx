/** Where a file is looked at: beside the list, and in a dialog where there is no room. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { Dialog } from "../../parts/dialog";
import { useMedia } from "../../parts/media";
import { Loaded, Skeleton } from "../../parts/states";
import { Name } from "../../parts/values";
import type { PaneProps } from "./pane";
import type { FileDetail } from "./types";
import { words } from "./words";

const WIDE = "(min-width: 64rem)";

export function PreviewPlace({ id, close, changed }: { id: string; close: () => void; changed: () => void }) {
  const isWide = useMedia(WIDE);
  const Pane = usePane();
  const file = useResource(
    async (signal) =>
      (await api.get<{ file: FileDetail }>(`/api/files/${encodeURIComponent(id)}`, { signal })).file,
    [id],
    { on: ["file"], id },
  );
  const inside = (
    <Loaded of={file} skeleton={<Skeleton rows={3} height={96} />}>
      {(data) =>
        Pane ? (
          <Pane
            file={data}
            set={(next) => {
              file.set((before) => (before ? { ...before, ...next } : before));
              changed();
            }}
            gone={close}
          />
        ) : (
          <Skeleton rows={3} height={96} />
        )
      }
    </Loaded>
  );
  const name = file.data?.filename ?? "";
  if (!isWide)
    return (
      <Dialog title={<Name>{name}</Name>} onClose={close}>
        {inside}
      </Dialog>
    );
  const leave = () => {
    close();
    // The focus goes back to the item that was looked at
    document.querySelector<HTMLElement>('.files-list [data-index][tabindex="0"]')?.focus();
  };
  return (
    <aside class="files-pane" aria-label={name} onKeyDown={(event) => event.key === "Escape" && leave()}>
      <header class="card-head">
        <h2>
          <Name>{name}</Name>
        </h2>
        <Button look="quiet" small icon="close" label={words.close} onClick={leave} />
      </header>
      {inside}
    </aside>
  );
}

/** The pane, loaded with the first look at a file. */
function usePane(): ComponentType<PaneProps> | undefined {
  const [pane, setPane] = useState<{ Pane: ComponentType<PaneProps> }>();
  useEffect(() => {
    import("./pane").then(setPane);
  }, []);
  return pane?.Pane;
}
