/** Delivery addresses: from the values of the builder to a query, and back. */
import type { CdnParameter, DeliveryKey } from "./types";

/** Values of parameters by name, as they are written in an address. A flag is "1". */
export type Values = Record<string, string>;

/** What an address is made of. With a preset there are no values. */
export interface Place {
  /** Where the service is reached by others, without a slash at its end. */
  base: string;
  /** Token or alias of the key. */
  key: string;
  file: string;
}

/** Token or alias of a key, or null when only its beginning is known. */
export const partOf = (key: DeliveryKey): string | null => key.delivery_alias ?? key.token;

/** Whether a value says the same as none. */
export function saysNothing(parameter: CdnParameter, value: string | undefined): boolean {
  if (value === undefined || value === "") return true;
  if (parameter.input === "flag") return value !== "1" && value !== "true";
  return parameter.default !== null && value === String(parameter.default);
}

/** The query of an address, in the order of the catalogue, without what says nothing. */
export function queryOf(values: Values, parameters: CdnParameter[]): string {
  return parameters
    .filter((parameter) => !saysNothing(parameter, values[parameter.name]))
    .map(({ name, input }) => `${name}=${input === "flag" ? "1" : escaped(values[name] ?? "")}`)
    .join("&");
}

/** As `encodeURIComponent`, but commas and colons, which need no escape in a query, stay readable. */
const escaped = (value: string) =>
  encodeURIComponent(value).replace(/%2C/gi, ",").replace(/%3A/gi, ":").replace(/'/g, "%27");

export const valuesOf = (query: string): Values => Object.fromEntries(new URLSearchParams(query));

/** The values of a preset, which may have true and false for flags. */
export function valuesOfPreset(params: Record<string, unknown>): Values {
  const given = Object.entries(params).filter(([, value]) => value !== false && value !== null);
  return Object.fromEntries(given.map(([name, value]) => [name, value === true ? "1" : String(value)]));
}

/** Parameters as a preset takes them: numbers as numbers, flags as `true`. */
export function presetOf(values: Values, parameters: CdnParameter[]): Record<string, unknown> {
  const given = parameters.filter((parameter) => !saysNothing(parameter, values[parameter.name]));
  return Object.fromEntries(
    given.map(({ name, input, type }) => {
      const value = values[name] ?? "";
      if (input === "flag") return [name, true];
      return [name, type === "integer" || type === "number" ? Number(value) : value];
    }),
  );
}

export function pathOf(place: Omit<Place, "base">, { query = "", preset = "" }): string {
  const path = `/cdn/v1/${encodeURIComponent(place.key)}/${encodeURIComponent(place.file)}`;
  if (preset) return `${path}/p/${encodeURIComponent(preset)}`;
  return query ? `${path}?${query}` : path;
}

/** Where others reach the service: what lies before `/api/` in the absolute address of a record. */
export function baseOf(recordUrl: string, fallback: string): string {
  return /^(https?:\/\/.*?)\/api\//.exec(recordUrl)?.[1] ?? fallback;
}

/** What is wrong with a value, in the words of the catalogue; undefined when nothing is. */
export function problemOf(parameter: CdnParameter, value: string | undefined): string | undefined {
  if (saysNothing(parameter, value) || value === undefined) return undefined;
  return isAllowed(parameter, value) ? undefined : parameter.allowed;
}

function isAllowed(parameter: CdnParameter, value: string): boolean {
  switch (parameter.input) {
    case "integer":
      return /^-?\d+$/.test(value) && isWithin(parameter, Number(value));
    case "number":
      return /^-?(\d+\.?\d*|\.\d+)$/.test(value) && isWithin(parameter, Number(value));
    case "quality":
      return parameter.values.includes(value) || (/^\d+$/.test(value) && isWithin(parameter, Number(value)));
    case "colour":
      return /^([0-9a-f]{3}|[0-9a-f]{6}|transparent)$/i.test(value);
    case "point": {
      const shares = value.split(",");
      return shares.length === 2 && shares.every((share) => /^(0?\.\d+|[01](\.0*)?)$/.test(share.trim()));
    }
    default:
      return true;
  }
}

const isWithin = ({ minimum, maximum }: CdnParameter, value: number) =>
  value >= (minimum ?? Number.NEGATIVE_INFINITY) && value <= (maximum ?? Number.POSITIVE_INFINITY);

/** A point of the image as the value of a parameter: shares with three digits. */
export function pointOf(x: number, y: number): string {
  const share = (value: number) => Math.round(Math.max(0, Math.min(1, value)) * 1_000) / 1_000;
  return `${share(x)},${share(y)}`;
}

/** What is typed into the field of purging: addresses and tags, one a line; a bare id of a file is its tag. */
export function purgeOf(text: string): { urls: string[]; tags: string[] } {
  const isId = (line: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(line);
  const lines = text.split(/\s+/).filter(Boolean);
  const named = [...new Set(lines.map((line) => (isId(line) ? `asset:${line}` : line)))];
  const isTag = (line: string) => line.startsWith("asset:");
  return { urls: named.filter((line) => !isTag(line)), tags: named.filter(isTag) };
}
