/** Forms from the catalogue's tables: which fields count, what is wrong with a value, and what a request says. */
import { capitalized } from "../../parts/format";
import type { Catalogue, Format, ResizePreset, Source, Tool, ToolField } from "./types";
import { words } from "./words";

/** What was entered, as text by field; what is absent is the field's default. */
export type Values = Record<string, string>;

/** Operations that make one file of all of theirs. A watermark's second file is its own image, not a source. */
export const joins = (tool: Tool) => tool.maxFiles > 1 && !tool.fields.some(({ input }) => input === "file");

/** The class of a file by its media type, else by its extension; undefined when the catalogue knows neither. */
export function classOf(source: Pick<Source, "name" | "mime">, formats: Format[]): string | undefined {
  const ending = /\.([^.]+)$/.exec(source.name.toLowerCase())?.[1] ?? "";
  const found =
    formats.find(({ mime }) => mime === source.mime) ??
    formats.find(({ name, aliases }) => name === ending || aliases.includes(ending));
  if (found) return found.class;
  const [type = ""] = source.mime.split("/");
  return { image: "raster", video: "video", audio: "audio" }[type];
}

/** Whether a tool takes a file, as far as it is known. An archive means the files in it. */
export function takes(tool: Tool, source: Pick<Source, "name" | "mime">, formats: Format[]): boolean {
  const known = classOf(source, formats);
  if (known === undefined) return true;
  if (known === "archive")
    return tool.accepts.includes("archive") || tool.name === "convert" || tool.name === "compress";
  return tool.accepts.includes(known);
}

export type Group = "often" | "image" | "media" | "any";

const OFTEN = ["convert", "compress"];

/** The group of the menu that a tool is in, by what it takes. */
export function groupOf({ name, accepts }: Tool): Group {
  if (OFTEN.includes(name)) return "often";
  const isMedia = accepts.includes("video") || accepts.includes("audio");
  const isImage = accepts.some((each) => ["raster", "vector", "document"].includes(each));
  if (isMedia && isImage) return "any";
  return isMedia ? "media" : "image";
}

export const labelOf = (name: string) => words.field.names[name] ?? humanized(name);

/** "cropLeft" as "Crop left". */
const humanized = (name: string) =>
  capitalized(name.replaceAll(/([a-z])([A-Z])/g, (_, before, after) => `${before} ${after.toLowerCase()}`));

/** Summaries that say no more than the label. */
const SAID = ["the format to make", "frames per second"];

/** A field's label with its unit, and the rest of its summary as a hint. */
export function describe({ name, summary }: Pick<ToolField, "name" | "summary">): {
  label: string;
  hint: string;
} {
  const label = labelOf(name);
  if (SAID.includes(summary)) return { label, hint: "" };
  for (const [word, unit] of Object.entries(words.field.units)) {
    const rest = new RegExp(`^${word}(?:$|[;,] | (?=\\w))(.*)`).exec(summary)?.[1];
    if (rest !== undefined) return { label: `${label}, ${unit}`, hint: capitalized(rest) };
  }
  return { label, hint: capitalized(summary) };
}

/** The value in force: what was entered, else the default, as text. */
export const inForce = (field: ToolField, values: Values) =>
  values[field.name] ?? String(field.default ?? "");

/** Fields without which a tool's request is rejected. */
const REQUIRED: Record<string, string[]> = { convert: ["format"] };
/** Fields of which one needs the other. */
const PAIRS: Record<string, string> = { cropWidth: "cropHeight", cropHeight: "cropWidth" };

const presetOf = (values: Values, presets: ResizePreset[]) =>
  presets.find(({ name }) => name === values.resizePreset);

export function isRequired(tool: Tool, field: ToolField, values: Values, presets: ResizePreset[]): boolean {
  if (REQUIRED[tool.name]?.includes(field.name)) return true;
  if (field.name === "targetBytes") return values.mode === "target-size";
  const other = PAIRS[field.name];
  if (other && values[other]) return true;
  return presetOf(values, presets)?.needs.includes(field.name) ?? false;
}

