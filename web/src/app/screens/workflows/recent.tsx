/** Outcomes of the last runs of each workflow: squares, and the share that failed. */
import { api } from "../../api/client";
import { formatPercent } from "../../parts/format";
import type { ListedRun, RunPage } from "../shared/run_list";
import { runWords } from "../shared/run_words";
import type { RunStatus, Workflow } from "../shared/workflow_types";
import { words } from "./words";

/** Runs of all workflows together that the list looks at. */
const MOST = 100;
const DAYS_MS = 30 * 24 * 3_600_000;
/** Squares in a row. */
const SHOWN = 10;

/** By the workflow's id, the newest first. */
export type History = Map<string, ListedRun[]>;

export async function loadHistory(signal: AbortSignal): Promise<History> {
  const since = new Date(Date.now() - DAYS_MS).toISOString();
  const { runs } = await api.get<RunPage>("/api/workflows/runs", { query: { since, limit: MOST }, signal });
  const history: History = new Map();
  for (const run of runs) history.set(run.workflowId, [...(history.get(run.workflowId) ?? []), run]);
  return history;
}

export function RecentRuns({ workflow, history }: { workflow: Workflow; history: History | undefined }) {
  const runs = history?.get(workflow.id) ?? [];
  if (!history) return null;
  if (runs.length === 0) return <span class="soft small">{words.noRuns}</span>;
  const shown = runs.slice(0, SHOWN).reverse();
  const ended = runs.filter(({ status }) => status === "completed" || status === "failed");
  const failed = ended.filter(({ status }) => status === "failed").length;
  return (
    <span class="recent-runs">
      <span class="run-dots" role="img" aria-label={words.dots(inWords(shown))}>
        {shown.map(({ id, status }) => (
          <span key={id} class={`run-dot run-dot-${status}`} />
        ))}
      </span>{" "}
      {ended.length > 0 && (
        <span class={`small ${failed > 0 ? "" : "soft"}`}>
          {failed > 0 ? words.failed(formatPercent(failed / ended.length)) : words.allGood}
        </span>
      )}
    </span>
  );
}

function inWords(runs: ListedRun[]): string {
  const counts = new Map<RunStatus, number>();
  for (const { status } of runs) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${runWords.statuses[status]}`).join(", ");
}
