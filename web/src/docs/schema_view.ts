/** Shows schemas: a line of words for a simple one, a list of its fields for an object, opened level by level. */
import { type Body, limitWords, nameOf, type OpenApi, resolve, type Schema, typeWords } from "./document";
import { element, prose } from "./element";

/** Deepest level that is shown; a schema that contains itself would not end. */
const DEEPEST = 6;

export function bodyView(api: OpenApi, body: Body): HTMLElement {
  const contents = Object.entries(body.content ?? {}).map(([type, content]) =>
    element(
      "div",
      { class: "content" },
      element("code", { class: "media-type" }, type),
      content.schema && schemaView(api, content.schema),
    ),
  );
  return element("div", {}, prose(body.description), ...contents);
}

export function schemaView(api: OpenApi, schema: Schema, depth = 0): HTMLElement {
  const known = resolve(api, schema);
  const words = [typeWords(schema), ...limitWords(known)].join(", ");
  const line = element("span", { class: "type" }, words);
  const fields = depth < DEEPEST ? fieldsOf(api, known) : [];
  if (fields.length === 0) return element("div", {}, line);
  const list = element(
    "dl",
    { class: "fields" },
    ...fields.map(([name, field, isRequired]) => fieldView(api, name, field, isRequired, depth)),
  );
  if (depth === 0) return element("div", {}, line, list);
  return element("details", { class: "nested" }, element("summary", {}, line), list);
}

function fieldView(
  api: OpenApi,
  name: string,
  field: Schema,
  isRequired: boolean,
  depth: number,
): HTMLElement {
  const term = element(
    "dt",
    {},
    element("code", {}, name),
    isRequired && element("span", { class: "required" }, "required"),
  );
  const description = field.description ?? (nameOf(field) ? undefined : resolve(api, field).description);
  return element(
    "div",
    { class: "field" },
    term,
    element("dd", {}, schemaView(api, field, depth + 1), prose(description)),
  );
}

/** The fields of an object, of the objects it is made of, or of what an array holds. */
function fieldsOf(api: OpenApi, schema: Schema): [string, Schema, boolean][] {
  const own = Object.entries(schema.properties ?? {}).map(([name, field]): [string, Schema, boolean] => [
    name,
    field,
    schema.required?.includes(name) ?? false,
  ]);
  const parts =
    schema.allOf ?? (schema.oneOf ?? schema.anyOf)?.filter((option) => option.type !== "null") ?? [];
  const inherited =
    parts.length === 1 || schema.allOf ? parts.flatMap((part) => fieldsOf(api, resolve(api, part))) : [];
  const held = schema.items ? fieldsOf(api, resolve(api, schema.items)) : [];
  return [...inherited, ...own, ...held];
}
