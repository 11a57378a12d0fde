/** The runs of a workflow. */
import { serviceUrl } from "../../api/base";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { runWorkflow } from "../shared/run_dialog";
import { RunList } from "../shared/run_list";
import type { PartProps } from ".";
import { words } from "./words";

export function Runs({ workflow }: PartProps) {
  const run = can("write") && workflow.isActive && (
    <Button look="solid" icon="play" onClick={() => runWorkflow(workflow)}>
      {words.run}
    </Button>
  );
  const curl = `curl -s '${serviceUrl()}/api/workflows/${workflow.id}/run' \\\n  -H "Authorization: Bearer $KEY" -F file=@photo.jpg`;
  return (
    <RunList
      workflowId={workflow.id}
      empty={{ title: words.runs.emptyTitle, text: words.runs.empty, action: run, curl }}
    />
  );
}
