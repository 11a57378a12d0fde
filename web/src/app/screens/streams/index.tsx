/** Every video stream: status, progress, place in the queue. */
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { asApiError } from "../../api/error";
import { usePages } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Select } from "../../parts/form";
import { formatDuration } from "../../parts/format";
import { Page } from "../../parts/page";
import { Badge, EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { href, query, setQuery } from "../../router";
import { toast } from "../../shell/toasts";
import { StreamPoster, StreamStatus } from "../shared/stream_parts";
import type { Stream, StreamList } from "../shared/stream_types";
import { words } from "./words";

const PAGE = 50;

async function make(fileId?: string) {
  const { newStream } = await import("./new_stream");
  if (!fileId) return newStream();
  const { file } = await api.get<{ file: Parameters<typeof newStream>[0] }>(
    `/api/files/${encodeURIComponent(fileId)}`,
  );
  newStream(file);
}

export default function Streams() {
  const status = query.value.get("status") ?? "";
  const streams = usePages<Stream>(
    async (cursor, signal) => {
      const answer = await api.get<StreamList>("/api/video/streams", {
        query: { status, cursor, limit: PAGE },
        signal,
      });
      return { items: answer.streams, next: answer.nextCursor };
    },
    status,
    ["stream"],
  );
  const asked = query.value.get("new");
  const file = query.value.get("file");
  useEffect(() => {
    if (asked === null) return;
    setQuery({ new: undefined, file: undefined });
    if (can("write")) make(file ?? undefined).catch((thrown) => toast(asApiError(thrown).message, "bad"));
  }, [asked]);
  const button = can("write") && (
    <Button look="solid" icon="plus" action={() => make()}>
      {words.new}
    </Button>
  );
  return (
    <Page title={words.title} actions={button}>
      <Loaded of={streams} skeleton={<Skeleton rows={5} height={68} />}>
        {({ items, hasMore }) =>
          items.length === 0 && !status ? (
            <EmptyState
              icon="video"
              title={words.empty.title}
              action={button}
              curl={`curl -s '${serviceUrl()}/api/video/streams' \\\n  -H "Authorization: Bearer $KEY" --json '{"sourceFileId": "…"}'`}
              guide={{ href: "/guides/video-streams", label: words.empty.guide }}
            >
              {can("write") ? words.empty.body : words.empty.viewer}
            </EmptyState>
          ) : (
            <>
              <div class="toolbar">
                <Select
                  label={words.status}
                  hiddenLabel
                  name="status"
                  value={status}
                  choices={[
                    { value: "", label: words.all },
                    ...Object.entries(words.statuses).map(([value, label]) => ({ value, label })),
                  ]}
                  onChange={(event) => setQuery({ status: event.currentTarget.value || undefined })}
                />
              </div>
              {items.length === 0 ? (
                <p class="soft">{words.none}</p>
              ) : (
                <section class="card" aria-label={words.list}>
                  <ul class="rows stream-list">
                    {items.map((stream) => (
                      <Row key={stream.id} stream={stream} />
                    ))}
                  </ul>
                </section>
              )}
              {hasMore && (
                <div class="actions">
                  <Button onClick={streams.more}>{words.more}</Button>
                </div>
              )}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Row({ stream }: { stream: Stream }) {
  const { id, title, duration, height, width, renditions, captions, access, allowedDomains } = stream;
  const facts = [
    duration !== null ? formatDuration(duration * 1_000) : "",
    width && height ? `${width} × ${height}` : "",
    renditions.length > 0 ? words.renditions(renditions.length) : "",
    captions.length > 0 ? words.captions(captions.length) : "",
  ];
  return (
    <li>
      <StreamPoster stream={stream} />
      <span class="grow stream-cell">
        <a class="one-line" href={href(`/streams/${id}`)}>
          <Name>{title}</Name>
        </a>
        <span class="soft small numeric">
          {facts.filter(Boolean).join(" · ")} {access === "signed" && <Badge>{words.signed}</Badge>}{" "}
          {allowedDomains.length > 0 && <Badge>{words.domains(allowedDomains.length)}</Badge>}
        </span>
        {stream.error && <span class="small stream-error">{stream.error}</span>}
      </span>
      <span class="stream-when soft small">
        <Ago at={stream.createdAt} />
      </span>
      <StreamStatus stream={stream} />
    </li>
  );
}
