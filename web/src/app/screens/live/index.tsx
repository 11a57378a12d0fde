/** Every live input: what is on air, with poster, status and viewers. */
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { api } from "../../api/client";
import { useResource, useRevision } from "../../api/resource";
import { can } from "../../api/session";
import { Button } from "../../parts/button";
import { Select } from "../../parts/form";
import { formatNumber } from "../../parts/format";
import { Page } from "../../parts/page";
import { SearchField } from "../../parts/search";
import { Badge, EmptyState, Loaded, Skeleton } from "../../parts/states";
import { Ago, Name } from "../../parts/values";
import { VirtualList } from "../../parts/virtual_list";
import { go, href, query, setQuery } from "../../router";
import { useKeyHelp } from "../../shell/shortcuts";
import { LivePoster, LiveStatus } from "../shared/live_parts";
import type { LiveInput, LiveInputs } from "../shared/live_types";
import { newInput } from "./new_input";
import { words } from "./words";

const PAGE = 50;
const ROW_HEIGHT = 68;
/** Interval at which viewers are counted again while something is on air: their coming and going is no change of an input. */
const COUNT_EVERY_MS = 5_000;
const KEYS = [
  { keys: ["↑", "↓"], does: "Move in the list" },
  { keys: ["Enter"], does: "Open the input" },
];

export default function Live() {
  const search = query.value;
  const sort = search.get("sort") ?? "lastLive:desc";
  const filter = { q: search.get("q") ?? "", status: search.get("status") ?? "" };
  const [by, order] = (sort in words.sorts ? sort : "lastLive:desc").split(":");
  const key = `${sort}|${filter.status}|${filter.q}`;
  const load = (offset: number, limit: number, signal?: AbortSignal) =>
    api.get<LiveInputs>("/api/live/inputs", {
      query: {
        q: filter.q || undefined,
        status: filter.status || undefined,
        sort: by,
        order,
        limit,
        offset,
      },
      signal,
    });
  const first = useResource((signal) => load(0, PAGE, signal), [key], { on: ["live_input"], keep: true });
  const revision = useRevision(first.data);
  const isOnAir = Boolean(first.data && first.data.counts.live + first.data.counts.reconnecting > 0);
  useEffect(() => {
    if (!isOnAir) return;
    const counting = setInterval(() => document.hidden || first.reload(), COUNT_EVERY_MS);
    return () => clearInterval(counting);
  }, [isOnAir, first.reload]);
  useKeyHelp(KEYS);
  const isAsked = search.get("new") !== null;
  useEffect(() => {
    if (!isAsked) return;
    setQuery({ new: undefined });
    if (can("write")) newInput();
  }, [isAsked]);

  const counts = first.data?.counts;
  return (
    <Page
      full
      title={words.title}
      aside={
        counts && counts.total > 0 ? (
          <span class="numeric">{words.counts(counts.live + counts.reconnecting, counts.total)}</span>
        ) : undefined
      }
      actions={
        can("write") && (
          <Button look="solid" icon="plus" onClick={newInput}>
            {words.new}
          </Button>
        )
      }
    >
      <Loaded of={first} skeleton={<Skeleton rows={6} height={ROW_HEIGHT} />}>
        {(data) =>
          data.counts.total === 0 && !filter.q ? (
            <EmptyState
              icon="live"
              title={words.empty.title}
              action={
                can("write") && (
                  <Button look="solid" icon="plus" onClick={newInput}>
                    {words.new}
                  </Button>
                )
              }
              curl={`curl -s '${serviceUrl()}/api/live/inputs' \\\n  -H "Authorization: Bearer $KEY" --json '{"name": "Main stage"}'`}
              guide={{ href: "/guides/obs", label: words.empty.guide }}
            >
              {words.empty.body}
            </EmptyState>
          ) : (
            <>
              <Toolbar q={filter.q} status={filter.status} sort={`${by}:${order}`} counts={data.counts} />
              {data.pagination.total === 0 ? (
                <p class="soft">{words.none}</p>
              ) : (
                <VirtualList<LiveInput>
                  label={words.list}
                  total={data.pagination.total}
                  rowHeight={ROW_HEIGHT}
                  pageSize={PAGE}
                  query={key}
                  revision={revision}
                  load={async (offset, limit, signal) => (await load(offset, limit, signal)).liveInputs}
                  onOpen={(input) => go(`/live/${input.id}`)}
                  onPointer={(event, input) => {
                    if (!(event.target as Element).closest("a")) go(`/live/${input.id}`);
                  }}
                  class="live-list"
                >
                  {(input) => (input ? <Row input={input} /> : <span role="gridcell" class="live-row" />)}
                </VirtualList>
              )}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Row({ input }: { input: LiveInput }) {
  return (
    <>
      <span role="gridcell" class="live-cell-poster">
        <LivePoster input={input} />
      </span>
      <span role="gridcell" class="grow live-cell-name">
        <a class="one-line" href={href(`/live/${input.id}`)} tabIndex={-1}>
          <Name>{input.name}</Name>
        </a>
        <span class="soft small live-options">
          {input.pullUrl && <Badge>{words.pulled}</Badge>}
          {input.requireSignedPlayback && <Badge>{words.signed}</Badge>}
          {input.allowedDomains.length > 0 && <Badge>{words.domains(input.allowedDomains.length)}</Badge>}
          {input.recordMode === "automatic" && <Badge>{words.recorded}</Badge>}
        </span>
      </span>
      <span role="gridcell" class="live-cell-last soft small">
        {input.status === "idle" &&
          (input.lastEndedAt || input.lastStartedAt ? (
            <Ago at={input.lastEndedAt ?? input.lastStartedAt ?? ""} />
          ) : (
            words.never
          ))}
        {input.status !== "idle" && input.viewers !== null && (
          <span class="numeric">{words.viewers(input.viewers)}</span>
        )}
      </span>
      <span role="gridcell" class="live-cell-status">
        <LiveStatus input={input} />
      </span>
    </>
  );
}

interface ToolbarProps {
  q: string;
  status: string;
  sort: string;
  counts: LiveInputs["counts"];
}

function Toolbar({ q, status, sort, counts }: ToolbarProps) {
  const choices = [
    { value: "", label: `${words.all} (${formatNumber(counts.total)})` },
    ...(["live", "reconnecting", "idle"] as const).map((value) => ({
      value,
      label: `${words.statuses[value]} (${formatNumber(counts[value])})`,
    })),
  ];
  return (
    <div class="toolbar" role="search">
      <SearchField label={words.search} value={q} maxLength={120} />
      <Select
        label={words.status}
        hiddenLabel
        name="status"
        value={status}
        choices={choices}
        onChange={(event) => setQuery({ status: event.currentTarget.value || undefined })}
      />
      <Select
        label={words.sort}
        hiddenLabel
        name="sort"
        value={sort}
        choices={Object.entries(words.sorts).map(([value, label]) => ({ value, label }))}
        onChange={(event) => setQuery({ sort: event.currentTarget.value })}
      />
    </div>
  );
}
