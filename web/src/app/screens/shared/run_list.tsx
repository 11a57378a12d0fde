/** Runs of one workflow or of all: filters, which the address keeps, and a table that follows what is in progress. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { type Progress, progressOf } from "../../api/progress";
import { usePages, useResource } from "../../api/resource";
import { allWorkflows } from "../../api/workflow_list";
import { Button } from "../../parts/button";
import { type Choice, Select } from "../../parts/form";
import { SearchField } from "../../parts/search";
import { Badge, EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Ago, Name, Since } from "../../parts/values";
import { href, query, setQuery } from "../../router";
import { formatTook, tookMs } from "./run_time";
import { TONES, runWords as words } from "./run_words";
import { hasEnded, type Run, type RunStatus } from "./workflow_types";

const PAGE = 50;
const LONGEST_SEARCH = 120;
const FILTERS = ["q", "status", "workflow", "trigger", "since", "sort"] as const;
type Filters = Record<(typeof FILTERS)[number], string>;

type Counts = Partial<Record<RunStatus, number>>;

/** A run where several workflows' are listed. */
export type ListedRun = Omit<Run, "log" | "outputs">;

export interface RunPage {
  runs: ListedRun[];
  counts?: Counts;
  nextCursor?: string | null;
}

interface RunListProps {
  /** Only this workflow's. */
  workflowId?: string;
  /** Where there are no runs at all. */
  empty: { title: string; text: string; action?: preact.ComponentChildren; curl?: string };
}

export function RunList({ workflowId, empty }: RunListProps) {
  const search = query.value;
  const filters = Object.fromEntries(FILTERS.map((name) => [name, search.get(name) ?? ""])) as Filters;
  const key = FILTERS.map((name) => filters[name]).join("|");
  const [counts, setCounts] = useState<Counts>({});
  const list = usePages(
    async (cursor, signal) => {
      const page = await loadRuns({ ...filters, workflow: workflowId ?? filters.workflow }, cursor, signal);
      if (!cursor && page.counts) setCounts(page.counts);
      return { items: page.runs, next: page.nextCursor };
    },
    key,
    ["run"],
  );
  const isFiltered = FILTERS.some((name) => name !== "sort" && filters[name]);
  const isEmpty = list.data?.items.length === 0 && !isFiltered;
  return (
    <>
      {!isEmpty && list.data && <Filter filters={filters} counts={counts} hasWorkflow={!workflowId} />}
      <Loaded of={list} skeleton={<Skeleton rows={8} height={44} />}>
        {({ items: runs, hasMore }) =>
          isEmpty ? (
            <EmptyState
              icon="clock"
              title={empty.title}
              action={empty.action}
              {...(empty.curl ? { curl: empty.curl } : {})}
            >
              {empty.text}
            </EmptyState>
          ) : runs.length === 0 ? (
            <p class="soft">{words.none}</p>
          ) : (
            <>
              <div class="card">
                <Table runs={runs} hasWorkflow={!workflowId} />
              </div>
              {hasMore && <Button onClick={list.more}>{words.more}</Button>}
            </>
          )
        }
      </Loaded>
    </>
  );
}

async function loadRuns(filters: Filters, cursor: string | null, signal: AbortSignal): Promise<RunPage> {
  const span = Number(filters.since);
  return api.get<RunPage>("/api/workflows/runs", {
    query: {
      q: filters.q || undefined,
      status: filters.status || undefined,
      workflowId: filters.workflow || undefined,
      trigger: filters.trigger || undefined,
      ...SORTS[filters.sort],
      since: span ? new Date(Date.now() - span * 1_000).toISOString() : undefined,
      limit: PAGE,
      cursor,
    },
    signal,
  });
}

/** Orders of the list other than newest first. */
const SORTS: Record<string, { sort: string; order: string }> = {
  oldest: { sort: "created", order: "asc" },
  longest: { sort: "duration", order: "desc" },
};

const STATUSES: RunStatus[] = ["queued", "processing", "completed", "failed", "cancelled"];
const choices = (names: Record<string, string>): Choice[] =>
  Object.entries(names).map(([value, label]) => ({ value, label }));

