/** The texts of acts on files and folders. */
import { plural } from "./words";

export const actWords = {
  cancel: "Cancel",
  save: "Save",
  create: "Create",
  rename: "Rename",
  remove: "Delete",
  name: "Name",
  newFolder: "New folder",
  newFolderIn: "New folder in the chosen one",
  renameFolder: "Rename the folder",
  renameFile: "Rename the file",
  upload: "Upload files",
  uploadNote: "Or drop files and folders on the list, or paste an image there.",
  chooseFiles: "Choose files",
  fromAddress: "Upload from an address",
  address: "Address",
  addressHint:
    "The service fetches the file. Private addresses are rejected unless the operator allows them.",
  fetch: "Fetch",
  files: (count: number) => plural(count, "file"),
  moveTitle: (what: string) => `Move ${what}`,
  moveHere: "Move here",
  tagTitle: (count: number) => `Tag ${plural(count, "file")}`,
  addTags: "Add tags",
  tagsHint: "Several are separated by commas.",
  removeTags: "Remove",
  tagged: (count: number) => `Tags of ${plural(count, "file")} changed`,
  deleteOne: "Delete this file?",
  deleteMany: (count: number) => `Delete ${plural(count, "file")}`,
  andMore: (count: number) => `and ${plural(count, "more", "more")}`,
  deleteBreaks: (bytes: string) =>
    `${bytes} are freed. Delivery addresses and links to them stop working; what was converted from them stays. This cannot be undone.`,
  deleted: (count: number) => `${plural(count, "file")} deleted`,
  deleteFolder: "Delete this folder?",
  folderHolds: (count: number, bytes: string, hasFolders: boolean) =>
    count === 0 && !hasFolders
      ? "It is empty."
      : `${plural(count, "file")} (${bytes}) in it and ${hasFolders ? "the folders below" : "nothing else"} are deleted with it. This cannot be undone.`,
  folderShared: "It is shared: its link stops working.",
  tooManyToZip: (most: number) =>
    `At most ${plural(most, "file")} go into one archive: choose fewer, or download the folder as a ZIP.`,
  zipping: (count: number, bytes: string) =>
    `An archive of ${plural(count, "file")} (${bytes}) is being downloaded`,
  convert: {
    title: (count: number) => `Convert ${plural(count, "file")}`,
    format: "Format",
    resize: "Size",
    keepSize: "As it is",
    width: "Width in pixels",
    height: "Height in pixels",
    quality: "Quality, 1 to 100",
    qualityHint: "Higher is better and larger. Without one: 82.",
    archive: "Also make one ZIP of all results",
    note: "The results are stored beside their sources; the sources stay as they are.",
    start: "Convert",
  },
  run: {
    title: (count: number) => `Run a workflow on ${plural(count, "file")}`,
    workflow: "Workflow",
    start: "Run",
    none: "There is no active workflow yet.",
    noneBody:
      "Workflows are made by the API: POST /api/workflows with a definition, or a template in short form.",
    guide: "Workflows in the API reference",
  },
  work: {
    all: "All activity",
    title: "Work",
    convert: (count: number) => `Converting ${plural(count, "file")}`,
    run: (count: number, name: string) => `${name}: ${plural(count, "file")}`,
    done: (count: number) => `${plural(count, "file")} made`,
    ran: (done: number, count: number) => `${done} of ${plural(count, "run")} ended well`,
    queued: (place: number) => `Waiting, place ${place}`,
    show: "Show",
    cancel: "Cancel",
    close: "Close",
    cancelled: "Cancelled",
  },
};
