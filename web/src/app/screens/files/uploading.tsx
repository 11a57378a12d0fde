/** The way to uploads: their queue is loaded with the first one, or when uploads were cut off before. */
import { useEffect, useRef } from "preact/hooks";
import { keptUploads } from "../../shell/kept";
import { words } from "./words";

export const openUploads = () => import("./uploads/queue");

/** Hidden file fields, and what opens them. */
export function useUploads() {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (keptUploads().length > 0) openUploads().then((queue) => queue.recallCut());
  }, []);
  const take = (event: { currentTarget: HTMLInputElement }, to: string | null) => {
    const chosen = [...(event.currentTarget.files ?? [])];
    event.currentTarget.value = "";
    if (chosen.length > 0) openUploads().then((queue) => queue.addChosen(chosen, to));
  };
  return {
    chooseFiles: () => files.current?.click(),
    chooseFolder: () => folder.current?.click(),
    inputs: (to: string | null) => (
      <>
        <input
          ref={files}
          type="file"
          multiple
          hidden
          data-pick="files"
          aria-label={words.uploadFiles}
          onChange={(event) => take(event, to)}
        />
        <input
          ref={folder}
          type="file"
          multiple
          hidden
          {...{ webkitdirectory: true }}
          data-pick="folder"
          aria-label={words.uploadFolder}
          onChange={(event) => take(event, to)}
        />
      </>
    ),
  };
}
