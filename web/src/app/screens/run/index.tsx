/** One run: its path on the graph, its steps, its results; retried, run again or cancelled. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { progressOf } from "../../api/progress";
import { type Resource, useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, ButtonLink } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { capitalized } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { lazily } from "../../parts/lazily";
import { Menu } from "../../parts/menu";
import { Page, Section } from "../../parts/page";
import { Badge, Callout, ErrorState, Loaded, Skeleton } from "../../parts/states";
import { Ago, Bytes, Name } from "../../parts/values";
import { go, href, query, setQuery } from "../../router";
import type { ScreenProps } from "../../routes";
import { curlItem } from "../../shell/curl_panel";
import { toast } from "../../shell/toasts";
import { ProgressOf, Took } from "../shared/run_list";
import { runWords, TONES } from "../shared/run_words";
import { type Definition, hasEnded, type Run, type RunAnswer, type Workflow } from "../shared/workflow_types";
import { Outputs } from "./outputs";
import { type Step, stepsOf } from "./path";
import { Steps } from "./steps";
import { words } from "./words";

type Version = "ran" | "current";

/** Of the graph before it is loaded. */
const HEIGHT = 240;
const RunGraph = lazily(() => import("./graph").then((graph) => graph.RunGraph), HEIGHT);

export default function RunScreen({ params }: ScreenProps) {
  const id = params.id ?? "";
  const run = useResource(
    async (signal) => (await api.get<RunAnswer>(`/api/workflows/runs/${id}`, { signal })).run,
    [id],
    { on: ["run"], id },
  );
  const workflowId = run.data?.workflowId;
  const workflow = useResource(
    async (signal) =>
      (await api.get<{ workflow: Workflow }>(`/api/workflows/${workflowId}`, { signal })).workflow,
    [workflowId],
    { when: workflowId !== undefined, on: ["workflow"], ...(workflowId ? { id: workflowId } : {}) },
  );
  const name = workflow.data?.name;
  const title = run.data ? runWords.title(run.data.number) : words.title;
  return (
    <Page
      title={title}
      crumbs={[
        { label: words.workflows, to: "/workflows" },
        ...(name ? [{ label: name, to: `/workflows/${workflowId}/runs` }] : []),
      ]}
      aside={
        run.data && (
          <span role="status">
            <Badge tone={TONES[run.data.status]} dot>
              {runWords.statuses[run.data.status]}
            </Badge>
          </span>
        )
      }
      actions={run.data && <Acts run={run.data} of={run} workflow={workflow.data} />}
    >
      <Loaded of={run} skeleton={<Skeleton rows={3} height={160} />}>
        {(now) => <Whole run={now} of={run} workflow={workflow.data} />}
      </Loaded>
    </Page>
  );
}

interface RunProps {
  run: Run;
  of: Resource<Run>;
  workflow: Workflow | undefined;
}

function Whole({ run, of, workflow }: RunProps) {
  const version = useResource(
    async (signal) => {
      const path = `/api/workflows/${run.workflowId}/versions/${run.workflowVersion}`;
      return (await api.get<{ version: { definition: Definition } }>(path, { signal })).version.definition;
    },
    [run.workflowId, run.workflowVersion],
  );
  const definition = version.data;
  const steps = stepsOf(definition ?? { nodes: [], edges: [] }, run);
  // Of a failed run the step that failed is open at first
  const selected = query.value.get("step") ?? run.errorNodeId ?? null;
  const select = (nodeId: string) => setQuery({ step: nodeId === selected ? "none" : nodeId });
  return (
    <>
      <Outcome run={run} of={of} workflow={workflow} />
      <Facts run={run} workflow={workflow} steps={steps} />
      <div class="columns run-columns">
        <div class="stack">
          <Section title={words.steps}>
            <Steps steps={steps} selected={selected} onSelect={select} />
          </Section>
          <Section title={words.outputs}>
            <Outputs run={run} />
          </Section>
        </div>
        <Section title={words.graph} class="run-graph">
          {definition ? (
            <RunGraph definition={definition} steps={steps} selected={selected} onSelect={select} />
          ) : version.error?.status === 404 ? (
            <p class="soft">{words.graphGone}</p>
          ) : version.error ? (
            <ErrorState error={version.error} retry={version.reload} />
          ) : (
            <Skeleton rows={1} height={HEIGHT} />
          )}
        </Section>
      </div>
    </>
  );
}

/** The reason why a run did not complete, with what to do about it. */
function Outcome({ run, of, workflow }: RunProps) {
  if (run.status !== "failed" && run.status !== "cancelled") return null;
  const isFailed = run.status === "failed";
  return (
    <Callout
      tone={isFailed ? "bad" : "warn"}
      title={isFailed ? <bdi>{capitalized(run.error ?? words.failed)}</bdi> : words.cancelledNote}
      actions={
        can("write") && (
          <>
            {isFailed && (
              <ButtonLink
                href={href(`/workflows/${run.workflowId}`, { step: run.errorNodeId ?? undefined })}
                icon="edit"
              >
                {words.edit}
              </ButtonLink>
            )}
            {run.isInputKept !== false && (
              <Versions
                label={words.retry}
                run={run}
                workflow={workflow}
                look="solid"
                act={(version) => retry(run, version).then(of.set)}
              />
            )}
          </>
        )
      }
    >
      {run.isInputKept === false ? <p>{words.inputGone}</p> : isFailed && <p>{words.failedNote}</p>}
    </Callout>
  );
}

