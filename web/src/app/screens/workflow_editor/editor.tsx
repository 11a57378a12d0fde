/**
 * The editor of a workflow, loaded when it is opened: `lazy(() => import("../workflow_editor/editor"))`. It brings its own
 * toolbar (view, undo, dry run, save) and asks before changes are lost.
 */
import { WorkflowGraph } from "./graph";
import type { WorkflowEditorProps } from "./types";

export default function WorkflowEditor({ workflow }: WorkflowEditorProps) {
  return <WorkflowGraph definition={workflow.definition} label={workflow.name} />;
}
