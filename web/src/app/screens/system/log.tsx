/** The tail of the service's log: by level, with a search, followed while one looks. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { type ApiError, asApiError, isAborted } from "../../api/error";
import { Button } from "../../parts/button";
import { downloadBytes } from "../../parts/download";
import { Select, Switch, TextField } from "../../parts/form";
import { formatNumber, formatTime } from "../../parts/format";
import { Badge, Callout, ErrorState, Skeleton, type Tone } from "../../parts/states";
import { query, setQuery } from "../../router";
import { asText, beginTail, followTail, found, type LogTail, MOST_LINES } from "./model";
import type { LogLine, LogLines } from "./types";
import { words as all } from "./words";

const words = all.log;
/** Between two looks: one stream of changes a tab is all that a browser's six connections bear. */
const EVERY_MS = 1_500;
const TONES: Record<string, Tone> = { error: "bad", warn: "warn", info: "info" };
/** Lines in the page: the newest, so that thousands cost nothing. */
const MOST_SHOWN = 1_000;
/** Near the end of the box, where it follows. */
const NEAR_PX = 40;

export function Log() {
  const level = query.value.get("level") ?? "info";
  const [text, setText] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const { tail, error, retry } = useTail(level, isFollowing);
  const lines = tail?.lines;
  const shown = useMemo(() => found(lines ?? [], text), [lines, text]);
  return (
    <div class="stack system-log">
      <div class="toolbar" role="search" aria-label={words.lines}>
        <Select
          label={words.level}
          hiddenLabel
          name="level"
          value={level}
          choices={Object.entries(words.levels).map(([value, label]) => ({ value, label }))}
          onChange={(event) => setQuery({ level: event.currentTarget.value })}
        />
        <TextField
          label={words.find}
          hiddenLabel
          type="search"
          name="find"
          placeholder={words.find}
          value={text}
          maxLength={200}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Switch label={words.follow} checked={isFollowing} onChange={setFollowing} />
        <Button icon="download" onClick={() => save(shown)} disabled={shown.length === 0}>
          {words.download}
        </Button>
      </div>
      {error && <ErrorState error={error} retry={retry} />}
      {tail?.hasGap && <Callout tone="warn">{words.lost}</Callout>}
      {lines === undefined ? !error && <Skeleton rows={8} height={24} /> : <Tail lines={shown} all={lines} />}
      <p class="soft small">
        {lines && `${words.shown(formatNumber(shown.length))}. `}
        {isFollowing ? words.note : words.paused}
      </p>
    </div>
  );
}

function Tail({ lines, all: kept }: { lines: LogLine[]; all: LogLine[] }) {
  const box = useRef<HTMLOListElement>(null);
  const isAtEnd = useRef(true);
  const shown = lines.slice(-MOST_SHOWN);
  // Who has scrolled up reads, and is not moved.
  useLayoutEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown.at(-1)?.number, shown.length]);
  if (shown.length === 0) return <p class="soft">{kept.length === 0 ? words.empty : words.nothing}</p>;
  return (
    <ol
      ref={box}
      class="log-lines"
      aria-label={words.lines}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and must do so by keyboard too
      tabIndex={0}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
      }}
    >
      {shown.map((line) => (
        <Line key={line.number} line={line} />
      ))}
    </ol>
  );
}

function Line({ line }: { line: LogLine }) {
  return (
    <li class="log-line">
      <time class="numeric soft" dateTime={line.time} title={line.time}>
        {formatTime(new Date(line.time))}
      </time>
      <Badge tone={TONES[line.level] ?? "calm"}>{line.level}</Badge>
      <span class="log-text">
        <span class="soft">{line.target}</span> <bdi>{line.text}</bdi>
      </span>
    </li>
  );
}

/** The newest lines of a level, and those that follow for as long as they are wanted and the tab is seen. */
function useTail(level: string, isFollowing: boolean) {
  const [tail, setTail] = useState<LogTail>();
  const [error, setError] = useState<ApiError>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    let known: LogTail | undefined;
    const ask = (after?: number) => {
      const asked = { level, after, limit: after === undefined ? MOST_SHOWN : MOST_LINES };
      return api.get<LogLines>("/api/system/log", { query: asked, signal: abort.signal });
    };
    const look = async () => {
      try {
        if (!known || (isFollowing && !document.hidden)) {
          known = (known && followTail(known, await ask(known.newest))) ?? beginTail(await ask());
          setTail(known);
          setError(undefined);
        }
      } catch (thrown) {
        if (isAborted(thrown)) return;
        setError(asApiError(thrown));
      }
      if (isFollowing && !abort.signal.aborted) timer = setTimeout(look, EVERY_MS);
    };
    look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [level, isFollowing, round]);
  return { tail, error, retry: () => setRound((count) => count + 1) };
}

const save = (lines: LogLine[]) => downloadBytes(asText(lines), "text/plain", "sluice.log");
