/** The editor's state: the flow, and what undo and redo return to. One reducer for both views. Pure. */
import type { Group } from "../shared/conditions";
import type { Flow, Json, Place, Point } from "../shared/flow";
import * as edit from "./edit";

export type Action =
  | { type: "add"; kind: string; id: string; place: Place }
  | { type: "connect"; place: Place; target: string | null }
  | { type: "move"; id: string; place: Place }
  | { type: "moveUp" | "moveDown"; id: string }
  | { type: "remove"; id: string; keep?: "true" | "false" }
  | { type: "title"; id: string; title: string }
  | { type: "config"; id: string; name: string; value: Json | undefined; alias?: string }
  | { type: "condition"; id: string; condition: Group | null; part?: string }
  | { type: "rename"; id: string; to: string }
  | { type: "place"; id: string; at: Point }
  | { type: "tidy" }
  | { type: "gate"; gate: Group | null; part?: string }
  | { type: "setting"; name: "name" | "renamePattern" | "webhookUrl" | "triggerFolder"; value: string }
  /** Takes another definition as a whole: theirs after a conflict. */
  | { type: "replace"; flow: Flow };

/**
 * Undo and redo. `endGroup` makes the next change a step of undo of its own, whichever field it is in: after a drag, a save, or
 * when the focus leaves a field. `reset` begins again with another flow.
 */
export type Travel =
  | { type: "undo" }
  | { type: "redo" }
  | { type: "endGroup" }
  | { type: "reset"; flow: Flow };

export interface History {
  past: Flow[];
  present: Flow;
  future: Flow[];
  /** The field that the last action changed: typing on in the same place is one step of undo. */
  last: string | null;
}

/** Steps back that are kept. */
const KEPT = 200;

export const begin = (flow: Flow): History => ({ past: [], present: flow, future: [], last: null });

export function apply(flow: Flow, action: Action): Flow {
  switch (action.type) {
    case "add":
      return edit.added(flow, action.kind, action.place, action.id);
    case "connect":
      return edit.connected(flow, action.place, action.target);
    case "move":
      return edit.moved(flow, action.id, action.place);
    case "moveUp":
      return edit.movedUp(flow, action.id);
    case "moveDown":
      return edit.movedDown(flow, action.id);
    case "remove":
      return edit.removed(flow, action.id, action.keep);
    case "title":
      return edit.titled(flow, action.id, action.title);
    case "config":
      return edit.configured(flow, action.id, action.name, action.value, action.alias);
    case "condition":
      return edit.conditioned(flow, action.id, action.condition);
    case "rename":
      return edit.renamed(flow, action.id, action.to);
    case "place":
      return edit.placed(flow, action.id, action.at);
    case "tidy":
      return edit.tidied(flow);
    case "gate":
      return { ...flow, gate: action.gate };
    case "setting":
      return { ...flow, [action.name]: action.value };
    case "replace":
      return action.flow;
  }
}

/** The field that an action changes, when further changes of it belong to the same step of undo. */
function fieldOf(action: Action): string | null {
  switch (action.type) {
    case "title":
    case "place":
      return `${action.type} ${action.id}`;
    case "config":
      return `config ${action.id} ${action.name}`;
    case "condition":
      return action.part === undefined ? null : `condition ${action.id} ${action.part}`;
    case "gate":
      return action.part === undefined ? null : `gate ${action.part}`;
    case "setting":
      return `setting ${action.name}`;
    default:
      return null;
  }
}

export function reduce(history: History, action: Action | Travel): History {
  const { past, present, future } = history;
  if (action.type === "reset") return begin(action.flow);
  if (action.type === "endGroup") return history.last === null ? history : { ...history, last: null };
  if (action.type === "undo") {
    const before = past[past.length - 1];
    if (!before) return history;
    return { past: past.slice(0, -1), present: before, future: [present, ...future], last: null };
  }
  if (action.type === "redo") {
    const [after, ...rest] = future;
    if (!after) return history;
    return { past: [...past, present], present: after, future: rest, last: null };
  }
  const next = apply(present, action);
  if (next === present) return history;
  const field = fieldOf(action);
  const isSameField = field !== null && field === history.last;
  return {
    past: isSameField ? past : [...past, present].slice(-KEPT),
    present: next,
    future: [],
    last: field,
  };
}
