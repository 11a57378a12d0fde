/** The disk under the data folder, what fills it, and the object store. */
import { formatBytes, formatPercent } from "../../parts/format";
import { Section } from "../../parts/page";
import { Callout, Loaded, Meter, Skeleton } from "../../parts/states";
import { Ago, Bytes, Num } from "../../parts/values";
import { isDiskLow } from "./model";
import { Objects } from "./objects";
import type { System } from "./types";
import { useSystem } from "./use_system";
import { words as all } from "./words";

const words = all.storage;

export function Storage() {
  const system = useSystem();
  return (
    <Loaded of={system} skeleton={<Skeleton rows={4} height={72} />}>
      {({ disk, objects }) => (
        <div class="stack system-stack">
          <Disk of={disk} />
          <Kinds of={disk} />
          <Objects of={objects} />
        </div>
      )}
    </Loaded>
  );
}

function Disk({ of }: { of: System["disk"] }) {
  const { total, free, minFree } = of;
  if (total === null || free === null) return <Callout tone="bad" title={words.unknown} />;
  const minimum = formatBytes(minFree ?? 0);
  return (
    <Section title={words.disk}>
      {isDiskLow(of) && <Callout tone="bad" title={words.low(minimum)} />}
      <Meter
        label={words.used}
        value={total - free}
        limit={total}
        format={formatBytes}
        note={isDiskLow(of) ? undefined : words.above(minimum)}
      />
      <p>
        <Bytes value={free} /> <span class="soft">free · </span>
        <code class="system-path">{of.dataDir}</code>
      </p>
    </Section>
  );
}

function Kinds({ of }: { of: System["disk"] }) {
  const sum = of.kinds.reduce((bytes, kind) => bytes + kind.bytes, 0);
  return (
    <Section title={words.kinds}>
      {!of.measuredAt && <p class="soft">{words.none}</p>}
      {of.measuredAt && !of.complete && <Callout tone="warn" title={words.incomplete} />}
      {of.measuredAt && (
        <>
          <table class="table table-cards">
            <thead>
              <tr>
                <th scope="col">{words.kind}</th>
                <th scope="col" class="end">
                  {words.size}
                </th>
                <th scope="col">{words.share}</th>
                <th scope="col" class="end">
                  {words.files}
                </th>
              </tr>
            </thead>
            <tbody>
              {of.kinds.map(({ kind, bytes, files }) => (
                <tr key={kind}>
                  <th scope="row" class="system-capital">
                    {kind}
                  </th>
                  <td class="end" data-label={words.size}>
                    <Bytes value={bytes} />
                  </td>
                  <td data-label={words.share}>
                    <span class="system-share">
                      <meter min={0} max={sum || 1} value={bytes} aria-label={`${words.share}: ${kind}`} />
                      <span class="numeric soft small">{formatPercent(sum ? bytes / sum : 0)}</span>
                    </span>
                  </td>
                  <td class="end" data-label={words.files}>
                    <Num value={files} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="soft small">
            {words.measured} <Ago at={of.measuredAt} />
          </p>
        </>
      )}
    </Section>
  );
}
