/** The files that were dropped or chosen, with the folders they lie in. */
export interface Picked {
  file: File;
  /** Names of folders, outermost first. */
  path: string[];
}

/** What systems leave in folders and users never mean. */
const JUNK = new Set([".DS_Store", "Thumbs.db", "desktop.ini"]);
const isMeant = (name: string) => !JUNK.has(name) && !name.startsWith("._");

/** Everything that was dropped; the entries are read from `data` at once, because it is emptied after the event. */
export async function pickedFrom(data: DataTransfer): Promise<Picked[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null);
  const plain = [...data.files];
  if (entries.length === 0) return plain.map((file) => ({ file, path: [] }));
  const picked: Picked[] = [];
  for (const entry of entries) if (entry) await walk(entry, [], picked);
  return picked;
}

async function walk(entry: FileSystemEntry, path: string[], picked: Picked[]) {
  if (entry.isFile) {
    if (!isMeant(entry.name)) return;
    const file = await new Promise<File>((resolve, reject) =>
      (entry as FileSystemFileEntry).file(resolve, reject),
    );
    picked.push({ file, path });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const below = [...path, entry.name];
  // It answers at most a hundred at a time, and nothing at the end
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (some.length === 0) return;
    for (const child of some) await walk(child, below, picked);
  }
}

/** Chosen files; those of a chosen folder name their way in it. */
export function pickedOf(files: File[]): Picked[] {
  return files
    .filter((file) => isMeant(file.name))
    .map((file) => ({ file, path: file.webkitRelativePath.split("/").slice(0, -1) }));
}
