/** Dragging: files and folders of the list onto a folder, and files of the system into one. */
import type { FileRecord, FolderRecord } from "./types";

export interface Dragged {
  files: FileRecord[];
  folder?: FolderRecord | undefined;
}

/** The type of a drag that began on this page, not with files of the system. */
const TYPE = "application/x-sluice-items";
let dragged: Dragged | null = null;

export function beginDrag(event: DragEvent, items: Dragged) {
  dragged = items;
  event.dataTransfer?.setData(TYPE, "1");
  if (event.dataTransfer) event.dataTransfer.effectAllowed = "move";
}

export const endDrag = () => {
  dragged = null;
};

const kindOf = (event: DragEvent): "move" | "upload" | null => {
  const types = event.dataTransfer?.types ?? [];
  if (types.includes(TYPE)) return "move";
  return types.includes("Files") ? "upload" : null;
};

export interface DropActs {
  move: (items: Dragged, folder: string | null) => void;
  upload: (data: DataTransfer, folder: string | null) => void;
}

/** The attributes of an element that takes what is dropped into `folder`; `only` files of the system for the list as a whole. */
export function dropInto(folder: string | null, acts: DropActs | null, only?: "upload") {
  if (!acts) return {};
  const takes = (event: DragEvent) => {
    const kind = kindOf(event);
    if (!kind || (only && kind !== only)) return null;
    if (kind === "move" && (!dragged || dragged.folder?.id === folder)) return null;
    return kind;
  };
  const mark = (event: DragEvent, isOver: boolean) =>
    (event.currentTarget as HTMLElement).toggleAttribute("data-over", isOver);
  return {
    onDragOver: (event: DragEvent) => {
      const kind = takes(event);
      if (!kind) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.dataTransfer) event.dataTransfer.dropEffect = kind === "move" ? "move" : "copy";
      mark(event, true);
    },
    onDragLeave: (event: DragEvent) => {
      const inside = (event.currentTarget as HTMLElement).contains(event.relatedTarget as Node | null);
      if (!inside) mark(event, false);
    },
    onDrop: (event: DragEvent) => {
      mark(event, false);
      const kind = takes(event);
      if (!kind || !event.dataTransfer) return;
      event.preventDefault();
      event.stopPropagation();
      if (kind === "upload") acts.upload(event.dataTransfer, folder);
      else if (dragged) acts.move(dragged, folder);
      dragged = null;
    },
  };
}
