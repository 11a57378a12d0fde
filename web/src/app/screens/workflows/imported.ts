/** Reads a workflow from an imported text: pure. */
import type { Definition } from "../shared/workflow_types";
import { words } from "./words";

export interface Imported {
  name?: string;
  definition: Definition;
}

/** Takes an exported workflow, an answer of the API, or a definition by itself; throws a sentence for the user. */
export function imported(text: string): Imported {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw new Error(words.notJson((thrown as Error).message));
  }
  const outer = inside(value, "workflow") ?? value;
  const definition = inside(outer, "definition") ?? outer;
  if (!isDefinition(definition)) throw new Error(words.noDefinition);
  const name = (outer as { name?: unknown }).name;
  return typeof name === "string" && outer !== definition ? { name, definition } : { definition };
}

const inside = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)[name]
    : undefined;

const isDefinition = (value: unknown): value is Definition =>
  Array.isArray(inside(value, "nodes")) && Array.isArray(inside(value, "edges"));
