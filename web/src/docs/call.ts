/** One call of an operation: what the examples show and what "Send" sends. Pure. */
import { acceptedBy, type Entry, type OpenApi, type Parameter, resolve, type Schema } from "./document";
import { bodyExample, exampleOf, parameterExample } from "./example";

/** What the user has entered; what is empty is left out, or an example takes its place where it is needed. */
export interface Values {
  /** By `place.name`: `path.id`, `query.limit`. */
  parameters: Record<string, string>;
  /** The body's type, of those that the operation takes. */
  type: string | null;
  /** JSON text. */
  json: string;
  fields: Record<string, string>;
  files: Record<string, File>;
}

export interface FormField {
  name: string;
  value: string;
  /** What is sent in place of the value. */
  file?: File | undefined;
  isFile: boolean;
}

export type CallBody =
  | { kind: "none" }
  | { kind: "json"; text: string }
  | { kind: "form" | "words"; fields: FormField[] }
  | { kind: "bytes"; type: string; file?: File | undefined };

export interface Call {
  method: string;
  url: string;
  headers: [name: string, value: string][];
  body: CallBody;
  /** Which credential the examples use. */
  credential: "key" | "session" | "none";
  answer: "json" | "text" | "stream" | "bytes" | "none";
}

const CSRF = "x-csrf-token";
/** The name of a body of bytes among the files that were chosen. */
export const BYTES = "";

/** The parameters that a user enters: the header of a session's changes is sent without being asked for. */
export function entered(entry: Entry): Parameter[] {
  return entry.parameters.filter((parameter) => parameter.name.toLowerCase() !== CSRF);
}

/** The types of body that an operation takes. */
export function bodyTypes(api: OpenApi, entry: Entry): string[] {
  const body = entry.operation.requestBody && resolve(api, entry.operation.requestBody);
  return Object.keys(body?.content ?? {});
}

/** The schema of a body of one type. */
export function bodySchema(api: OpenApi, entry: Entry, type: string | null): Schema {
  const body = entry.operation.requestBody && resolve(api, entry.operation.requestBody);
  return resolve(api, body?.content?.[type ?? ""]?.schema ?? {});
}

export function startingValues(api: OpenApi, entry: Entry): Values {
  const type = bodyTypes(api, entry)[0] ?? null;
  const body = entry.operation.requestBody && resolve(api, entry.operation.requestBody);
  const example =
    type === "application/json"
      ? (body?.content?.[type]?.example ?? bodyExample(api, bodySchema(api, entry, type), entry.method))
      : undefined;
  return {
    parameters: {},
    type,
    json: example === undefined ? "" : JSON.stringify(example, null, 2),
    fields: {},
    files: {},
  };
}

/** The call with what was entered. Without `examples` what is missing stays empty, and the service says so. */
export function callOf(
  api: OpenApi,
  entry: Entry,
  base: string,
  values: Values,
  { examples = true } = {},
): Call {
  const valueFor = (parameter: Parameter): string | undefined => {
    const given = values.parameters[`${parameter.in}.${parameter.name}`];
    if (given) return given;
    return examples && parameter.required ? parameterExample(api, parameter) : undefined;
  };
  let path = entry.path;
  const query = new URLSearchParams();
  const headers: [string, string][] = [];
  for (const parameter of entered(entry)) {
    const value = valueFor(parameter);
    if (parameter.in === "path") {
      path = path.replace(`{${parameter.name}}`, encodeURIComponent(value ?? ""));
    } else if (value !== undefined) {
      if (parameter.in === "query") query.append(parameter.name, value);
      if (parameter.in === "header") headers.push([parameter.name, value]);
    }
  }
  const search = query.size > 0 ? `?${query}` : "";
  return {
    method: entry.method.toUpperCase(),
    url: `${base}${path}${search}`,
    headers,
    body: bodyOf(api, entry, values, examples),
    credential: credentialOf(api, entry),
    answer: answerOf(api, entry),
  };
}

export interface FieldShape {
  name: string;
  schema: Schema;
  isRequired: boolean;
  /** Whether it is a file, or a list of files. */
  isFile: boolean;
}

/** The fields of a form, with those of the objects that it is made of. */
export function formFields(api: OpenApi, schema: Schema): FieldShape[] {
  const shapes = Object.entries(schema.properties ?? {}).flatMap(([name, field]): FieldShape[] => {
    const known = resolve(api, field);
    const inner = resolve(api, known.oneOf?.find((option) => option.type !== "null") ?? known);
    if (inner.properties) return formFields(api, inner);
    const held = known.items ? resolve(api, known.items) : known;
    const isRequired = schema.required?.includes(name) ?? false;
    return [{ name, schema: known, isRequired, isFile: held.format === "binary" }];
  });
  return shapes.filter((shape, index) => shapes.findIndex(({ name }) => name === shape.name) === index);
}

function bodyOf(api: OpenApi, entry: Entry, values: Values, examples: boolean): CallBody {
  const { type } = values;
  if (!type) return { kind: "none" };
  if (type === "application/json") return { kind: "json", text: values.json };
  const schema = bodySchema(api, entry, type);
  if (!schema.properties && !isForm(type)) return { kind: "bytes", type, file: values.files[BYTES] };
  const shapes = formFields(api, schema);
  const firstFile = shapes.find(({ isFile }) => isFile);
  const fields = shapes.flatMap((shape): FormField[] => {
    const { name, isFile } = shape;
    const file = values.files[name];
    const value = values.fields[name];
    if (file || value) return [{ name, value: value ?? file?.name ?? "", file, isFile }];
    if (!examples || !(shape.isRequired || shape === firstFile)) return [];
    return [{ name, value: isFile ? "photo.jpg" : String(exampleOf(api, shape.schema, name)), isFile }];
  });
  return { kind: type === "multipart/form-data" ? "form" : "words", fields };
}

export function isForm(type: string): boolean {
  return type === "multipart/form-data" || type === "application/x-www-form-urlencoded";
}

function credentialOf(api: OpenApi, entry: Entry): Call["credential"] {
  const accepted = acceptedBy(api, entry.operation);
  if (accepted.length === 0) return "none";
  return accepted.every((name) => name === "session") ? "session" : "key";
}

/** The form of a success, by which the examples read it. */
function answerOf(api: OpenApi, entry: Entry): Call["answer"] {
  const success = Object.entries(entry.operation.responses ?? {}).find(([status]) => status.startsWith("2"));
  const types = Object.keys((success && resolve(api, success[1]).content) ?? {});
  if (types.length === 0) return "none";
  if (types.includes("application/json")) return "json";
  if (types.includes("text/event-stream")) return "stream";
  return types.some((type) => /^text\/|mpegurl|openmetrics/.test(type)) ? "text" : "bytes";
}
