/** What is in progress, and what happened last. */
import { Section } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { Ago } from "../../parts/values";
import { href } from "../../router";
import { EntryIcon, EntryState } from "../shared/activity/entry_parts";
import { recentActivity } from "../shared/activity/sources";
import type { Entry } from "../shared/activity/types";
import { useCurrent } from "../shared/activity/upload_progress";
import { useMerged } from "../shared/activity/use_merged";
import { words } from "./words";

const SHOWN = 8;

export function Activity() {
  const list = useMerged(() => recentActivity(SHOWN), "recent", SHOWN);
  return (
    <Section
      title={words.activity.title}
      actions={
        <a class="small" href={href("/activity")}>
          {words.activity.all}
        </a>
      }
    >
      <Loaded of={list.first} skeleton={<Skeleton rows={SHOWN} height={28} />}>
        {(entries) =>
          entries.length === 0 ? (
            <p class="soft">{words.activity.none}</p>
          ) : (
            <ul class="rows small">
              {entries.slice(0, SHOWN).map((entry) => (
                <Line key={entry.id} entry={entry} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function Line({ entry: loaded }: { entry: Entry }) {
  const entry = useCurrent(loaded);
  const { kind, state, title, note, error, to } = entry;
  return (
    <li class="feed-row">
      <EntryIcon kind={kind} />
      <span class="grow">
        {to ? (
          <a href={href(to)}>
            <bdi>{title}</bdi>
          </a>
        ) : (
          <bdi>{title}</bdi>
        )}
        {(error ?? note) && <bdi class={`feed-note ${error ? "field-error" : "soft"}`}>{error ?? note}</bdi>}
      </span>
      {state !== "done" && <EntryState entry={entry} />}
      <span class="soft feed-time">
        <Ago at={new Date(entry.at).toISOString()} />
      </span>
    </li>
  );
}
