/** The editor, in its place below the tabs. */

import type { Workflow } from "../shared/workflow_types";
import WorkflowEditor from "../workflow_editor/editor";
import type { PartProps } from ".";

export function Edit({ workflow, of }: PartProps) {
  return (
    <WorkflowEditor
      workflow={workflow as never}
      onSaved={(saved) =>
        of.set((before) => ({ ...(before ?? workflow), ...(saved as unknown as Workflow) }))
      }
    />
  );
}
