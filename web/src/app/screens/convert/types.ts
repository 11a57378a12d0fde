/** Shapes of the catalogue, of jobs and of their results, as far as the screen reads them. */
export interface ToolField {
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "object";
  input: string;
  allowed: string;
  values: string[];
  minimum: number | null;
  maximum: number | null;
  maxLength: number | null;
  default: string | number | boolean | null;
  summary: string;
}

export interface Tool {
  name: string;
  path: string;
  summary: string;
  /** Classes of files: `raster`, `vector`, `document`, `video`, `audio`, `archive`. */
  accepts: string[];
  minFiles: number;
  maxFiles: number;
  fields: ToolField[];
}

export interface Format {
  name: string;
  mime: string;
  aliases: string[];
  class: string;
  isWritten: boolean;
}

export interface ResizePreset {
  name: string;
  width: number | null;
  height: number | null;
  needs: string[];
  takes: string[];
}

export interface Catalogue {
  tools: Tool[];
  formats: Format[];
  resizePresets: ResizePreset[];
}

export interface ResultFile {
  filename: string;
  originalSize: number;
  finalSize: number | null;
  savedPercent: number | null;
  mimeType: string | null;
  width: number | null;
  height: number | null;
  duration: number | null;
  downloadUrl: string | null;
  appliedQuality: number | null;
  storedFileId: string | null;
  facts: unknown;
}

export interface Job {
  jobId: string;
  status: "pending" | "processing" | "completed" | "failed" | "cancelled";
  progress: number;
  queuePlace: number | null;
  results: ResultFile[] | null;
  errors: { filename: string; error: string }[] | null;
  errorMessage: string | null;
}

/** A file to be worked on: of this machine, or stored. */
export interface Source {
  key: number;
  name: string;
  size: number;
  mime: string;
  file?: File;
  stored?: { id: string; width: number | null; height: number | null; preview_url?: string | null };
}