async function retry(run: Run, version: Version): Promise<Run> {
  const answer = await api.post<RunAnswer>(`/api/workflows/runs/${run.id}/retry`, { version });
  toast(words.retried, "good");
  return answer.run;
}

async function runAgain(run: Run, version: Version) {
  const path = `/api/workflows/${run.workflowId}/runs/${run.id}/rerun`;
  const { runId } = await api.post<RunAnswer>(path, { version });
  go(`/runs/${runId}`);
}

interface VersionsProps {
  label: string;
  run: Run;
  workflow: Workflow | undefined;
  look?: "solid" | "plain";
  act: (version: Version) => Promise<unknown>;
}

/** One button while the run's version is the present one, else the choice of both. */
function Versions({ label, run, workflow, look = "plain", act }: VersionsProps) {
  const [isBusy, setBusy] = useState(false);
  const newer = workflow && workflow.version !== run.workflowVersion ? workflow.version : undefined;
  if (newer === undefined)
    return (
      <Button look={look} icon="reload" action={() => act("ran")}>
        {label}
      </Button>
    );
  const choose = (version: Version) => {
    if (isBusy) return;
    setBusy(true);
    act(version)
      .catch((thrown: Error) => toast(thrown.message, "bad"))
      .then(() => setBusy(false));
  };
  return (
    <Menu
      label={label}
      look={look}
      button={
        <>
          <Icon name="reload" />
          {label}
          <Icon name="down" />
        </>
      }
      items={[
        { label: words.againAs(run.workflowVersion), icon: "clock", onSelect: () => choose("ran") },
        { label: words.againNow(newer), icon: "reload", onSelect: () => choose("current") },
      ]}
    />
  );
}

function Acts({ run, of, workflow }: RunProps) {
  const cancel = async () => {
    const done = await ask({
      title: words.cancelTitle,
      body: words.cancelBody,
      verb: words.cancelVerb,
      action: async () => of.set((await api.post<RunAnswer>(`/api/workflows/runs/${run.id}/cancel`)).run),
    });
    if (done) toast(words.cancelled);
  };
  return (
    <>
      {can("write") &&
        (hasEnded(run) ? (
          run.isInputKept !== false && (
            <Versions
              label={words.again}
              run={run}
              workflow={workflow}
              act={(version) => runAgain(run, version)}
            />
          )
        ) : (
          <Button icon="stop" onClick={cancel}>
            {words.cancel}
          </Button>
        ))}
      <Menu
        label={words.actions}
        items={[
          { label: words.edit, icon: "edit", href: href(`/workflows/${run.workflowId}`) },
          { label: words.list, icon: "list", href: href(`/workflows/${run.workflowId}/runs`) },
          curlItem,
        ]}
      />
    </>
  );
}

function Facts({ run, workflow, steps }: { run: Run; workflow: Workflow | undefined; steps: Step[] }) {
  const progress = progressOf(run.id);
  const onPath = steps.filter(({ state }) => state !== "skipped");
  const done = onPath.filter(({ state }) => state === "done").length;
  return (
    <div class="card run-facts">
      <Fact label={words.input}>
        {run.sourceFileId ? (
          <a href={href("/files", { file: run.sourceFileId })}>
            <Name>{run.inputFilename}</Name>
          </a>
        ) : (
          <Name>{run.inputFilename}</Name>
        )}{" "}
        <span class="soft">
          <Bytes value={run.inputSize} />
        </span>
      </Fact>
      <Fact label={words.workflow}>
        <a href={href(`/workflows/${run.workflowId}`)}>
          <Name>{workflow?.name ?? words.workflow}</Name>
        </a>{" "}
        <span class="soft">
          {words.version(run.workflowVersion)}
          {workflow && workflow.version !== run.workflowVersion && `, ${words.newer(workflow.version)}`}
        </span>
      </Fact>
      <Fact label={words.startedBy}>{runWords.triggers[run.trigger] ?? run.trigger}</Fact>
      <Fact label={words.created}>
        <Ago at={run.createdAt} />
      </Fact>
      <Fact label={words.took}>
        <Took run={run} />
      </Fact>
      {run.rerunOf && (
        <Fact label={words.repeats}>
          <a href={href(`/runs/${run.rerunOf}`)}>{words.earlier}</a>
        </Fact>
      )}
      {run.gate !== null && run.gate !== undefined && (
        <Fact label={words.gate}>{run.gate ? words.gateMet : words.gateClosed}</Fact>
      )}
      {!hasEnded(run) && (
        <div class="run-working">
          <span class="small">{words.progress(done, onPath.length)}</span>
          <ProgressOf
            file={run.inputFilename}
            progress={progress ?? { percent: (100 * done) / Math.max(1, onPath.length), queuePlace: null }}
          />
        </div>
      )}
    </div>
  );
}

const Fact = ({ label, children }: { label: string; children: preact.ComponentChildren }) => (
  <div class="run-fact">
    <span class="soft small">{label}</span>
    <span>{children}</span>
  </div>
);
