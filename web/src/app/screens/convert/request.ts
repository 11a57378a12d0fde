/** The request that makes a job of one or several sources. */
import type { Source, Tool } from "./types";

export interface Wanted {
  tool: Tool;
  params: Record<string, string | number | boolean>;
  /** The tool's own image. */
  own?: { field: string; file: File } | undefined;
  store: boolean;
}

export interface Request {
  path: string;
  body: FormData | Record<string, unknown>;
}

const BY_JOBS = ["convert", "compress"];

/** Whether the bytes of stored sources have to be fetched first, because the API takes one stored file for such an operation. */
export const needsBytes = ({ tool, own }: Wanted, sources: Source[]) =>
  sources.some(({ stored }) => stored) &&
  !BY_JOBS.includes(tool.name) &&
  (sources.length > 1 || tool.minFiles > 1 || own !== undefined);

/** The request for a job; sources without `file` are named by their id. */
export function requestOf(wanted: Wanted, sources: Source[]): Request {
  const { tool, params, own, store } = wanted;
  const [first] = sources;
  if (first?.stored && !sources.some(({ file }) => file)) {
    if (BY_JOBS.includes(tool.name)) {
      const fileIds = sources.map(({ stored }) => stored?.id);
      return { path: "/api/jobs", body: { jobType: tool.name, fileIds, ...params, saveToStorage: store } };
    }
    return { path: `/api/files/${first.stored.id}/tools`, body: { tool: tool.name, params, async: true } };
  }
  const form = new FormData();
  sources.forEach(({ file, name }, i) => {
    if (file) form.append(sources.length > 1 ? `files[${i}]` : "file", file, name);
  });
  for (const [name, value] of Object.entries(params)) form.append(name, String(value));
  if (own) form.append(own.field, own.file, own.file.name);
  form.append("saveToStorage", String(store));
  if (BY_JOBS.includes(tool.name)) {
    form.append("jobType", tool.name);
    return { path: "/api/jobs", body: form };
  }
  form.append("async", "true");
  return { path: tool.path, body: form };
}
