/** Workflows: whether each is active, how its last runs went, and what can be done with it. */
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { usePages, useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Switch } from "../../parts/form";
import { Menu } from "../../parts/menu";
import { Page } from "../../parts/page";
import { EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { href, query, setQuery } from "../../router";
import type { ScreenProps } from "../../routes";
import { curlItem } from "../../shell/curl_panel";
import { toast } from "../../shell/toasts";
import { WorkflowTabs } from "../shared/workflow_tabs";
import type { Workflow } from "../shared/workflow_types";
import { type History, type Listed, loadHistory, RecentRuns, type WorkflowPage, withRecent } from "./recent";
import { TEMPLATES, type Template } from "./templates";
import { words } from "./words";

const PAGE = 50;

const acts = () => import("../shared/workflow_acts");
const newWorkflow = (template?: string) =>
  import("./new_workflow").then((made) => made.newWorkflow(template));
const importWorkflow = () => import("./import").then((module) => module.importWorkflow());

export default function Workflows(_: ScreenProps) {
  const list = usePages(
    async (cursor, signal) => {
      const page = await api.get<WorkflowPage>("/api/workflows", { query: { limit: PAGE, cursor }, signal });
      return { items: withRecent(page), next: page.nextCursor };
    },
    "workflows",
    ["workflow", "run"],
  );
  const history = useResource(loadHistory, [], { on: ["run"] });
  const asked = query.value.get("new");
  useEffect(() => {
    if (asked === null) return;
    setQuery({ new: undefined });
    if (can("write")) asked === "import" ? importWorkflow() : newWorkflow();
  }, [asked]);
  const isEmpty = list.data?.items.length === 0;
  return (
    <Page
      title={words.title}
      actions={
        can("write") && (
          <>
            <Button icon="upload" onClick={importWorkflow}>
              {words.import}
            </Button>
            <Button look="solid" icon="plus" onClick={() => newWorkflow()}>
              {words.new}
            </Button>
          </>
        )
      }
    >
      <WorkflowTabs current="workflows" />
      <Loaded of={list} skeleton={<Skeleton rows={5} height={56} />}>
        {({ items: listed, hasMore }) =>
          isEmpty ? (
            <Nothing />
          ) : (
            <>
              <div class="card">
                <Table listed={listed} history={history.data} changed={list.reload} />
              </div>
              {hasMore && <Button onClick={list.more}>{words.more}</Button>}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Nothing() {
  return (
    <>
      <EmptyState
        icon="workflow"
        title={words.emptyTitle}
        curl={`curl -s '${serviceUrl()}/api/workflows' \\\n  -H "Authorization: Bearer $KEY" \\\n  --json '{"name": "To WebP", "outputFormat": "webp"}'`}
        guide={{ href: "/guides/workflows", label: words.guide }}
      >
        {words.empty}
      </EmptyState>
      {can("write") && (
        <section class="stack" aria-label={words.templates}>
          <h2 class="workflow-templates-title">{words.templates}</h2>
          <div class="columns">
            {TEMPLATES.map((template) => (
              <TemplateCard key={template.id} template={template} />
            ))}
          </div>
        </section>
      )}
    </>
  );
}

function TemplateCard({ template }: { template: Template }) {
  return (
    <article class="card workflow-template">
      <h3>{template.name}</h3>
      <p class="small">{template.text}</p>
      <StepsInShort steps={template.steps} />
      <Button aria-label={`${words.use}: ${template.name}`} onClick={() => newWorkflow(template.id)}>
        {words.use}
      </Button>
    </article>
  );
}

export function StepsInShort({ steps }: { steps: string[] }) {
  return (
    <ol class="steps-in-short">
      {steps.map((step) => (
        <li key={step}>{step}</li>
      ))}
    </ol>
  );
}

interface TableProps {
  listed: Listed[];
  history: History | undefined;
  changed: () => void;
}

function Table({ listed, history, changed }: TableProps) {
  return (
    <table class="table table-cards workflow-table" aria-label={words.list}>
      <thead>
        <tr>
          <th scope="col">{words.name}</th>
          <th scope="col">{words.active}</th>
          <th scope="col">{words.recent}</th>
          <th scope="col">{words.lastRun}</th>
          <th scope="col">
            <span class="visually-hidden">{words.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {listed.map(({ workflow, recent }) => (
          <tr key={workflow.id}>
            <th scope="row">
              <a href={href(`/workflows/${workflow.id}`)}>
                <Name>{workflow.name}</Name>
              </a>
              <p class="soft small workflow-note">
                {words.version(workflow.version)}
                {workflow.definition.trigger && ` · ${words.trigger}`}
              </p>
            </th>
            <td data-label={words.active}>
              <Active workflow={workflow} changed={changed} />
            </td>
            <td data-label={words.recent}>
              <RecentRuns recent={recent} history={history} />
            </td>
            <td data-label={words.lastRun}>
              {workflow.lastRunAt ? <Ago at={workflow.lastRunAt} /> : <span class="soft">{words.never}</span>}
            </td>
            <td class="end">
              <Acts workflow={workflow} changed={changed} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  workflow: Workflow;
  changed: () => void;
}

function Active({ workflow, changed }: RowProps) {
  const change = (isActive: boolean) =>
    acts()
      .then((act) => act.setActive(workflow, isActive))
      .catch((thrown: Error) => toast(thrown.message, "bad"))
      .then(changed);
  return (
    <Switch
      label={words.activeOf(workflow.name)}
      hiddenLabel
      checked={workflow.isActive}
      disabled={!can("write")}
      onChange={change}
    />
  );
}

function Acts({ workflow, changed }: RowProps) {
  const run = () => import("../shared/run_dialog").then((dialog) => dialog.runWorkflow(workflow));
  const copy = async () => {
    const { duplicate, shownOnce } = await acts();
    const made = await duplicate(workflow);
    if (!made) return;
    await shownOnce(made);
    changed();
  };
  const remove = async () => (await (await acts()).remove(workflow)) && changed();
  const mayWrite = can("write");
  return (
    <div class="actions workflow-acts">
      {mayWrite && (
        <Button
          small
          icon="play"
          aria-label={words.runOf(workflow.name)}
          disabled={!workflow.isActive}
          onClick={run}
        >
          {words.run}
        </Button>
      )}
      <Menu
        small
        label={words.actionsOf(workflow.name)}
        items={[
          { label: words.open, icon: "edit", href: href(`/workflows/${workflow.id}`) },
          { label: words.runs, icon: "list", href: href(`/workflows/${workflow.id}/runs`) },
          mayWrite && { label: "Duplicate", icon: "copy", onSelect: copy },
          {
            label: "Export as JSON",
            icon: "download",
            onSelect: () => acts().then((act) => act.exportJson(workflow)),
          },
          curlItem,
          mayWrite && { label: "Delete", icon: "trash", danger: true, onSelect: remove },
        ]}
      />
    </div>
  );
}
