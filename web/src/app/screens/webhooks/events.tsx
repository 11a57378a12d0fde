/** The feed: every event, the newest first. */
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { usePages } from "../../api/resource";
import { Button } from "../../parts/button";
import { CodeBox } from "../../parts/code_box";
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
  const feed = usePages<FeedEvent>(
    async (before, signal) => {
      const query = { order: "desc", limit: PAGE, before };
      const { events, nextCursor } = await api.get<EventPage>("/api/events", { query, signal });
      return { items: events, next: nextCursor };
    },
    "events",
    ["event"],
  );
  return (
    <Loaded of={feed} skeleton={<Skeleton rows={6} height={44} />}>
      {({ items: events, hasMore }) =>
        events.length === 0 ? (
          <EmptyState
            icon="clock"
            title={words.events.emptyTitle}
            curl={`curl -s '${serviceUrl()}/api/events' -H "Authorization: Bearer $KEY"`}
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
                      <CodeBox label={words.events.data}>{JSON.stringify(event.data, null, 2)}</CodeBox>
                      <a href={href(`/webhooks/deliveries?event=${event.id}`)}>{words.events.deliveries}</a>
                    </details>
                  </li>
                ))}
              </ul>
            </div>
            {hasMore && <Button onClick={feed.more}>{words.more}</Button>}
          </>
        )
      }
    </Loaded>
  );
}
