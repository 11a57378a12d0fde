/** Jobs, workflow runs, video streams, live streams, recordings and uploads in one list, newest first. */
import { useEffect } from "preact/hooks";
import { serviceUrl } from "../../api/base";
import { can } from "../../api/session";
import { Button, ButtonLink } from "../../parts/button";
import { formatDateTime } from "../../parts/format";
import { useMedia } from "../../parts/media";
import { Page } from "../../parts/page";
import { EmptyState, Loaded, Skeleton } from "../../parts/states";
import { VirtualList } from "../../parts/virtual_list";
import { href, query, setQuery } from "../../router";
import { useKeyHelp } from "../../shell/shortcuts";
import { activityOf, PAGE } from "../shared/activity/sources";
import { type Entry, type EntryKind, type Filter, KINDS } from "../shared/activity/types";
import { useMerged } from "../shared/activity/use_merged";
import { cancel, isCancellable, isRetryable, openEntry, retry } from "./acts";
import { Row } from "./row";
import { Toolbar } from "./toolbar";
import { words } from "./words";

const KEYS = [
  { keys: ["↑", "↓"], does: words.keys.move },
  { keys: ["Enter"], does: words.keys.open },
  { keys: ["Delete"], does: words.keys.cancel },
  { keys: ["R"], does: words.keys.retry },
  { keys: ["/"], does: words.keys.search },
];
const ROW_PX = 56;
const PHONE_ROW_PX = 96;

export default function Activity() {
  const search = query.value;
  const span = search.get("since") ?? "";
  const key = ["kind", "state", "since", "q"].map((name) => search.get(name) ?? "").join("|");
  const list = useMerged(() => activityOf(filterOf(search)), key, PAGE);
  const isPhone = useMedia("(max-width: 40rem)");
  useKeyHelp(KEYS);
  useAskedJob(search.get("job"));
  const isFiltered = key !== "|||";
  return (
    <Page full title={words.title}>
      <Toolbar
        q={search.get("q") ?? ""}
        kind={search.get("kind") ?? ""}
        state={search.get("state") ?? ""}
        since={span}
      />
      <Loaded of={list.first} skeleton={<Skeleton rows={8} height={ROW_PX} />}>
        {() => (
          <>
            {list.total > 0 && (
              <VirtualList<Entry>
                label={words.list}
                total={list.total}
                rowHeight={isPhone ? PHONE_ROW_PX : ROW_PX}
                pageSize={PAGE}
                query={key}
                revision={list.revision}
                load={list.load}
                onOpen={openEntry}
                onPointer={(event, entry) => {
                  if (!(event.target as Element).closest("a, button, [popover]")) openEntry(entry);
                }}
                onKey={onKey}
                class="activity-list"
                head={
                  <>
                    <span role="columnheader">{words.columns.what}</span>
                    <span role="columnheader">{words.columns.state}</span>
                    <span role="columnheader">{words.columns.time}</span>
                    <span role="columnheader">
                      <span class="visually-hidden">{words.columns.acts}</span>
                    </span>
                    <span role="columnheader">
                      <span class="visually-hidden">{words.columns.more}</span>
                    </span>
                  </>
                }
              >
                {(entry) => <Row entry={entry} />}
              </VirtualList>
            )}
            {list.total === 0 && list.isComplete && !isFiltered && <Nothing />}
            {list.total === 0 && list.isComplete && isFiltered && (
              <div class="actions">
                <p class="soft">{words.none}</p>
                <Button small onClick={showAll}>
                  {words.clear}
                </Button>
              </div>
            )}
            {list.isPaused && (
              <div class="actions" role="status">
                <span class="soft">
                  {list.reached !== null && words.reached(formatDateTime(new Date(list.reached)))}
                </span>
                <Button small action={list.further}>
                  {words.further}
                </Button>
              </div>
            )}
            {list.isFull && <p class="soft">{words.full}</p>}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function filterOf(search: URLSearchParams): Filter {
  const kind = search.get("kind");
  const state = search.get("state") ?? "";
  const span = Number(search.get("since"));
  return {
    kinds: KINDS.includes(kind as EntryKind) ? [kind as EntryKind] : [...KINDS],
    state: (state in words.states ? state : "") as Filter["state"],
    since: span > 0 ? Date.now() - span * 1_000 : undefined,
    q: (search.get("q") ?? "").trim(),
  };
}

/** The address may name a job, whose results have no screen of their own. */
function useAskedJob(id: string | null) {
  useEffect(() => {
    if (!id) return;
    setQuery({ job: undefined });
    import("./job").then(({ openJob }) => openJob(id));
  }, [id]);
}

function onKey(event: KeyboardEvent, entry: Entry | undefined) {
  const key = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "/") document.getElementById("activity-search")?.focus();
  else if (key === "delete" && entry && isCancellable(entry)) void cancel(entry);
  else if (key === "r" && entry && isRetryable(entry)) void retry(entry);
  else return;
  event.preventDefault();
}

function showAll() {
  setQuery({ kind: undefined, state: undefined, since: undefined, q: undefined });
}

function Nothing() {
  return (
    <EmptyState
      icon="clock"
      title={words.empty.title}
      action={
        can("write") && (
          <ButtonLink look="solid" icon="upload" href={href("/files", { new: "upload" })}>
            {words.empty.action}
          </ButtonLink>
        )
      }
      curl={`curl -s '${serviceUrl()}/api/jobs' -H "Authorization: Bearer $KEY"`}
      guide={{ href: "/guides/conversions", label: words.empty.guide }}
    >
      {words.empty.body}
    </EmptyState>
  );
}
