/** The versions of a workflow: how one differs from another, and the way back to it. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { Section } from "../../parts/page";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Time } from "../../parts/values";
import { query, setQuery } from "../../router";
import { toast } from "../../shell/toasts";
import { Differences } from "../shared/definition_diff_view";
import { exportJson } from "../shared/workflow_acts";
import type { Definition, Workflow, WorkflowVersion } from "../shared/workflow_types";
import type { PartProps } from ".";
import { words as all } from "./words";

const words = all.versions;
const SHOWN = 20;
type Against = "before" | "current";

export function Versions({ workflow, of }: PartProps) {
  const [shown, setShown] = useState(SHOWN);
  const versions = useResource(
    async (signal) =>
      (await api.get<{ versions: WorkflowVersion[] }>(`/api/workflows/${workflow.id}/versions`, { signal }))
        .versions,
    [workflow.id, workflow.version],
    { keep: true },
  );
  const asked = Number(query.value.get("version"));
  return (
    <Loaded of={versions} skeleton={<Skeleton rows={5} height={44} />}>
      {(list) => {
        const sorted = [...list].sort((a, b) => b.version - a.version);
        if (sorted.length < 2) return <p class="soft">{words.one}</p>;
        const chosen = sorted.find(({ version }) => version === asked) ?? sorted[0];
        const at = sorted.findIndex(({ version }) => version === chosen?.version);
        return (
          <div class="columns versions">
            <Section title={words.list}>
              <p class="soft small">{words.lead}</p>
              <ul class="rows">
                {sorted.slice(0, shown).map((each) => (
                  <li key={each.version} aria-current={each === chosen || undefined}>
                    <button
                      type="button"
                      class="menu-item grow"
                      aria-pressed={each === chosen}
                      onClick={() => setQuery({ version: each.version })}
                    >
                      <strong class="numeric">
                        <span class="visually-hidden">{words.versionWord} </span>
                        {each.version}
                      </strong>
                      <span class="soft">
                        <Time at={each.createdAt} />
                      </span>
                      {each.version === workflow.version && <Badge tone="good">{words.current}</Badge>}
                    </button>
                  </li>
                ))}
              </ul>
              {sorted.length > shown && <Button onClick={() => setShown(shown + SHOWN)}>{words.more}</Button>}
            </Section>
            {chosen && (
              <Compared
                key={chosen.version}
                workflow={workflow}
                version={chosen.version}
                previous={sorted[at + 1]?.version}
                of={of}
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

interface ComparedProps extends Omit<PartProps, "unsaved"> {
  version: number;
  /** None: it is the oldest that is kept. */
  previous: number | undefined;
}

function Compared({ workflow, version, previous, of }: ComparedProps) {
  const isCurrent = version === workflow.version;
  const [against, setAgainst] = useState<Against>(isCurrent || previous !== undefined ? "before" : "current");
  const isBefore = (isCurrent || against === "before") && previous !== undefined;
  const [from, to] = isBefore ? [previous, version] : [version, workflow.version];
  const both = useResource(
    async (signal) => Promise.all([from, to].map((each) => definitionOf(workflow, each, signal))),
    [from, to],
    { keep: true },
  );
  return (
    <Section
      title={words.difference(from, to)}
      actions={!isCurrent && <VersionActs workflow={workflow} version={version} of={of} />}
    >
      {!isCurrent && previous !== undefined && (
        <Segmented<Against>
          label={words.against}
          value={against}
          onChange={setAgainst}
          choices={[
            { value: "before", label: words.previous },
            { value: "current", label: words.present },
          ]}
        />
      )}
      <Loaded of={both} skeleton={<Skeleton rows={4} height={36} />}>
        {([before, after]) => before && after && <Differences before={before} after={after} />}
      </Loaded>
    </Section>
  );
}

async function definitionOf(workflow: Workflow, version: number, signal: AbortSignal): Promise<Definition> {
  if (version === workflow.version) return workflow.definition;
  const path = `/api/workflows/${workflow.id}/versions/${version}`;
  return (await api.get<{ version: { definition: Definition } }>(path, { signal })).version.definition;
}

function VersionActs({ workflow, version, of }: Omit<ComparedProps, "previous">) {
  const load = () => definitionOf(workflow, version, new AbortController().signal);
  const restore = async () => {
    const done = await ask({
      title: words.restoreTitle(version),
      body: words.restoreBody(workflow.version + 1),
      verb: words.restore,
      danger: false,
      action: async () => {
        const body = { id: workflow.id, version: workflow.version, definition: await load() };
        of.set((await api.post<{ workflow: Workflow }>("/api/workflows", body)).workflow);
      },
    });
    if (!done) return;
    setQuery({ version: undefined });
    toast(words.restored(version), "good");
  };
  return (
    <>
      <Button
        small
        icon="download"
        action={async () => exportJson({ ...workflow, definition: await load() })}
      >
        {words.download}
      </Button>
      {can("write") && (
        <Button small icon="reload" onClick={restore}>
          {words.restore}
        </Button>
      )}
    </>
  );
}
