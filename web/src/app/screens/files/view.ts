/** What part of the files is shown: folder, search, filter, order; and its pages. */
import type { Query } from "../../api/base";
import { api } from "../../api/client";
import type { FileList, FileRecord, FolderRecord, Item } from "./types";

export interface View {
  folder: string | null;
  q: string;
  type: string;
  tag: string;
  /** "created:desc". */
  sort: string;
}

export const SORTS = ["created:desc", "created:asc", "name:asc", "name:desc", "size:desc", "size:asc"];

/** What a request for files takes at most. */
export const PAGE = 100;

export const keyOf = (view: View) => JSON.stringify(view);

export function fileQuery(view: View, offset: number, limit: number, total: boolean): Query {
  const [sort, order] = view.sort.split(":");
  return {
    folderId: view.folder ?? "null",
    recursive: view.q || view.tag ? true : undefined,
    q: view.q,
    type: view.type,
    tag: view.tag,
    sort,
    order,
    limit,
    offset,
    total,
  };
}

/** The beginning of a view: its folders, its first files, how many there are. */
export interface Beginning {
  view: View;
  folders: FolderRecord[];
  files: FileRecord[];
  total: number;
}

export async function loadBeginning(view: View, signal: AbortSignal): Promise<Beginning> {
  const [page, folders] = await Promise.all([
    api.get<FileList>("/api/files", { query: fileQuery(view, 0, PAGE, true), signal }),
    loadFolders(view, signal),
  ]);
  return { view, folders, files: page.files, total: page.pagination.total ?? page.files.length };
}

/** The folders that are shown before the files: those in the folder, or those that a search finds. */
async function loadFolders(view: View, signal: AbortSignal): Promise<FolderRecord[]> {
  if (view.type || view.tag) return [];
  const found = view.q && view.folder === null;
  const query = { parentId: found ? undefined : (view.folder ?? "null"), q: view.q, sort: "name" };
  return (await api.get<{ folders: FolderRecord[] }>("/api/folders", { query, signal })).folders;
}

/** Items from `offset` on: folders, then files; the first files are those of the beginning. */
export async function loadItems(
  { view, folders, files, total }: Beginning,
  offset: number,
  limit: number,
  signal?: AbortSignal,
): Promise<Item[]> {
  const items: Item[] = folders.slice(offset, offset + limit).map((folder) => ({ folder }));
  const from = Math.max(0, offset - folders.length);
  const wanted = Math.min(limit - items.length, total - from);
  if (wanted <= 0) return items;
  const page =
    from + wanted <= files.length
      ? files.slice(from, from + wanted)
      : (await api.get<FileList>("/api/files", { query: fileQuery(view, from, wanted, false), signal }))
          .files;
  return [...items, ...page.map((file) => ({ file }))];
}

/** The files among the items from `first` to `last`, both included, at most `bound`. */
export async function filesBetween(
  beginning: Beginning,
  first: number,
  last: number,
  bound: number,
): Promise<FileRecord[]> {
  const files: FileRecord[] = [];
  const end = Math.min(last + 1, beginning.folders.length + beginning.total);
  for (let offset = Math.max(first, beginning.folders.length); offset < end; offset += PAGE) {
    const items = await loadItems(beginning, offset, Math.min(PAGE, end - offset));
    for (const { file } of items) if (file) files.push(file);
    if (files.length >= bound || items.length === 0) break;
  }
  return files.slice(0, bound);
}
