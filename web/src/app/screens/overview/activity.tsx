/** What is in progress, and what happened last. */
import { useEffect, useState } from "preact/hooks";
import { onChanges } from "../../api/changes";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Icon, type IconName } from "../../parts/icon";
import { Section } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import { Ago } from "../../parts/values";
import type { FeedEvent } from "./types";
import { eventWords, words } from "./words";

const EVENTS_SHOWN = 8;
const ICONS: Record<string, IconName> = { good: "check", bad: "error", live: "live", calm: "info" };

export function Activity() {
  const feed = useResource(
    (signal) =>
      api.get<{ events: FeedEvent[] }>("/api/events", {
        query: { order: "desc", limit: EVENTS_SHOWN },
        signal,
      }),
    [],
    { on: ["event"] },
  );
  const working = useProgress();
  return (
    <Section title={words.activity.title}>
      {working.length > 0 && (
        <ul class="rows small">
          {working.map((work) => (
            <li key={work.id}>
              <span class="grow">{words.activity[work.kind]}</span>
              {work.queuePlace !== null ? (
                <span class="soft">{words.activity.queued(work.queuePlace)}</span>
              ) : (
                <progress aria-label={words.activity[work.kind]} max={100} value={work.percent} />
              )}
            </li>
          ))}
        </ul>
      )}
      <Loaded of={feed} skeleton={<Skeleton rows={EVENTS_SHOWN} height={28} />}>
        {({ events }) =>
          events.length === 0 && working.length === 0 ? (
            <p class="soft">{words.activity.none}</p>
          ) : (
            <Feed events={events} />
          )
        }
      </Loaded>
    </Section>
  );
}

function Feed({ events }: { events: FeedEvent[] }) {
  return (
    <ul class="rows small">
      {events.map((event) => {
        const known = eventWords[event.type];
        const tone = known?.tone ?? "calm";
        return (
          <li key={event.id} class="feed-row">
            <Icon name={ICONS[tone] ?? "info"} class={`tone-${tone}`} />
            <bdi class="grow">{known ? known.say(event.data) : event.type}</bdi>
            <span class="soft">
              <Ago at={new Date(event.created * 1_000).toISOString()} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

interface Work {
  kind: "job" | "run" | "stream";
  id: string;
  percent: number;
  queuePlace: number | null;
}

/** Jobs, runs and streams that report progress in this moment. */
function useProgress(): Work[] {
  const [working, setWorking] = useState<Work[]>([]);
  useEffect(
    () =>
      onChanges(["job", "run", "stream"], (message) => {
        if (message.event === "resync") return setWorking([]);
        const { id } = message;
        setWorking((before) => {
          const others = before.filter((work) => work.id !== id);
          // A change of status without progress after it is an end.
          if (message.event === "change") return message.action === "created" ? before : others;
          return message.percent >= 100 ? others : [...others, message].slice(-5);
        });
      }),
    [],
  );
  return working;
}
