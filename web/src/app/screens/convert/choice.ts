/** The last choice of a tool and its fields; kept in this browser without texts, which may be names. */
import { signal } from "@preact/signals";
import { kept } from "../../shell/kept";
import type { Values } from "./fields";
import type { Tool } from "./types";

interface Choice {
  tool: string;
  values: Record<string, Values>;
  store: boolean;
}

const FIRST: Choice = { tool: "convert", values: {}, store: true };

export const choice = signal<Choice>(read());

function read(): Choice {
  try {
    const given = JSON.parse(kept("convert.choice") ?? "null");
    if (typeof given?.tool !== "string" || typeof given.values !== "object") return FIRST;
    return { tool: given.tool, values: given.values ?? {}, store: given.store !== false };
  } catch {
    return FIRST;
  }
}

/** Texts that were entered in this tab, as "tool field". */
const texts = new Set<string>();

/** Changes the choice and keeps it; `tool` is that whose fields are changed. */
export function choose(changes: Partial<Choice>, tool?: Tool) {
  choice.value = { ...choice.peek(), ...changes };
  for (const { name, input } of tool?.fields ?? []) if (input === "text") texts.add(`${tool?.name} ${name}`);
  const values = Object.entries(choice.peek().values).map(([name, own]) => [
    name,
    Object.fromEntries(Object.entries(own).filter(([field]) => !texts.has(`${name} ${field}`))),
  ]);
  kept("convert.choice", JSON.stringify({ ...choice.peek(), values: Object.fromEntries(values) }));
}
