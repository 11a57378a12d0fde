/** The editor, in its place below the tabs. */
import WorkflowEditor from "../workflow_editor/editor";
import type { PartProps } from ".";

export const Edit = ({ workflow, of }: PartProps) => <WorkflowEditor workflow={workflow} onSaved={of.set} />;
