/** How far uploads are: asked for while one is shown, since the change stream reports none of their bytes. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../../../api/client";
import { uploadEntry } from "./sources";
import type { Entry, UploadList } from "./types";

const EVERY_MS = 3_000;
const MOST_ASKED = 100;

/** By id, as they were answered last. */
const answered = signal<ReadonlyMap<string, Entry>>(new Map());
let shown = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** The entry as it is now: an upload in progress moves while it is shown. */
export function useCurrent<Given extends Entry | undefined>(entry: Given): Given | Entry {
  const isFollowed = entry?.kind === "upload" && entry.state === "running";
  useEffect(() => (isFollowed ? follow() : undefined), [isFollowed]);
  return (isFollowed && answered.value.get(entry.id)) || entry;
}

function follow(): () => void {
  shown += 1;
  timer ??= setTimeout(ask, EVERY_MS);
  return () => {
    shown -= 1;
  };
}

async function ask() {
  const query = { limit: MOST_ASKED };
  const list =
    shown > 0 && !document.hidden
      ? await api.get<UploadList>("/api/uploads", { query }).catch(() => undefined)
      : undefined;
  if (list) answered.value = new Map(list.uploads.map((upload) => [upload.id, uploadEntry(upload)]));
  timer = shown > 0 ? setTimeout(ask, EVERY_MS) : undefined;
  // The records of another list are newer
  if (!timer) answered.value = new Map();
}
