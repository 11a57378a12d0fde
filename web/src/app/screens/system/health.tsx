/** What is not well, the version, components, listeners, the database. */
import { Section } from "../../parts/page";
import { Badge, Callout, Loaded, Skeleton, type Tone } from "../../parts/states";
import { Bytes, Num, Since, Time } from "../../parts/values";
import { href } from "../../router";
import { withProtocol } from "./model";
import type { System } from "./types";
import { useSystem } from "./use_system";
import { words as all } from "./words";

const words = all.health;

export function Health() {
  const system = useSystem();
  return (
    <Loaded of={system} skeleton={<Skeleton rows={5} height={72} />}>
      {(data) => (
        <div class="stack system-stack">
          <Reasons of={data} />
          <div class="columns">
            <Program of={data} />
            <Database of={data.database} />
          </div>
          <div class="columns">
            <Components of={data.components} />
            <Listeners of={data.listeners} />
          </div>
        </div>
      )}
    </Loaded>
  );
}

function Reasons({ of }: { of: System }) {
  return (
    <div class="stack" role="status">
      {of.newerProgram && (
        <Callout tone="info" title={words.newer(of.newerProgram.version)}>
          <p>{of.database.newerSchemaWaits ? words.newerSchema : words.newerNote}</p>
        </Callout>
      )}
      {of.reasons.length === 0 ? (
        <Callout tone="good" title={words.well}>
          <p>{words.wellNote}</p>
        </Callout>
      ) : (
        of.reasons.map(({ name, reason, blocking }) => (
          <Callout
            key={`${name}/${reason}`}
            tone={blocking ? "bad" : "warn"}
            title={<span class="system-capital">{name}</span>}
          >
            <p>{reason}</p>
          </Callout>
        ))
      )}
    </div>
  );
}

const STAGES: Record<string, Tone> = { ready: "good", starting: "info", draining: "warn" };

function Program({ of }: { of: System }) {
  return (
    <Section title={words.state}>
      <dl class="facts">
        <dt>{words.stage}</dt>
        <dd>
          <Badge tone={STAGES[of.stage] ?? "calm"} dot>
            {of.stage}
          </Badge>
        </dd>
        <dt>{words.version}</dt>
        <dd>
          {of.version} <span class="soft">({of.build})</span>
        </dd>
        <dt>{words.started}</dt>
        <dd>
          <Time at={of.startedAt} /> <span class="soft">· </span>
          <span class="soft">
            <Since at={of.startedAt} />
          </span>
        </dd>
        <dt>{words.onAir}</dt>
        <dd>
          <a href={href("/live")}>{words.inputs(of.onAir.inputs)}</a>
          <span class="soft"> · {words.watching(String(of.onAir.viewers))}</span>
        </dd>
      </dl>
    </Section>
  );
}

function Database({ of }: { of: System["database"] }) {
  return (
    <Section title={words.database}>
      {of.failure && (
        <Callout tone="bad" title={words.failing}>
          <p>{of.failure}</p>
        </Callout>
      )}
      <dl class="facts">
        <dt>{words.engine}</dt>
        <dd>{words.engines[of.engine] ?? of.engine}</dd>
        <dt>{words.size}</dt>
        <dd>
          <Bytes value={of.bytes} />
        </dd>
        <dt>{words.schema}</dt>
        <dd class="numeric">{of.schema}</dd>
        <dt>{words.writeWait}</dt>
        <dd>
          <Num value={of.writerWaitMs} /> ms
        </dd>
      </dl>
    </Section>
  );
}

function Components({ of }: { of: System["components"] }) {
  return (
    <Section title={words.components}>
      <table class="table table-dense table-cards">
        <thead>
          <tr>
            <th scope="col">{all.name}</th>
            <th scope="col">{all.state}</th>
            <th scope="col" class="end">
              {words.restarts}
            </th>
          </tr>
        </thead>
        <tbody>
          {of.map((component) => (
            <tr key={component.name}>
              <th scope="row">
                {component.name}
                {component.reason && <span class="system-reason">{component.reason}</span>}
              </th>
              <td data-label={all.state}>
                <Badge tone={component.state === "running" ? "good" : "bad"} dot>
                  {component.state === "running" ? words.running : words.pending}
                </Badge>
              </td>
              <td class="end" data-label={words.restarts}>
                <Num value={component.restarts} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Listeners({ of }: { of: System["listeners"] }) {
  return (
    <Section title={words.listeners}>
      <table class="table table-dense table-cards">
        <thead>
          <tr>
            <th scope="col">{words.protocol}</th>
            <th scope="col">{words.address}</th>
            <th scope="col">{all.state}</th>
          </tr>
        </thead>
        <tbody>
          {of.map(({ protocol, transport, address, open }) => (
            <tr key={`${protocol}/${transport}`}>
              <th scope="row">
                {withProtocol(protocol)} <span class="soft">{transport.toUpperCase()}</span>
              </th>
              <td data-label={words.address}>{address ? <code>{address}</code> : "–"}</td>
              <td data-label={all.state}>
                <Badge tone={open ? "good" : address ? "bad" : "calm"} dot>
                  {open ? words.open : address ? words.closed : words.off}
                </Badge>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}
