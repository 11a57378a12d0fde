/** Outcomes of the last runs of each workflow: squares, and the share that failed. */
import { api } from "../../api/client";
import { formatPercent } from "../../parts/format";
import type { ListedRun, RunPage } from "../shared/run_list";
import { runWords } from "../shared/run_words";
import type { RunStatus, Workflow, WorkflowList } from "../shared/workflow_types";
import { words } from "./words";

/** Runs of all workflows together, whose squares are drawn. */
const MOST = 100;
/** Squares in a row. */
const SHOWN = 10;

/** Of the newest 100 runs of a workflow: how many have ended and failed, and the last one. */
export interface Recent {
  workflowId: string;
  ended: number;
  failed: number;
  lastRunId?: string | null;
  lastStatus?: string | null;
}

export interface WorkflowPage extends WorkflowList {
  recentRuns: Recent[];
}

export interface Listed {
  workflow: Workflow;
  recent: Recent | undefined;
}

export function withRecent({ workflows, recentRuns }: WorkflowPage): Listed[] {
  const byId = new Map(recentRuns.map((recent) => [recent.workflowId, recent]));
  return workflows.map((workflow) => ({ workflow, recent: byId.get(workflow.id) }));
}

/** A run as a square. */
type Outcome = Pick<ListedRun, "id" | "status">;

/** By the workflow's id, the newest first; of those that ran longer ago than the newest `MOST` runs, nothing. */
export type History = Map<string, Outcome[]>;

export async function loadHistory(signal: AbortSignal): Promise<History> {
  const { runs } = await api.get<RunPage>("/api/workflows/runs", { query: { limit: MOST }, signal });
  const history: History = new Map();
  for (const run of runs) history.set(run.workflowId, [...(history.get(run.workflowId) ?? []), run]);
  return history;
}

export function RecentRuns({
  recent,
  history,
}: {
  recent: Recent | undefined;
  history: History | undefined;
}) {
  if (!recent?.lastRunId) return <span class="soft small">{words.noRuns}</span>;
  const { workflowId, ended, failed, lastRunId, lastStatus } = recent;
  const last: Outcome = { id: lastRunId, status: lastStatus as RunStatus };
  const shown = (history?.get(workflowId) ?? [last]).slice(0, SHOWN).reverse();
  return (
    <span class="recent-runs">
      <span class="run-dots" role="img" aria-label={words.dots(inWords(shown))}>
        {shown.map(({ id, status }) => (
          <span key={id} class={`run-dot run-dot-${status}`} />
        ))}
      </span>{" "}
      {ended > 0 && (
        <span class={`small ${failed > 0 ? "" : "soft"}`}>
          {failed > 0 ? words.failed(formatPercent(failed / ended)) : words.allGood}
        </span>
      )}
    </span>
  );
}

function inWords(runs: Outcome[]): string {
  const counts = new Map<RunStatus, number>();
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${runWords.statuses[status]}`).join(", ");
}
