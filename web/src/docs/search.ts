/** Finds operations by words. Pure. */
import { type Entry, type OpenApi, resolve, titleOf } from "./document";

/** What an operation is called, in small letters: who searches by it wants that operation first. */
export function namesOf(api: OpenApi, entry: Entry): string {
  const { operation } = entry;
  return [entry.method, entry.path, titleOf(api, entry.tag), operation.operationId, operation.summary]
    .filter(Boolean)
    .join(" ")
    .toLowerCase();
}

/** Everything that an operation is found by, in small letters. */
export function wordsOf(api: OpenApi, entry: Entry): string {
  const { operation } = entry;
  const body = operation.requestBody && resolve(api, operation.requestBody);
  const fields = Object.values(body?.content ?? {}).flatMap(({ schema }) =>
    Object.keys(resolve(api, schema ?? {}).properties ?? {}),
  );
  return [
    namesOf(api, entry),
    entry.tag,
    operation.description,
    ...entry.parameters.map((parameter) => parameter.name),
    ...fields,
  ]
    .filter(Boolean)
    .join(" ")
    .toLowerCase();
}

/** Whether all words of a query occur; a query without words finds everything. */
export function isFound(words: string, query: string): boolean {
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => words.includes(word));
}
