/** What was sent, or waits to be sent, with filters; one of them in a dialog. */
import { useEffect } from "preact/hooks";
import { api } from "../../api/client";
import { usePages, useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { type Choice, Select } from "../../parts/form";
import { Badge, EmptyState, Loaded, Skeleton, type Tone } from "../../parts/states";
import { Name, Time } from "../../parts/values";
import { query, setQuery } from "../../router";
import { openDelivery } from "./delivery";
import type { Delivery, EventType, Webhook } from "./types";
import { words } from "./words";

interface DeliveryPage {
  deliveries: Delivery[];
  nextCursor: string | null;
}

const PAGE = 50;
export const TONES: Record<Delivery["status"], Tone> = {
  pending: "calm",
  delivering: "info",
  retrying: "warn",
  delivered: "good",
  failed: "bad",
};

/** Sent on demand, whatever an endpoint subscribes to: the catalogue has only what is subscribed to. */
const TEST = "webhook.test";
const FILTERS = ["endpoint", "status", "type", "http", "since", "event"] as const;
type Filters = Record<(typeof FILTERS)[number], string>;

export function Deliveries() {
  const search = query.value;
  const filters = Object.fromEntries(FILTERS.map((name) => [name, search.get(name) ?? ""])) as Filters;
  const key = FILTERS.map((name) => filters[name]).join("|");
  const list = usePages((cursor, signal) => load(filters, cursor, signal), key, ["delivery"]);
  const asked = search.get("delivery");
  useEffect(() => {
    if (!asked) return;
    setQuery({ delivery: undefined });
    openDelivery(asked);
  }, [asked]);
  const isFiltered = FILTERS.some((name) => filters[name]);
  return (
    <>
      <Toolbar filters={filters} />
      <Loaded of={list} skeleton={<Skeleton rows={8} height={44} />}>
        {({ items: deliveries, hasMore }) =>
          deliveries.length === 0 ? (
            isFiltered ? (
              <p class="soft">{words.deliveries.none}</p>
            ) : (
              <EmptyState icon="webhooks" title={words.deliveries.emptyTitle}>
                {words.deliveries.empty}
              </EmptyState>
            )
          ) : (
            <>
              <div class="card">
                <Table deliveries={deliveries} />
              </div>
              {hasMore && <Button onClick={list.more}>{words.more}</Button>}
            </>
          )
        }
      </Loaded>
    </>
  );
}

async function load(filters: Filters, cursor: string | null, signal: AbortSignal) {
  const span = Number(filters.since);
  const query = {
    endpointId: filters.endpoint || undefined,
    status: filters.status || undefined,
    eventType: filters.type || undefined,
    httpStatus: filters.http || undefined,
    eventId: filters.event || undefined,
    since: span ? new Date(Date.now() - span * 1_000).toISOString() : undefined,
    limit: PAGE,
    cursor,
  };
  const { deliveries, nextCursor } = await api.get<DeliveryPage>("/api/webhooks/deliveries", {
    query,
    signal,
  });
  return { items: deliveries, next: nextCursor };
}

function Toolbar({ filters }: { filters: Filters }) {
  const endpoints = useResource(
    async (signal) =>
      (await api.get<{ webhooks: Webhook[] }>("/api/webhooks", { query: { limit: 100 }, signal })).webhooks,
    [],
  );
  const types = useResource(
    async (signal) => (await api.get<{ eventTypes: EventType[] }>("/api/catalogue", { signal })).eventTypes,
    [],
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
  const any = { value: "", label: words.deliveries.any };
  return (
    <div class="toolbar webhook-filters" role="search">
      {select("endpoint", words.deliveries.endpoint, [
        { value: "", label: words.deliveries.allEndpoints },
        ...(endpoints.data ?? []).map(({ id, url }) => ({ value: id, label: url })),
      ])}
      {select("status", words.deliveries.status, [any, ...choices(words.deliveries.statuses)])}
      {select("type", words.deliveries.type, [
        { value: "", label: words.deliveries.allTypes },
        ...[...(types.data ?? []).map(({ name }) => name), TEST].map((name) => ({
          value: name,
          label: name,
        })),
      ])}
      {select("http", words.deliveries.answered, [any, ...choices(words.deliveries.answers)])}
      {select("since", words.deliveries.since, [any, ...choices(words.deliveries.spans)])}
    </div>
  );
}

const choices = (names: Record<string, string>): Choice[] =>
  Object.entries(names).map(([value, label]) => ({ value, label }));

function Table({ deliveries }: { deliveries: Delivery[] }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.deliveries.type}</th>
          <th scope="col">{words.deliveries.time}</th>
          <th scope="col">{words.deliveries.endpoint}</th>
          <th scope="col">{words.deliveries.status}</th>
          <th scope="col">{words.deliveries.http}</th>
          <th scope="col">{words.deliveries.tries}</th>
          <th scope="col">
            <span class="visually-hidden">{words.actions}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((delivery) => (
          <tr key={delivery.id}>
            <th scope="row">
              <code>{delivery.eventType}</code>
            </th>
            <td data-label={words.deliveries.time}>
              <Time at={delivery.createdAt} exact />
            </td>
            <td data-label={words.deliveries.endpoint}>
              <Name class="webhook-url">{delivery.endpointUrl}</Name>
            </td>
            <td data-label={words.deliveries.status}>
              <Badge tone={TONES[delivery.status]}>{words.deliveries.statuses[delivery.status]}</Badge>
            </td>
            <td data-label={words.deliveries.http} class="numeric">
              {delivery.httpStatus ?? "–"}
            </td>
            <td data-label={words.deliveries.tries} class="numeric">
              {delivery.attemptCount}
            </td>
            <td class="end">
              <Button
                small
                aria-label={`${words.deliveries.open} ${delivery.eventType}`}
                onClick={() => openDelivery(delivery.id)}
              >
                {words.deliveries.open}
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
