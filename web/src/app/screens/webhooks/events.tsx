/** The feed: every event, the newest first. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Time } from "../../parts/values";
import { href } from "../../router";
import type { FeedEvent } from "./types";
import { words } from "./words";

interface EventPage {
  events: FeedEvent[];
  nextCursor: string | null;
}

const PAGE = 50;

export function Events() {
  const [pages, setPages] = useState(1);
  const feed = useResource(
    async (signal) => {
      const events: FeedEvent[] = [];
      let before: string | null = null;
      for (let page = 0; page < pages; page++) {
        const answer: EventPage = await api.get<EventPage>("/api/events", {
          query: { order: "desc", limit: PAGE, before: before ?? undefined },
          signal,
        });
        events.push(...answer.events);
        before = answer.nextCursor;
        if (!before) break;
      }
      return { events, hasMore: before !== null };
    },
    [pages],
    { on: ["event"], keep: true },
  );
  return (
    <Loaded of={feed} skeleton={<Skeleton rows={6} height={44} />}>
      {({ events, hasMore }) =>
        events.length === 0 ? (
          <EmptyState
            icon="clock"
            title={words.events.emptyTitle}
            curl={`curl -s '${location.origin}/api/events' -H "Authorization: Bearer $KEY"`}
          >
            {words.events.empty}
          </EmptyState>
        ) : (
          <>
            <div class="card">
              <ul class="rows">
                {events.map((event) => (
                  <li key={event.id}>
                    <details class="grow webhook-event">
                      <summary>
                        <code>{event.type}</code>{" "}
                        <span class="soft small">
                          <Time at={new Date(event.created * 1_000).toISOString()} />
                        </span>
                      </summary>
                      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls is reached by keyboard */}
                      <pre tabIndex={0}>{JSON.stringify(event.data, null, 2)}</pre>
                      <a href={href(`/webhooks/deliveries?event=${event.id}`)}>{words.events.deliveries}</a>
                    </details>
                  </li>
                ))}
              </ul>
            </div>
            {hasMore && <Button onClick={() => setPages(pages + 1)}>{words.more}</Button>}
          </>
        )
      }
    </Loaded>
  );
}