function Filter({
  filters,
  counts,
  hasWorkflow,
}: {
  filters: Filters;
  counts: Counts;
  hasWorkflow: boolean;
}) {
  const workflows = useResource(allWorkflows, [], { when: hasWorkflow, on: ["workflow"] });
  const any = { value: "", label: words.any };
  const select = (name: keyof Filters, label: string, all: Choice[]) => (
    <Select
      label={label}
      hiddenLabel
      name={name}
      value={filters[name]}
      choices={all}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value || undefined })}
    />
  );
  const withCount = (status: RunStatus) => {
    const count = counts[status];
    return count ? `${words.statuses[status]} ${count}` : words.statuses[status];
  };
  return (
    <div class="toolbar run-filters" role="search">
      <SearchField
        label={hasWorkflow ? words.searchAll : words.search}
        value={filters.q}
        maxLength={LONGEST_SEARCH}
      />
      {hasWorkflow &&
        select("workflow", words.workflow, [
          { value: "", label: words.allWorkflows },
          ...(workflows.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
        ])}
      {select("trigger", words.trigger, [{ value: "", label: words.anyTrigger }, ...choices(words.triggers)])}
      {select("since", words.since, [{ value: "", label: words.anyTime }, ...choices(words.spans)])}
      {select("sort", words.sort, choices(words.sorts))}
      <Segmented
        label={words.status}
        value={filters.status}
        choices={[any, ...STATUSES.map((status) => ({ value: status as string, label: withCount(status) }))]}
        onChange={(status) => setQuery({ status: status || undefined })}
      />
    </div>
  );
}

function Table({ runs, hasWorkflow }: { runs: ListedRun[]; hasWorkflow: boolean }) {
  return (
    <table class="table table-cards run-table" aria-label={words.table}>
      <thead>
        <tr>
          <th scope="col">{words.file}</th>
          <th scope="col">{words.status}</th>
          {hasWorkflow && <th scope="col">{words.workflow}</th>}
          <th scope="col">{words.trigger}</th>
          <th scope="col">{words.version}</th>
          <th scope="col">{words.begun}</th>
          <th scope="col">{words.took}</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id}>
            <th scope="row">
              <a href={href(`/runs/${run.id}`)}>
                <Name>{run.inputFilename}</Name>
              </a>{" "}
              <span class="soft small numeric">#{run.number}</span>
              {run.error && <p class="field-error run-error">{run.error}</p>}
            </th>
            <td data-label={words.status}>
              <RunState run={run} />
            </td>
            {hasWorkflow && (
              <td data-label={words.workflow}>
                <a href={href(`/workflows/${run.workflowId}`)}>
                  <Name>{run.workflowName ?? words.workflow}</Name>
                </a>
              </td>
            )}
            <td data-label={words.trigger}>{words.triggers[run.trigger] ?? run.trigger}</td>
            <td data-label={words.version} class="numeric">
              {run.workflowVersion}
            </td>
            <td data-label={words.begun}>
              <Ago at={run.createdAt} />
            </td>
            <td data-label={words.took} class="numeric">
              <Took run={run} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Took({ run }: { run: Pick<Run, "status" | "startedAt" | "completedAt"> }) {
  const ms = tookMs({ startedAt: run.startedAt ?? null, finishedAt: run.completedAt ?? null });
  if (ms !== undefined) return <>{formatTook(ms)}</>;
  return run.status === "processing" && run.startedAt ? <Since at={run.startedAt} /> : <>–</>;
}

export function RunState({ run }: { run: ListedRun }) {
  const progress = hasEnded(run) ? undefined : progressOf(run.id);
  return (
    <>
      <Badge tone={TONES[run.status]}>{words.statuses[run.status]}</Badge>
      {run.gate === false && <span class="soft small"> {words.gateClosed}</span>}
      {progress && <ProgressOf file={run.inputFilename} progress={progress} />}
    </>
  );
}

export function ProgressOf({ file, progress }: { file: string; progress: Progress }) {
  return progress.queuePlace !== null ? (
    <span class="soft small"> {words.queued(progress.queuePlace)}</span>
  ) : (
    <progress class="run-progress" aria-label={words.progress(file)} max={100} value={progress.percent} />
  );
}
