/** What a file is, by its media type, and the icon that shows it. */
import { address } from "../../api/base";
import type { IconName } from "../../parts/icon";

export type FileKind = "image" | "video" | "audio" | "pdf" | "archive" | "other";

const ARCHIVES = /^application\/(zip|gzip|x-(7z|bzip2|gtar|rar|tar|xz|zstd)[\w-]*|vnd\.rar|zstd)$/;

export function kindOf(mimeType: string): FileKind {
  const [type] = mimeType.split("/");
  if (type === "image" || type === "video" || type === "audio") return type;
  if (mimeType === "application/pdf") return "pdf";
  return ARCHIVES.test(mimeType) ? "archive" : "other";
}

export const ICONS: Record<FileKind, IconName> = {
  image: "images",
  video: "video",
  audio: "audio",
  pdf: "book",
  archive: "archive",
  other: "file",
};

/** The ending of a name, for a file without an image: "ZIP". */
export function endingOf(name: string): string {
  const ending = /\.([A-Za-z0-9]{1,5})$/.exec(name)?.[1] ?? "";
  return ending.toUpperCase();
}

/** The address of the stored bytes for this browser's session. */
export const bytesOf = (file: { id: string }) => address(`/api/files/${encodeURIComponent(file.id)}`);
