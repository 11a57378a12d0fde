/** What was delivered, by day and by key; and purging. */
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { ButtonLink } from "../../parts/button";
import { Chart } from "../../parts/chart";
import { Select } from "../../parts/form";
import { formatBytes, formatCompact, formatNumber, formatPercent } from "../../parts/format";
import { Section } from "../../parts/page";
import { Badge, EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name } from "../../parts/values";
import { href, query, setQuery } from "../../router";
import { everyDay } from "./days";
import { draft, inQuery } from "./draft";
import { deliveryKeys } from "./keys";
import { Purge } from "./purge";
import type { Statistics as Numbers, Sums } from "./types";
import { words } from "./words";

const PERIODS = ["7", "30", "90", "365"] as const;
type Period = (typeof PERIODS)[number];

export function Statistics() {
  const asked = query.value.get("days") as Period;
  const days = PERIODS.includes(asked) ? asked : "30";
  const key = query.value.get("of") ?? "";
  const numbers = useResource(
    (signal) => api.get<Numbers>("/api/cdn/stats", { query: { days, key }, signal }),
    [days, key],
    { on: ["usage"], keep: true },
  );
  const known = useResource(deliveryKeys, [], { on: ["delivery_key"] }).data ?? [];
  return (
    <>
      <div class="toolbar">
        <Segmented
          label={words.statistics.days}
          value={days}
          choices={PERIODS.map((value) => ({ value, label: words.statistics.lastDays(Number(value)) }))}
          onChange={(value) => setQuery({ days: value === "30" ? undefined : value })}
        />
        <Select
          label={words.statistics.key}
          hiddenLabel
          name="of"
          value={key}
          choices={[
            { value: "", label: words.statistics.all },
            // A revoked key is in the table of the numbers and not in the list of keys.
            ...(key && !known.some(({ id }) => id === key)
              ? [{ value: key, label: numbers.data?.keys[0]?.name ?? "…" }]
              : []),
            ...known.map(({ id, name }) => ({ value: id, label: name })),
          ]}
          onChange={(event) => setQuery({ of: event.currentTarget.value })}
        />
      </div>
      <Loaded of={numbers} skeleton={<Skeleton rows={2} height={160} />}>
        {(data) =>
          data.hits + data.misses === 0 ? (
            <EmptyState
              icon="chart"
              title={words.statistics.none}
              action={
                <ButtonLink look="solid" href={href("/images", inQuery(draft.value))}>
                  {words.statistics.open}
                </ButtonLink>
              }
              curl={`curl -s '${serviceUrl()}/api/cdn/stats?days=${days}' -H "Authorization: Bearer $KEY"`}
            >
              {words.statistics.noneBody}
            </EmptyState>
          ) : (
            <Shown data={data} days={Number(days)} />
          )
        }
      </Loaded>
      <Purge />
    </>
  );
}

const hitShare = ({ hits, misses }: Sums) => formatPercent(hits / Math.max(1, hits + misses), 1);

function Shown({ data, days }: { data: Numbers; days: number }) {
  const row = everyDay(data.days, days, new Date());
  const times = row.map(({ at }) => at);
  return (
    <>
      <dl class="card delivery-sums">
        {[
          [words.statistics.deliveries, formatNumber(data.hits + data.misses)],
          [words.statistics.hits, hitShare(data)],
          [words.statistics.bytes, formatBytes(data.bytes)],
        ].map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd class="numeric">{value}</dd>
          </div>
        ))}
      </dl>
      <div class="columns">
        <div class="card">
          <Chart
            title={words.statistics.chart}
            times={times}
            series={[
              {
                label: words.statistics.deliveries,
                values: row.map(({ hits, misses }) => hits + misses),
                tone: "accent",
              },
              { label: words.statistics.misses, values: row.map(({ misses }) => misses), tone: "warn" },
            ]}
            format={formatCompact}
            bars
          />
        </div>
        <div class="card">
          <Chart
            title={words.statistics.bytesChart}
            times={times}
            series={[
              { label: words.statistics.bytes, values: row.map(({ bytes }) => bytes), tone: "accent" },
            ]}
            format={formatBytes}
            bars
          />
        </div>
      </div>
      <Section title={words.statistics.byKey}>
        {data.keys.length > 0 ? <Keys keys={data.keys} /> : <p class="soft">{words.statistics.noKeys}</p>}
        <p class="soft small">{words.statistics.before}</p>
      </Section>
    </>
  );
}

function Keys({ keys }: { keys: Numbers["keys"] }) {
  return (
    <table class="table table-dense table-cards">
      <thead>
        <tr>
          <th scope="col">{words.statistics.key}</th>
          <th scope="col" class="end">
            {words.statistics.deliveries}
          </th>
          <th scope="col" class="end">
            {words.statistics.hits}
          </th>
          <th scope="col" class="end">
            {words.statistics.bytes}
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <tr key={key.id}>
            <th scope="row">
              <a
                href={href("/images/statistics", { of: key.id, days: query.value.get("days") ?? undefined })}
              >
                <Name>{key.name}</Name>
              </a>{" "}
              {key.isRevoked && <Badge>{words.statistics.revoked}</Badge>}
            </th>
            <td data-label={words.statistics.deliveries} class="end numeric">
              {formatNumber(key.hits + key.misses)}
            </td>
            <td data-label={words.statistics.hits} class="end numeric">
              {hitShare(key)}
            </td>
            <td data-label={words.statistics.bytes} class="end numeric">
              {formatBytes(key.bytes)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
