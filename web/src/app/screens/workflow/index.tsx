/** One workflow: its editor, its runs and what became of them at each step, its versions, its settings. */
import { useRef } from "preact/hooks";
import { api } from "../../api/client";
import { type Resource, useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { lazily } from "../../parts/lazily";
import { Menu } from "../../parts/menu";
import { Page } from "../../parts/page";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Tabs } from "../../parts/tabs";
import { go, href } from "../../router";
import type { ScreenProps } from "../../routes";
import { showCurl } from "../../shell/curl_panel";
import { toast } from "../../shell/toasts";
import type { Save } from "../shared/run_dialog";
import type { Workflow } from "../shared/workflow_types";
import { words } from "./words";

export interface PartProps {
  workflow: Workflow;
  of: Resource<Workflow>;
  /** What saves the editor's changes, while it has any. */
  unsaved: { current: Save | undefined };
}

/** Of what a part takes before it is loaded. */
const HEIGHT = 240;

/** Loaded when they are opened: the editor is larger than everything else here. */
const PARTS = {
  edit: lazily<PartProps>(() => import("./edit").then(({ Edit }) => Edit), HEIGHT),
  runs: lazily<PartProps>(() => import("./runs").then(({ Runs }) => Runs), HEIGHT),
  statistics: lazily<PartProps>(() => import("./statistics").then(({ Statistics }) => Statistics), HEIGHT),
  versions: lazily<PartProps>(() => import("./versions").then(({ Versions }) => Versions), HEIGHT),
  settings: lazily<PartProps>(() => import("./settings").then(({ Settings }) => Settings), HEIGHT),
};
type Part = keyof typeof PARTS;

const acts = () => import("../shared/workflow_acts");

export default function WorkflowScreen({ params }: ScreenProps) {
  const id = params.id ?? "";
  const part: Part = params.tab && params.tab in PARTS ? (params.tab as Part) : "edit";
  const workflow = useResource(
    async (signal) => (await api.get<{ workflow: Workflow }>(`/api/workflows/${id}`, { signal })).workflow,
    [id],
    { on: ["workflow"], id },
  );
  const unsaved = useRef<Save>(undefined);
  const { data } = workflow;
  const Shown = PARTS[part];
  return (
    <Page
      title={data?.name ?? words.title}
      crumbs={[{ label: words.list, to: "/workflows" }]}
      aside={
        data && (
          <>
            <Badge tone={data.isActive ? "good" : "calm"} dot>
              {data.isActive ? words.active : words.paused}
            </Badge>
            <span>{words.version(data.version)}</span>
          </>
        )
      }
      actions={data && <Acts workflow={data} of={workflow} unsaved={unsaved} />}
    >
      <Tabs
        label={words.tabs.label}
        items={(Object.keys(PARTS) as Part[]).map((name) => ({
          href: href(`/workflows/${id}${name === "edit" ? "" : `/${name}`}`),
          label: words.tabs[name],
          current: name === part,
        }))}
      />
      <Loaded of={workflow} skeleton={<Skeleton rows={3} height={120} />}>
        {(workflowNow) => <Shown workflow={workflowNow} of={workflow} unsaved={unsaved} />}
      </Loaded>
    </Page>
  );
}

function Acts({ workflow, of, unsaved }: PartProps) {
  const mayWrite = can("write");
  const run = () =>
    import("../shared/run_dialog").then((dialog) => dialog.runWorkflow(workflow, unsaved.current));
  const pause = () =>
    acts()
      .then((act) => act.setActive(workflow, !workflow.isActive))
      .then(of.set, (thrown: Error) => toast(thrown.message, "bad"));
  const copy = async () => {
    const { duplicate, shownOnce } = await acts();
    const made = await duplicate(workflow);
    if (!made) return;
    await shownOnce(made);
    go(`/workflows/${made.id}`);
  };
  const remove = async () => (await (await acts()).remove(workflow)) && go("/workflows", { replace: true });
  return (
    <>
      {mayWrite && (
        <Button look="solid" icon="play" disabled={!workflow.isActive} onClick={run}>
          {words.run}
        </Button>
      )}
      <Menu
        label={words.actions}
        items={[
          mayWrite && {
            label: workflow.isActive ? "Pause" : "Resume",
            icon: workflow.isActive ? "pause" : "play",
            onSelect: pause,
          },
          mayWrite && { label: "Duplicate", icon: "copy", onSelect: copy },
          {
            label: "Export as JSON",
            icon: "download",
            onSelect: () => acts().then((act) => act.exportJson(workflow)),
          },
          { label: words.curl, icon: "terminal", onSelect: showCurl },
          mayWrite && { label: "Delete", icon: "trash", danger: true, onSelect: remove },
        ]}
      />
    </>
  );
}
