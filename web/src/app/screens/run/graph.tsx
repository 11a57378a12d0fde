/** The run drawn on the graph of the version that it ran. */
import { useMemo } from "preact/hooks";
import type { Definition } from "../shared/workflow_types";
import { WorkflowGraph } from "../workflow_editor/graph";
import { noteOf, type Step } from "./path";
import { words } from "./words";

interface RunGraphProps {
  definition: Definition;
  steps: Step[];
  selected: string | null;
  onSelect: (nodeId: string) => void;
}

export function RunGraph({ definition, steps, selected, onSelect }: RunGraphProps) {
  const marks = useMemo(
    () =>
      new Map(
        steps.map((step) => [
          step.nodeId,
          { state: step.state, note: noteOf(step) || undefined, branch: step.entry?.branch ?? undefined },
        ]),
      ),
    [steps],
  );
  return (
    <WorkflowGraph
      definition={definition as never}
      marks={marks}
      label={words.graphLabel}
      selected={selected}
      onSelect={onSelect}
    />
  );
}
