/** Operations and deliveries by day, by kind and by key. */
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Chart } from "../../parts/chart";
import { formatBytes, formatNumber, formatPercent } from "../../parts/format";
import { Section } from "../../parts/page";
import { Badge, Loaded, Skeleton } from "../../parts/states";
import { Segmented } from "../../parts/tabs";
import { Name } from "../../parts/values";
import { query, setQuery } from "../../router";
import type { History, KeyTotal } from "./types";
import { words } from "./words";

const PERIODS = ["7", "30", "90", "365"] as const;
type Period = (typeof PERIODS)[number];

export function UsageHistory() {
  const asked = query.value.get("days") as Period;
  const days = PERIODS.includes(asked) ? asked : "30";
  const history = useResource(
    (signal) => api.get<History>("/api/usage/history", { query: { days }, signal }),
    [days],
    { on: ["usage"], keep: true },
  );
  return (
    <Section
      title={words.history}
      actions={
        <Segmented
          label={words.days}
          value={days}
          choices={PERIODS.map((value) => ({ value, label: words.lastDays(Number(value)) }))}
          onChange={(value) => setQuery({ days: value === "30" ? undefined : value })}
        />
      }
    >
      <Loaded of={history} skeleton={<Skeleton rows={2} height={160} />}>
        {(data) => (
          <div class="stack">
            <Days data={data} />
            <div class="columns">
              <Kinds kinds={data.operations.kinds} />
              <Keys keys={data.deliveries.keys} />
            </div>
          </div>
        )}
      </Loaded>
    </Section>
  );
}

const seconds = (date: string) => Date.parse(`${date}T00:00:00Z`) / 1_000;

function Days({ data: { operations, deliveries } }: { data: History }) {
  return (
    <div class="columns">
      <Chart
        title={words.operationsChart}
        times={operations.days.map(({ date }) => seconds(date))}
        series={[
          { label: words.operations, values: operations.days.map(({ total }) => total), tone: "accent" },
        ]}
        format={formatNumber}
        bars
      />
      <Chart
        title={words.deliveriesChart}
        times={deliveries.days.map(({ date }) => seconds(date))}
        series={[
          { label: words.deliveries, values: deliveries.days.map(({ total }) => total), tone: "good" },
        ]}
        format={formatNumber}
        bars
      />
    </div>
  );
}

function Kinds({ kinds }: { kinds: History["operations"]["kinds"] }) {
  if (kinds.length === 0) return <p class="soft">{words.none}</p>;
  return (
    <table class="table table-dense">
      <caption class="visually-hidden">{words.kinds}</caption>
      <thead>
        <tr>
          <th scope="col">{words.kind}</th>
          <th scope="col" class="end">
            {words.count}
          </th>
        </tr>
      </thead>
      <tbody>
        {kinds.map(({ kind, total }) => (
          <tr key={kind}>
            <th scope="row">{kind}</th>
            <td class="end numeric">{formatNumber(total)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Keys({ keys }: { keys: KeyTotal[] }) {
  if (keys.length === 0) return <p class="soft">{words.none}</p>;
  return (
    <table class="table table-dense table-cards">
      <caption class="visually-hidden">{words.keys}</caption>
      <thead>
        <tr>
          <th scope="col">{words.key}</th>
          <th scope="col" class="end">
            {words.count}
          </th>
          <th scope="col" class="end">
            {words.hits}
          </th>
          <th scope="col" class="end">
            {words.bytes}
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map(({ id, name, isRevoked, hits, misses, bytes }) => (
          <tr key={id}>
            <th scope="row">
              <Name>{name}</Name> {isRevoked && <Badge>{words.revoked}</Badge>}
            </th>
            <td data-label={words.count} class="end numeric">
              {formatNumber(hits + misses)}
            </td>
            <td data-label={words.hits} class="end numeric">
              {formatPercent(hits / Math.max(1, hits + misses))}
            </td>
            <td data-label={words.bytes} class="end numeric">
              {formatBytes(bytes)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
