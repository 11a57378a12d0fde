/** What is done with the chosen files. */
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { formatBytes } from "../../parts/format";
import { bytesOfAll } from "./selection";
import type { FileRecord } from "./types";
import { words } from "./words";

interface SelectionBarProps {
  files: ReadonlyMap<string, FileRecord>;
  folder: string | null;
  changed: () => void;
  clear: () => void;
  chooseAll: () => void;
  forget: (ids: string[]) => void;
}

export function SelectionBar({ files, folder, changed, clear, chooseAll, forget }: SelectionBarProps) {
  const list = [...files.values()];
  const mayWrite = can("write");
  const acts = () => import("./acts");
  const done = (ids: string[] | undefined) => {
    if (ids) forget(ids);
    changed();
  };
  return (
    <section class="files-chosen" aria-label={words.chosen(list.length)}>
      <strong class="numeric">{words.chosen(list.length)}</strong>
      <span class="soft small numeric">{formatBytes(bytesOfAll(list))}</span>
      <div class="actions files-acts">
        {mayWrite && (
          <>
            <Button
              small
              icon="move"
              onClick={() =>
                acts()
                  .then((module) => module.moveFiles(list))
                  .then(done)
              }
            >
              {words.move}
            </Button>
            <Button
              small
              icon="tag"
              onClick={() =>
                acts()
                  .then((module) => module.tagFiles(list))
                  .then(done)
              }
            >
              {words.tag}
            </Button>
          </>
        )}
        <Button small icon="download" action={() => acts().then((module) => module.zip(list))}>
          {words.zip}
        </Button>
        {mayWrite && (
          <>
            <Button small icon="images" onClick={() => acts().then((module) => module.convert(list, folder))}>
              {words.convert}
            </Button>
            <Button small icon="workflow" onClick={() => acts().then((module) => module.runWorkflow(list))}>
              {words.run}
            </Button>
            <Button
              small
              look="danger"
              icon="trash"
              onClick={() =>
                acts()
                  .then((module) => module.deleteFiles(list))
                  .then(done)
              }
            >
              {words.remove}
            </Button>
          </>
        )}
      </div>
      <div class="actions">
        <Button small look="quiet" onClick={chooseAll}>
          {words.chooseAll}
        </Button>
        <Button small look="quiet" icon="close" label={words.chooseNone} onClick={clear} />
      </div>
    </section>
  );
}
