/** Moving files and folders, and back again. */
import { api } from "../../api/client";
import { ApiError } from "../../api/error";
import { toast } from "../../shell/toasts";
import type { Dragged } from "./drag";
import type { BulkAnswer, FileRecord, FolderRecord } from "./types";
import { words } from "./words";

/** What one request may name. */
const MOST = 1_000;

interface BulkAct {
  action: "move" | "delete" | "tag";
  folderId?: string | null;
  tags?: string[];
  removeTags?: string[];
}

/** Does one thing with many files; throws when some of them were not done, with why. */
export async function bulk(ids: string[], act: BulkAct, progress?: (done: number) => void): Promise<number> {
  let [done, failed] = [0, 0];
  let reason = "";
  for (let i = 0; i < ids.length; i += MOST) {
    const answer = await api.post<BulkAnswer>("/api/files/bulk", { ids: ids.slice(i, i + MOST), ...act });
    done += answer.done;
    // What is to be deleted and is not there is as it should be
    if (act.action === "delete") done += answer.missing;
    else failed += answer.missing;
    failed += answer.failed;
    reason ||= answer.results.find((result) => result.error)?.error ?? (failed > 0 ? words.gone : "");
    progress?.(done);
  }
  if (failed > 0) throw new ApiError(409, words.partly(done, failed, reason));
  return done;
}

/** Moves what was dragged or chosen, and offers to move it back. */
export async function moveItems({ files, folder }: Dragged, to: string | null) {
  const target = await nameOf(to);
  if (folder) {
    const from = folder.parent_id;
    if (from === to) return;
    await moveFolder(folder, to);
    toast(words.folderMoved(folder.name, target), "good", {
      label: words.undo,
      run: () => moveFolder(folder, from).catch((thrown) => toast(thrown.message, "bad")),
    });
    return;
  }
  const moved = files.filter((file) => file.folder_id !== to);
  if (moved.length === 0) return;
  await bulk(
    moved.map((file) => file.id),
    { action: "move", folderId: to },
  );
  toast(words.moved(moved.length, target), "good", { label: words.undo, run: () => moveBack(moved) });
}

const moveFolder = (folder: FolderRecord, to: string | null) =>
  api.patch(`/api/folders/${folder.id}`, { parentId: to });

async function nameOf(folder: string | null): Promise<string> {
  if (folder === null) return words.all;
  return (await api.get<{ folder: FolderRecord }>(`/api/folders/${folder}`)).folder.name;
}

/** Each file to the folder that it was in. */
async function moveBack(files: FileRecord[]) {
  const byFolder = new Map<string | null, string[]>();
  for (const { id, folder_id } of files) byFolder.set(folder_id, [...(byFolder.get(folder_id) ?? []), id]);
  try {
    for (const [folderId, ids] of byFolder) await bulk(ids, { action: "move", folderId });
  } catch (thrown) {
    toast((thrown as Error).message, "bad");
  }
}
