/** Settings: who changed what, when, and from where. */
import type { ComponentChildren } from "preact";
import { api } from "../../api/client";
import { usePages, useResource } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { type Choice, Select } from "../../parts/form";
import { Page } from "../../parts/page";
import { Badge, Callout, EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Name, Time } from "../../parts/values";
import { href, query, setQuery } from "../../router";
import { SettingsTabs } from "../shared/settings_tabs";
import { actionText, GROUPS } from "./action_text";
import { screenOf } from "./target";
import type { AuditEntry } from "./types";
import { words } from "./words";

const PAGE = 50;
const FILTERS = ["actor", "action", "since"] as const;
type Filters = Record<(typeof FILTERS)[number], string>;

export default function Audit() {
  return (
    <Page title={words.title}>
      <SettingsTabs />
      {can("admin") ? <Log /> : <Callout title={words.adminOnly} />}
    </Page>
  );
}

function Log() {
  const search = query.value;
  const filters = Object.fromEntries(FILTERS.map((name) => [name, search.get(name) ?? ""])) as Filters;
  const key = FILTERS.map((name) => filters[name]).join("|");
  const list = usePages((cursor, signal) => load(filters, cursor, signal), key, ["audit"]);
  const isFiltered = FILTERS.some((name) => filters[name]);
  return (
    <>
      <p class="soft prose">{words.about}</p>
      <Toolbar filters={filters} />
      <Loaded of={list} skeleton={<Skeleton rows={8} height={44} />}>
        {({ items: entries, hasMore }) =>
          entries.length > 0 ? (
            <>
              <div class="card">
                <Table entries={entries} />
              </div>
              {hasMore && <Button onClick={list.more}>{words.more}</Button>}
            </>
          ) : isFiltered ? (
            <p class="soft">{words.none}</p>
          ) : (
            <EmptyState icon="book" title={words.emptyTitle}>
              {words.empty}
            </EmptyState>
          )
        }
      </Loaded>
    </>
  );
}

async function load(filters: Filters, cursor: string | null, signal: AbortSignal) {
  const span = Number(filters.since);
  const query = {
    actor: filters.actor || undefined,
    action: filters.action || undefined,
    since: span ? new Date(Date.now() - span * 1_000).toISOString() : undefined,
    limit: PAGE,
    cursor,
  };
  const page = await api.get<{ entries: AuditEntry[]; nextCursor: string | null }>("/api/audit", {
    query,
    signal,
  });
  return { items: page.entries, next: page.nextCursor };
}

interface Named {
  id: string;
  name: string;
}

function Toolbar({ filters }: { filters: Filters }) {
  const people = useResource(
    async (signal) => (await api.get<{ users: Named[] }>("/api/users", { signal })).users,
    [],
    { on: ["user"] },
  );
  const keys = useResource(
    async (signal) => (await api.get<{ keys: Named[] }>("/api/keys", { query: { limit: 100 }, signal })).keys,
    [],
    { on: ["api_key"] },
  );
  const select = (name: keyof Filters, label: string, choices: Choice[]) => (
    <Select
      label={label}
      name={name}
      value={filters[name]}
      choices={choices}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value || undefined })}
    />
  );
  const actors = [
    ...(people.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
    ...(keys.data ?? []).map(({ id, name }) => ({ value: id, label: `${words.byKey}: ${name}` })),
  ];
  return (
    <div class="toolbar audit-filters" role="search">
      {select("actor", words.actor, [
        { value: "", label: words.everyone },
        ...withPresent(actors, filters.actor),
      ])}
      {select("action", words.group, [
        { value: "", label: words.everything },
        ...withPresent(GROUPS, filters.action),
      ])}
      {select("since", words.since, [
        { value: "", label: words.anyTime },
        ...Object.entries(words.spans).map(([value, label]) => ({ value, label })),
      ])}
    </div>
  );
}

/** The choices and the present one, which a link may have named and nothing lists any longer. */
const withPresent = (choices: Choice[], present: string): Choice[] =>
  !present || choices.some(({ value }) => value === present)
    ? choices
    : [...choices, { value: present, label: present }];

function Table({ entries }: { entries: AuditEntry[] }) {
  return (
    <table class="table table-cards audit-table">
      <thead>
        <tr>
          <th scope="col">{words.action}</th>
          <th scope="col">{words.target}</th>
          <th scope="col">{words.actor}</th>
          <th scope="col">{words.time}</th>
          <th scope="col">{words.network}</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <tr key={entry.id}>
            <th scope="row" title={entry.action}>
              {actionText(entry.action)}
            </th>
            <td data-label={words.target}>
              <span>
                <Target entry={entry} />
                {entry.detail && (
                  <bdi class="soft small">
                    {entry.target?.name ? " – " : ""}
                    {entry.detail}
                  </bdi>
                )}
              </span>
            </td>
            <td data-label={words.actor}>
              <span class="member-name">
                {entry.actor.name ? <Name>{entry.actor.name}</Name> : <span class="soft">{words.gone}</span>}
                {entry.actor.kind === "key" && <Badge>{words.byKey}</Badge>}
              </span>
            </td>
            <td data-label={words.time}>
              <Time at={entry.time} exact />
            </td>
            <td data-label={words.network} class="numeric">
              {entry.network ?? words.unknown}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Target({ entry }: { entry: AuditEntry }): ComponentChildren {
  const { target } = entry;
  if (!target) return entry.detail ? null : words.unknown;
  const to = screenOf(entry);
  const name = target.name ?? target.id;
  return to ? (
    <a href={href(to)}>
      <Name>{name}</Name>
    </a>
  ) : (
    <Name>{name}</Name>
  );
}
