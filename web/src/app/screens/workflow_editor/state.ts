/** State that the parts of the editor share: the flow, the chosen step, problems, and the acts that both views offer. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Flow, Place, Step } from "../shared/flow";
import type { Action, Travel } from "./history";
import type { Marks } from "./marks";
import type { Outline } from "./order";
import type { Catalogue, Problem } from "./types";

export type Side = "fields" | "dryRun";

export interface Editor {
  flow: Flow;
  outline: Outline;
  catalogue: Catalogue | undefined;
  problems: Problem[];
  marks: Marks | undefined;
  /** The step whose fields are shown; null: those of the workflow. */
  selected: string | null;
  select: (id: string | null, options?: { open?: boolean; focus?: boolean }) => void;
  dispatch: (action: Action | Travel) => void;
  /** Asks for the kind and adds it; chooses what was added. */
  addAt: (place: Place) => Promise<void>;
  remove: (step: Step) => Promise<void>;
  /** Asks where a way leads. */
  continueAt: (place: Place) => Promise<void>;
  moveTo: (step: Step) => Promise<void>;
  shift: (step: Step, direction: "moveUp" | "moveDown") => void;
  /** Puts the focus into the fields of the chosen step. */
  enterPanel: () => void;
}

export const EditorContext = createContext<Editor | null>(null);

export function useEditor(): Editor {
  const editor = useContext(EditorContext);
  if (!editor) throw new Error("outside of the editor");
  return editor;
}

/** The worst of a step's problems. */
export function signOf(problems: Problem[], id: string): "error" | "warning" | undefined {
  const own = problems.filter(({ nodeId }) => nodeId === id);
  if (own.length === 0) return undefined;
  return own.some(({ severity }) => severity === "error") ? "error" : "warning";
}
