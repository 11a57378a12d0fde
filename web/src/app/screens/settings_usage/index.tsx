/** What the account has used of its plan, and how it came to it. */
import { address } from "../../api/base";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { formatBytes, formatDate, formatNumber } from "../../parts/format";
import { Page, Section } from "../../parts/page";
import { Loaded, Meter, Skeleton } from "../../parts/states";
import { SettingsTabs } from "../shared/settings_tabs";
import { UsageHistory } from "./history";
import type { Usage } from "./types";
import { words } from "./words";

export default function UsageScreen() {
  const usage = useResource((signal) => api.get<Usage>("/api/usage", { signal }), [], { on: ["usage"] });
  return (
    <Page title={words.title}>
      <SettingsTabs />
      <Loaded of={usage} skeleton={<Skeleton rows={4} height={72} />}>
        {(data) => (
          <div class="columns">
            <Month usage={data} />
            <Plan usage={data} />
          </div>
        )}
      </Loaded>
      <UsageHistory />
    </Page>
  );
}

function Month({ usage: { operations, deliveries, storage } }: { usage: Usage }) {
  return (
    <Section title={words.month}>
      <Meter
        label={words.operations}
        value={operations.used}
        limit={operations.limit}
        format={formatNumber}
      />
      <Meter
        label={words.deliveries}
        value={deliveries.used}
        limit={deliveries.limit}
        format={formatNumber}
      />
      <Meter
        label={words.storage}
        value={storage.usedBytes}
        limit={storage.limitBytes}
        format={formatBytes}
        note={words.files(storage.files)}
      />
      <p class="soft small">{words.resets(formatDate(new Date(operations.resetsAt)))}</p>
    </Section>
  );
}

function Plan({ usage: { plan, limits, operations, deliveries, storage, upgradeUrl } }: { usage: Usage }) {
  const bound = (value: number | null) => (value === null ? words.unlimited : formatNumber(value));
  const isHere = new URL(upgradeUrl, location.href).pathname.endsWith("/app/settings/usage");
  return (
    <Section
      title={words.plan(plan)}
      actions={
        <a class="small" href={address("/plans")}>
          {words.plans}
        </a>
      }
    >
      <dl class="facts">
        <dt>{words.operationsMonth}</dt>
        <dd>{bound(operations.limit)}</dd>
        <dt>{words.deliveriesMonth}</dt>
        <dd>{bound(deliveries.limit)}</dd>
        <dt>{words.storage}</dt>
        <dd>{storage.limitBytes === null ? words.disk : formatBytes(storage.limitBytes)}</dd>
        <dt>{words.perMinute}</dt>
        <dd>{bound(limits.requestsPerMinute)}</dd>
        <dt>{words.batch}</dt>
        <dd>{formatNumber(limits.filesPerBatch)}</dd>
        <dt>{words.image}</dt>
        <dd>{formatBytes(limits.imageUploadBytes)}</dd>
        <dt>{words.video}</dt>
        <dd>{formatBytes(limits.videoUploadBytes)}</dd>
      </dl>
      {!isHere && (
        <p>
          <a href={upgradeUrl}>{words.upgrade}</a>
        </p>
      )}
    </Section>
  );
}
