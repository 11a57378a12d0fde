/** The object store: its place, why requests fail, requests by kind, the cache, the last search for objects without a row. */
import { formatBytes, formatPercent } from "../../parts/format";
import { Section } from "../../parts/page";
import { Badge, Callout } from "../../parts/states";
import { Ago, Bytes, Num } from "../../parts/values";
import { href } from "../../router";
import { hitShare, requestsByKind } from "./model";
import type { ObjectStore } from "./types";
import { words as all } from "./words";

const words = all.objects;

export function Objects({ of }: { of: ObjectStore | null }) {
  return (
    <Section title={words.title}>
      {of ? (
        <>
          <Failures of={of} />
          <Facts of={of} />
          <Requests of={of} />
          <p class="soft small">{words.note}</p>
        </>
      ) : (
        <p class="soft">{words.none}</p>
      )}
      <p>
        <a href={href("/guides/cluster")}>{words.guide}</a>
      </p>
    </Section>
  );
}

function Failures({ of: { failure, damaged } }: { of: ObjectStore }) {
  return (
    <>
      {failure !== null && (
        <Callout tone="bad" title={words.failing}>
          <p>{failure}</p>
          <p>{words.failingNote}</p>
        </Callout>
      )}
      {damaged > 0 && (
        <Callout tone="bad" title={words.damaged(damaged)}>
          <p>{words.damagedNote}</p>
        </Callout>
      )}
    </>
  );
}

function Facts({ of: { place, failure, cache, lastSearch } }: { of: ObjectStore }) {
  const share = hitShare(cache);
  return (
    <dl class="facts">
      <dt>{words.place}</dt>
      <dd>
        <code class="system-path">{place}</code>
      </dd>
      <dt>{all.state}</dt>
      <dd>
        <Badge tone={failure === null ? "good" : "bad"} dot>
          {failure === null ? words.well : words.fails}
        </Badge>
      </dd>
      <dt>{words.cache}</dt>
      <dd>
        <Bytes value={cache.bytes} /> <span class="soft">{words.bound(formatBytes(cache.bound))}</span>
      </dd>
      <dt>{words.reads}</dt>
      <dd>
        {share === undefined ? (
          <span class="soft">{words.noReads}</span>
        ) : (
          <>
            <span class="numeric">{formatPercent(share)}</span>{" "}
            <span class="soft">
              (<Num value={cache.hits} /> of <Num value={cache.hits + cache.misses} />)
            </span>
          </>
        )}
      </dd>
      <dt>{words.search}</dt>
      <dd>
        {lastSearch === null ? (
          <span class="soft">{words.noSearch}</span>
        ) : (
          <>
            <Ago at={lastSearch.at} />: <Num value={lastSearch.deleted} /> {words.deleted}
          </>
        )}
      </dd>
    </dl>
  );
}

function Requests({ of }: { of: ObjectStore }) {
  return (
    <table class="table table-cards">
      <thead>
        <tr>
          <th scope="col">{words.kind}</th>
          <th scope="col" class="end">
            {words.requests}
          </th>
          <th scope="col" class="end">
            {words.failures}
          </th>
          <th scope="col" class="end">
            {words.bytes}
          </th>
        </tr>
      </thead>
      <tbody>
        {requestsByKind(of).map(({ kind, requests, failures, bytes }) => (
          <tr key={kind}>
            <th scope="row">{words.kinds[kind]}</th>
            <td class="end" data-label={words.requests}>
              <Num value={requests} />
            </td>
            <td class="end" data-label={words.failures}>
              {failures > 0 ? <Badge tone="warn">{failures}</Badge> : <Num value={0} />}
            </td>
            <td class="end" data-label={words.bytes}>
              <Bytes value={bytes} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
