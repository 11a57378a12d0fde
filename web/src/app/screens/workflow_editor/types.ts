/** What the editor takes and gives. */
import type { Definition } from "./flow";

/** A workflow as the API answers it, as far as the editor needs it. */
export interface Workflow {
  id: string;
  name: string;
  isActive: boolean;
  version: number;
  definition: Definition;
}

export interface WorkflowEditorProps {
  /** As it was loaded. While the editor is shown, a newer one from outside does not replace what the user has changed. */
  workflow: Workflow;
  /** After each save, with what the service answered. */
  onSaved: (workflow: Workflow) => void;
}
