/** The parts of an OpenAPI 3.1 document that the reference page shows, and how they are looked up. Pure. */

export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  examples?: unknown[];
  example?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

export interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
  example?: unknown;
}

export interface Body {
  $ref?: string;
  description?: string;
  required?: boolean;
  content?: Record<string, { schema?: Schema; example?: unknown }>;
}

export interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: string[];
  deprecated?: boolean;
  parameters?: Parameter[];
  requestBody?: Body;
  responses?: Record<string, Body>;
  security?: Record<string, string[]>[];
}

export interface OpenApi {
  openapi: string;
  info: { title: string; version: string; description?: string };
  servers?: { url: string; description?: string }[];
  tags?: { name: string; description?: string; "x-displayName"?: string }[];
  paths?: Record<string, Record<string, unknown>>;
  components?: Record<string, Record<string, unknown>>;
  security?: Record<string, string[]>[];
}

/** An operation with its address: one entry of the reference. */
export interface Entry {
  id: string;
  method: string;
  path: string;
  tag: string;
  operation: Operation;
  parameters: Parameter[];
}

/** In the order of use: make, look, change, remove. */
const METHODS = ["post", "get", "put", "patch", "delete", "head", "options"];

/**
 * Every operation under its first tag: tags in the document's order, below them a collection before its items, and an item
 * before what belongs to it.
 */
export function entriesByTag(document: OpenApi): Map<string, Entry[]> {
  const groups = new Map<string, Entry[]>((document.tags ?? []).map((tag) => [tag.name, []]));
  const paths = Object.entries(document.paths ?? {}).sort(([a], [b]) => (placeOf(a) < placeOf(b) ? -1 : 1));
  for (const [path, item] of paths) {
    const shared = (item.parameters as Parameter[] | undefined) ?? [];
    for (const method of METHODS) {
      const operation = item[method] as Operation | undefined;
      if (!operation) continue;
      const tag = operation.tags?.[0] ?? "Other";
      const parameters = [...shared, ...(operation.parameters ?? [])].map((one) => resolve(document, one));
      const entry = { id: idOf(method, path), method, path, tag, operation, parameters };
      groups.set(tag, [...(groups.get(tag) ?? []), entry]);
    }
  }
  for (const [tag, entries] of groups) if (entries.length === 0) groups.delete(tag);
  return groups;
}

/** Sorts a path's parameters before its words: `/files`, `/files/{id}`, `/files/{id}/preview`, `/files/search`. */
function placeOf(path: string): string {
  return path.replaceAll("{", "\0").replaceAll("/", "\u0001");
}

/** The title of a group: its own, or its name as words. */
export function titleOf(document: OpenApi, tag: string): string {
  const title = document.tags?.find((one) => one.name === tag)?.["x-displayName"];
  const words = tag.replaceAll("_", " ");
  return title ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** The names of the security schemes that an operation accepts; empty for one that asks for none. */
export function acceptedBy(document: OpenApi, operation: Operation): string[] {
  return (operation.security ?? document.security ?? []).flatMap((scheme) => Object.keys(scheme));
}

function idOf(method: string, path: string): string {
  return `${method}-${path.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "")}`;
}

/** Follows `$ref` inside the document; what does not resolve comes back as it is. */
export function resolve<T extends { $ref?: string }>(document: OpenApi, value: T): T {
  let current: T = value;
  for (let hop = 0; hop < 8 && current.$ref?.startsWith("#/"); hop += 1) {
    const target = current.$ref
      .slice(2)
      .split("/")
      .map((step) => step.replace(/~1/g, "/").replace(/~0/g, "~"))
      .reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], document);
    if (!target) return current;
    current = target as T;
  }
  return current;
}

/** The name under which a schema is kept, for `$ref: "#/components/schemas/Name"`. */
export function nameOf(schema: Schema): string | null {
  return schema.$ref?.split("/").pop() ?? null;
}

/** A type in a few words: `string (date-time) or null`, `array of LiveInput`. */
export function typeWords(schema: Schema): string {
  const name = nameOf(schema);
  if (name) return name;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const either = schema.oneOf ?? schema.anyOf;
  if (either) return either.map(typeWords).join(" or ");
  if (schema.allOf?.length) return schema.allOf.map(typeWords).join(" and ");
  const types = Array.isArray(schema.type)
    ? schema.type
    : [schema.type ?? (schema.properties ? "object" : "any")];
  return types.map((type) => oneType(type, schema)).join(" or ");
}

function oneType(type: string, schema: Schema): string {
  if (type === "array") return `array of ${schema.items ? typeWords(schema.items) : "any"}`;
  return schema.format && type !== "null" ? `${type} (${schema.format})` : type;
}

/** The constraints of a value in words; empty when every value of the type is valid. */
export function limitWords(schema: Schema): string[] {
  const words: string[] = [];
  if (schema.enum) words.push(`one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`);
  if (schema.minimum !== undefined || schema.maximum !== undefined) {
    words.push(`${schema.minimum ?? ""}–${schema.maximum ?? ""}`);
  }
  if (schema.minLength !== undefined || schema.maxLength !== undefined) {
    words.push(`${schema.minLength ?? 0}–${schema.maxLength ?? ""} characters`);
  }
  if (schema.pattern) words.push(`matches ${schema.pattern}`);
  if (schema.default !== undefined) words.push(`default ${JSON.stringify(schema.default)}`);
  return words;
}
