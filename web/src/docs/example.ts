/** Values to start from, made of schemas. Pure. */
import { type OpenApi, type Parameter, resolve, type Schema } from "./document";

/** Deepest level of an example; a schema that contains itself would not end. */
const DEEPEST = 4;

/** A value of the schema: its own example, or one made of its parts; of an object the fields that it must have. */
export function exampleOf(document: OpenApi, schema: Schema, name = "", depth = 0): unknown {
  const known = resolve(document, schema);
  const own = ownExample(known);
  if (own !== undefined) return own;
  if (depth > DEEPEST) return null;
  if (known.allOf)
    return Object.assign({}, ...known.allOf.map((part) => exampleOf(document, part, name, depth + 1)));
  const either = (known.oneOf ?? known.anyOf)?.find((option) => option.type !== "null");
  if (either) return exampleOf(document, either, name, depth + 1);
  const type = Array.isArray(known.type) ? known.type.find((one) => one !== "null") : known.type;
  if (known.properties || type === "object") {
    const fields = Object.entries(known.properties ?? {}).filter(([field, property]) =>
      isShown(known, field, resolve(document, property)),
    );
    return Object.fromEntries(
      fields.map(([field, property]) => [field, exampleOf(document, property, field, depth + 1)]),
    );
  }
  if (type === "array")
    return known.items ? [exampleOf(document, known.items, name.replace(/s$/, ""), depth + 1)] : [];
  if (type === "integer" || type === "number") return known.minimum ?? 0;
  if (type === "boolean") return true;
  return type === "string" ? wordFor(name, known) : null;
}

function ownExample(schema: Schema): unknown {
  return schema.example ?? schema.examples?.[0] ?? schema.default ?? schema.const ?? schema.enum?.[0];
}

/** Optional fields are left out, except a name, which nearly everything that is made may have. */
function isShown(object: Schema, name: string, property: Schema): boolean {
  if (object.required?.includes(name) || name === "name") return true;
  return property.example !== undefined || property.examples !== undefined;
}

function wordFor(name: string, schema: Schema): string {
  if (schema.format === "date-time") return "2026-01-01T12:00:00Z";
  if (schema.format === "uri" || /url$/i.test(name)) return "https://example.com/photo.jpg";
  return name === "name" ? "Example" : placeholder(name || "text");
}

/** The word in an example's place for what only the reader knows: `fileId` is `FILE_ID`. */
export function placeholder(name: string): string {
  return name.replace(/([a-z\d])([A-Z])/g, "$1_$2").toUpperCase();
}

/** A parameter's value in an address or header, which a header's description may name; else a placeholder. */
export function parameterExample(document: OpenApi, parameter: Parameter): string {
  const schema = resolve(document, parameter.schema ?? {});
  const own = parameter.example ?? ownExample(schema);
  if (own !== undefined) return String(own);
  const named =
    parameter.description?.match(/(?<=`)[^`]+(?=`)/g)?.filter((_, index) => index % 2 === 0) ?? [];
  if (parameter.in === "header" && parameter.required && named[0])
    return parameter.name === "Accept" ? named.join(", ") : named[0];
  return schema.type === "integer" ? String(schema.minimum ?? 0) : placeholder(parameter.name);
}

/** An example of a body in JSON. A change changes something, and a list of what to do has an entry. */
export function bodyExample(document: OpenApi, schema: Schema, method: string): unknown {
  const example = exampleOf(document, schema);
  const fields = Object.entries(resolve(document, schema).properties ?? {}).map(
    ([name, field]): [string, Schema] => [name, resolve(document, field)],
  );
  const isEmpty = JSON.stringify(example) === "{}";
  const first = fields.find(([, field]) => ![field.type].flat().includes("integer"));
  const areLists = fields.every(([, field]) => field.type === "array");
  if (!isEmpty || !first || !(method === "patch" || areLists)) return example;
  return { [first[0]]: exampleOf(document, first[1], first[0]) };
}
