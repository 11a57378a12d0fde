/** Types that the editor takes from the API and gives to the screen around it. */
import type { Save } from "../shared/run_dialog";
import type { Workflow } from "../shared/workflow_types";

export interface WorkflowEditorProps {
  /**
   * The workflow as it was loaded. A newer one from outside is taken when the user has nothing unsaved and nothing to redo; else it
   * is offered, and again when they save.
   */
  workflow: Workflow;
  /** After each save, with what the service answered. */
  onSaved: (workflow: Workflow) => void;
  /** Has what saves the changes, while there are any. */
  unsaved: { current: Save | undefined };
}

/** The parts of `GET /api/catalogue` that the editor is drawn from. */
export interface Catalogue {
  kinds: Kind[];
  conditions: { fields: ConditionField[]; operators: Operator[] };
}

export interface Kind {
  kind: string;
  summary: string;
  accepts: string[];
  fields: KindField[];
}

export interface KindField {
  name: string;
  alias?: string | null;
  type: string;
  input: string;
  allowed: string;
  values: string[];
  default?: unknown;
  minimum?: number | null;
  maximum?: number | null;
  maxLength?: number | null;
  summary: string;
}

export interface ConditionField {
  name: string;
  aliases: string[];
  isNumber: boolean;
  operators: string[];
  summary: string;
}

export interface Operator {
  name: string;
  aliases: string[];
  symbols: string[];
  takes: string;
}

/** A finding of lint. */
export interface Problem {
  severity: string;
  code: string;
  nodeId?: string | null;
  field?: string | null;
  message: string;
}
