/** What the account has used of its plan. */
import { formatBytes, formatDate, formatNumber } from "../../parts/format";
import { Section } from "../../parts/page";
import { Meter } from "../../parts/states";
import { href } from "../../router";
import type { Usage } from "./types";
import { words } from "./words";

export function Month({ usage }: { usage: Usage }) {
  const { operations, deliveries, storage } = usage;
  return (
    <Section
      title={words.month.title}
      actions={
        <a class="small" href={href("/settings/usage")}>
          {words.month.details}
        </a>
      }
    >
      <Meter
        label={words.month.operations}
        value={operations.used}
        limit={operations.limit}
        format={formatNumber}
      />
      <Meter
        label={words.month.deliveries}
        value={deliveries.used}
        limit={deliveries.limit}
        format={formatNumber}
      />
      <Meter
        label={words.month.storage}
        value={storage.usedBytes}
        limit={storage.limitBytes}
        format={formatBytes}
        note={words.month.files(storage.files)}
      />
      {operations.limit !== null && (
        <p class="soft small">{words.month.resets(formatDate(new Date(operations.resetsAt)))}</p>
      )}
    </Section>
  );
}
