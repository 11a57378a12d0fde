/** One line: what it is, how far it is, and what can be done with it. */
import { Button } from "../../parts/button";
import { Menu } from "../../parts/menu";
import { Ago, Name } from "../../parts/values";
import { href } from "../../router";
import { curlItem } from "../../shell/curl_panel";
import { EntryIcon, EntryState } from "../shared/activity/entry_parts";
import type { Entry } from "../shared/activity/types";
import { useCurrent } from "../shared/activity/upload_progress";
import { activityWords } from "../shared/activity/words";
import { endWords } from "../shared/end_stream";
import { cancel, isCancellable, isRetryable, openEntry, retry } from "./acts";
import { words } from "./words";

export function Row({ entry: loaded }: { entry: Entry | undefined }) {
  const entry = useCurrent(loaded);
  if (!entry) return <span role="gridcell" class="skeleton-row activity-what" aria-label="…" />;
  const note = entry.error ?? [activityWords.kinds[entry.kind], entry.note].filter(Boolean).join(" · ");
  return (
    <>
      <span role="gridcell" class="activity-what">
        <EntryIcon kind={entry.kind} />
        <span class="activity-text">
          {entry.to ? (
            <a class="one-line" href={href(entry.to)} tabIndex={-1}>
              <Name>{entry.title}</Name>
            </a>
          ) : (
            <Name class="one-line">{entry.title}</Name>
          )}
          <bdi class={`one-line small ${entry.error ? "field-error" : "soft"}`} title={note}>
            {note}
          </bdi>
        </span>
      </span>
      <span role="gridcell" class="activity-state">
        <EntryState entry={entry} />
      </span>
      <span role="gridcell" class="activity-time soft small">
        <Ago at={new Date(entry.at).toISOString()} />
      </span>
      <span role="gridcell" class="activity-acts">
        {isCancellable(entry) && (
          <Button
            small
            tabIndex={-1}
            aria-label={(entry.kind === "live" ? words.endWhat : words.cancelWhat)(entry.title)}
            action={() => cancel(entry)}
          >
            {entry.kind === "live" ? endWords.end : words.cancel}
          </Button>
        )}
        {isRetryable(entry) && (
          <Button small tabIndex={-1} aria-label={words.retryWhat(entry.title)} action={() => retry(entry)}>
            {words.retry}
          </Button>
        )}
      </span>
      <span role="gridcell" class="activity-more">
        <Menu
          small
          tabIndex={-1}
          label={words.actionsOf(entry.title)}
          items={[
            entry.to !== null && {
              label: words.open,
              icon: "right",
              onSelect: () => openEntry(entry),
            },
            curlItem,
          ]}
        />
      </span>
    </>
  );
}
