/** The presets: named sets of parameters. */
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button, ButtonLink } from "../../parts/button";
import { ask } from "../../parts/dialog";
import { EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { href } from "../../router";
import { toast } from "../../shell/toasts";
import { valuesOfPreset } from "./address";
import { draft, inQuery } from "./draft";
import type { Preset } from "./types";
import { words } from "./words";

const PATH = "/api/cdn-presets";
const EXAMPLE = { name: "card", params: { w: 400, h: 300, gravity: "smart" } };

export function Presets() {
  const list = useResource((signal) => api.get<{ presets: Preset[] }>(PATH, { signal }), [], {
    on: ["preset"],
  });
  return (
    <Loaded of={list} skeleton={<Skeleton rows={4} height={56} />}>
      {({ presets }) =>
        presets.length === 0 ? (
          <EmptyState
            icon="images"
            title={words.preset.emptyTitle}
            action={
              can("write") && (
                <ButtonLink look="solid" icon="plus" href={href("/images", inQuery(draft.value))}>
                  {words.preset.build}
                </ButtonLink>
              )
            }
            curl={`curl -s '${serviceUrl()}${PATH}' \\\n  -H "Authorization: Bearer $KEY" --json '${JSON.stringify(EXAMPLE)}'`}
            guide={{ href: "/guides/images", label: words.preset.guide }}
          >
            {words.preset.about}
          </EmptyState>
        ) : (
          <>
            <p class="soft prose">{words.preset.about}</p>
            <div class="card">
              <Table presets={presets} changed={list.reload} />
            </div>
          </>
        )
      }
    </Loaded>
  );
}

function Table({ presets, changed }: { presets: Preset[]; changed: () => void }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.preset.name}</th>
          <th scope="col">{words.preset.params}</th>
          <th scope="col">{words.preset.updated}</th>
          <th scope="col">
            <span class="visually-hidden">{words.preset.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {presets.map((preset) => (
          <Row key={preset.id} preset={preset} changed={changed} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ preset, changed }: { preset: Preset; changed: () => void }) {
  const values = valuesOfPreset(preset.params);
  const edit = inQuery({ ...draft.value, preset: "", edit: preset.id, values });
  const use = inQuery({ ...draft.value, preset: preset.name, edit: "" });
  const remove = async () => {
    const done = await ask({
      title: <Name>{words.preset.deleteTitle(preset.name)}</Name>,
      body: words.preset.deleteBody,
      verb: words.preset.delete,
      action: () => api.delete(`${PATH}/${preset.id}`),
    });
    if (!done) return;
    toast(words.preset.deleted);
    changed();
  };
  return (
    <tr>
      <th scope="row">
        <Name>{preset.name}</Name>
      </th>
      <td data-label={words.preset.params}>
        <code class="builder-params">
          {Object.entries(values)
            .map(([name, value]) => `${name}=${value}`)
            .join(" ")}
        </code>
      </td>
      <td data-label={words.preset.updated}>
        <Ago at={preset.updatedAt} />
      </td>
      <td class="end">
        <span class="actions builder-acts">
          <ButtonLink small href={href("/images", use)}>
            {words.preset.use}
          </ButtonLink>
          {can("write") && (
            <>
              <ButtonLink small href={href("/images", edit)}>
                {words.preset.edit}
              </ButtonLink>
              <Button
                small
                look="danger"
                aria-label={`${words.preset.delete} ${preset.name}`}
                onClick={remove}
              >
                {words.preset.delete}
              </Button>
            </>
          )}
        </span>
      </td>
    </tr>
  );
}
