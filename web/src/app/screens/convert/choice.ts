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

/** Changes the choice and keeps it; `tool` says which of its fields are texts. */
export function choose(changes: Partial<Choice>, tool?: Tool) {
  choice.value = { ...choice.peek(), ...changes };
  const values = { ...choice.peek().values };
  if (tool) {
    const texts = new Set(tool.fields.filter(({ input }) => input === "text").map(({ name }) => name));
    const own = Object.entries(values[tool.name] ?? {}).filter(([name]) => !texts.has(name));
    values[tool.name] = Object.fromEntries(own);
  }
  kept("convert.choice", JSON.stringify({ ...choice.peek(), values }));
}
