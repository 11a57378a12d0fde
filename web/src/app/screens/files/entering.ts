/** What begins on this screen without a press of its buttons: pasting, and what the palette asks for. */
import { useEffect } from "preact/hooks";
import { query, setQuery } from "../../router";
import { openUploads } from "./uploading";

const acts = () => import("./acts");

/** Images that are pasted are uploaded; an address opens the dialog that takes one. */
export function usePaste(folder: string | null, mayWrite: boolean) {
  useEffect(() => {
    if (!mayWrite) return;
    const onPaste = (event: ClipboardEvent) => {
      const isField = (event.target as Element | null)?.closest?.("input, textarea, select, dialog");
      const data = event.clipboardData;
      if (isField || !data) return;
      const text = data.getData("text/plain").trim();
      if (data.files.length > 0) {
        event.preventDefault();
        const files = [...data.files];
        openUploads().then((queue) => queue.addPasted(files, folder));
      } else if (/^https?:\/\/\S+$/.test(text)) {
        event.preventDefault();
        acts().then((module) => module.uploadAddress(folder, text));
      }
    };
    addEventListener("paste", onPaste);
    return () => removeEventListener("paste", onPaste);
  }, [folder, mayWrite]);
}

/** The palette asks for acts by the address: `?new=upload` and `?new=folder`. */
export function useAskedFor(folder: string | null, chooseFiles: () => void) {
  const asked = query.value.get("new");
  useEffect(() => {
    if (!asked) return;
    setQuery({ new: undefined });
    if (asked === "folder") acts().then((module) => module.newFolder(folder));
    else acts().then((module) => module.upload(chooseFiles));
  }, [asked]);
}
