/** Files, folders and what is asked of them, as the API writes them (answers in snake_case). */
export interface FolderRef {
  id: string;
  name: string;
}

export interface FocalPoint {
  x: number;
  y: number;
}

export interface FileRecord {
  id: string;
  filename: string;
  mime_type: string;
  size_bytes: number;
  folder_id: string | null;
  role: "uploaded" | "converted" | "recording";
  width: number | null;
  height: number | null;
  /** Seconds. */
  duration: number | null;
  focal_point: FocalPoint | null;
  description: string | null;
  tags: string[];
  created_at: string;
  /** Needs no credential for five minutes. */
  download_url: string;
  /** Null: there is nothing to show. */
  preview_url: string | null;
}

export interface FileDetail extends FileRecord {
  folder_path: FolderRef[];
  media: ImageFacts | MediaFacts | null;
}

export interface ImageFacts {
  format: string;
  pages: number;
}

export interface MediaFacts {
  container: string;
  bitrate: number | null;
  video: { codec: string; frameRate: [number, number]; isCover: boolean }[];
  audio: { codec: string; channels: number; sampleRate: number }[];
}

export interface FileList {
  files: FileRecord[];
  pagination: { total: number | null; hasMore: boolean };
}

export interface FolderRecord {
  id: string;
  name: string;
  parent_id: string | null;
  ancestors: FolderRef[];
  has_children: boolean;
  shared: boolean;
  /** In it and below; null in lists. */
  file_count: number | null;
  bytes: number | null;
}

/** An entry of the list: folders come before files. */
export type Item = { folder: FolderRecord; file?: undefined } | { file: FileRecord; folder?: undefined };

export interface BulkAnswer {
  done: number;
  missing: number;
  failed: number;
  results: { id: string; status: "done" | "missing" | "failed"; error: string | null }[];
}

export interface ZipAnswer {
  url: string;
  files: number;
  bytes: number;
}

/** The part of `GET /api/usage` that bounds uploads. */
export interface StorageUse {
  storage: { files: number; usedBytes: number; limitBytes: number | null };
}
