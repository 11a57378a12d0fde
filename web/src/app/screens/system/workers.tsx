/** Worker processes with their queues, and work that waits in the database. */

import { formatDuration } from "../../parts/format";
import { Section } from "../../parts/page";
import { Badge, Callout, Loaded, Skeleton } from "../../parts/states";
import { Num } from "../../parts/values";
import type { System, Worker } from "./types";
import { useSystem } from "./use_system";
import { words as all } from "./words";

const words = all.workers;

export function Workers() {
  const system = useSystem();
  return (
    <Loaded of={system} skeleton={<Skeleton rows={5} height={72} />}>
      {({ workers, queues }) => (
        <div class="stack system-stack">
          {workers.map(
            ({ kind, reason }) =>
              reason && (
                <Callout key={kind} tone="bad" title={words.names[kind] ?? kind}>
                  <p>{reason}</p>
                </Callout>
              ),
          )}
          <Section title={words.workers}>
            <WorkerTable of={workers} />
            <p class="soft small">{words.note}</p>
          </Section>
          <Section title={words.queues}>
            <QueueTable of={queues} />
          </Section>
        </div>
      )}
    </Loaded>
  );
}

function WorkerTable({ of }: { of: Worker[] }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.kind}</th>
          <th scope="col">{words.running}</th>
          <th scope="col">{words.busy}</th>
          <th scope="col">{words.waiting}</th>
          <th scope="col">{words.oldest}</th>
          <th scope="col">{words.killed}</th>
          <th scope="col">{words.died}</th>
        </tr>
      </thead>
      <tbody>
        {of.map((worker) => (
          <tr key={worker.kind}>
            <th scope="row">{words.names[worker.kind] ?? worker.kind}</th>
            <td class="numeric" data-label={words.running}>
              {words.of(worker.running, worker.most)}
            </td>
            <td data-label={words.busy}>
              <Num value={worker.busy} />
            </td>
            <td data-label={words.waiting}>
              <Num value={worker.waiting} />
            </td>
            <td class="numeric" data-label={words.oldest}>
              {worker.waiting > 0 ? formatDuration(worker.oldestWaitMs) : "–"}
            </td>
            <td data-label={words.killed}>
              <Num value={worker.killed} />
            </td>
            <td data-label={words.died}>
              {worker.died > 0 ? <Badge tone="warn">{worker.died}</Badge> : <Num value={0} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function QueueTable({ of }: { of: System["queues"] }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{all.name}</th>
          <th scope="col" class="end">
            {words.running}
          </th>
          <th scope="col" class="end">
            {words.waiting}
          </th>
        </tr>
      </thead>
      <tbody>
        {of.map(({ name, running, waiting }) => (
          <tr key={name}>
            <th scope="row" class="system-capital">
              {name}
            </th>
            <td class="end" data-label={words.running}>
              <Num value={running} />
            </td>
            <td class="end" data-label={words.waiting}>
              <Num value={waiting} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