const SIDES = ["resizeWidth", "resizeHeight"];

/** Whether a field counts beside the other values: sides beside a size that takes them, a silhouette where an SVG is made. */
export function counts(tool: Tool, field: ToolField, values: Values, presets: ResizePreset[]): boolean {
  const { name } = field;
  if (SIDES.includes(name)) return presetOf(values, presets)?.takes.includes(name) ?? true;
  if (tool.name === "convert" && name === "mono") return values.format === "svg";
  if (tool.name === "compress" && name === "targetBytes") return values.mode === "target-size";
  if (tool.name === "compress" && name === "quality") return values.lossless !== "true";
  return true;
}

/** What is wrong with a value, or undefined. */
export function problemOf(field: ToolField, text: string | undefined): string | undefined {
  if (text === undefined || text === "") return undefined;
  if (field.type === "integer" || field.type === "number") {
    const value = Number(text);
    const isOut =
      !Number.isFinite(value) ||
      (field.type === "integer" && !Number.isInteger(value)) ||
      (field.minimum !== null && value < field.minimum) ||
      (field.maximum !== null && value > field.maximum);
    return isOut ? words.field.range(field.allowed) : undefined;
  }
  if (field.maxLength !== null && [...text].length > field.maxLength) return words.field.range(field.allowed);
  if (field.values.length > 0 && field.type === "string" && !field.values.includes(text))
    return words.field.range(field.allowed);
  return undefined;
}

/** The problems of a form by field. `hasFile`: whether a file was chosen for the tool's own file field. */
export function problemsOf(
  tool: Tool,
  values: Values,
  { resizePresets }: Pick<Catalogue, "resizePresets">,
  hasFile = false,
): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const field of tool.fields) {
    if (!counts(tool, field, values, resizePresets)) continue;
    const text = values[field.name];
    const wrong = problemOf(field, text);
    const other = PAIRS[field.name];
    if (wrong) problems[field.name] = wrong;
    else if (!text && field.default === null && isRequired(tool, field, values, resizePresets))
      problems[field.name] = other ? words.field.withOther(labelOf(other)) : words.field.required;
  }
  const own = tool.fields.find(({ input }) => input === "file");
  if (own && !hasFile && !values.text) problems.text = words.field.oneOf;
  return problems;
}

/** The parameters of a request: what counts and differs from the default, of the field's type. */
export function paramsOf(
  tool: Tool,
  values: Values,
  presets: ResizePreset[],
): Record<string, string | number | boolean> {
  const params: Record<string, string | number | boolean> = {};
  for (const field of tool.fields) {
    const text = values[field.name];
    if (text === undefined || text === "" || field.input === "file") continue;
    if (!counts(tool, field, values, presets)) continue;
    // A quality that was entered asks for new frames, also when it is the usual one.
    if (field.type === "boolean" && text === String(field.default ?? false)) continue;
    if (field.type === "integer" || field.type === "number") params[field.name] = Number(text);
    else if (field.type === "boolean") params[field.name] = text === "true";
    else params[field.name] = text;
  }
  return params;
}

/** The formats that are offered for these files: those of their classes and what frames and pages become. */
export function formatsFor(field: ToolField, classes: Set<string>, formats: Format[]): string[] {
  const wanted = new Set<string>();
  for (const each of classes) {
    if (each === "video") for (const made of ["video", "audio", "raster"]) wanted.add(made);
    else if (each === "audio") wanted.add("audio");
    else for (const made of ["raster", "vector", "document"]) wanted.add(made);
  }
  if (wanted.size === 0) return field.values;
  const fits = field.values.filter((name) => {
    const known = formats.find((format) => format.name === name)?.class;
    return known === undefined || known === "archive" || wanted.has(known);
  });
  return fits.length > 0 ? fits : field.values;
}

/** The format that is asked for most, for files of these classes. */
export function usualFormat(classes: Set<string>, choices: string[]): string {
  const wanted = classes.has("video") ? "mp4" : classes.has("audio") ? "mp3" : "webp";
  return choices.includes(wanted) ? wanted : (choices[0] ?? "");
}
