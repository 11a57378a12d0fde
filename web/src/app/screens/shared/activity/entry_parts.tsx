/** How a line of activity shows its kind and how far it is, on its screen and on the Overview. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { onChanges } from "../../../api/changes";
import { Icon, type IconName } from "../../../parts/icon";
import { Badge, type Tone } from "../../../parts/states";
import type { Entry, State } from "./types";
import { activityWords as words } from "./words";

const ICONS: Record<Entry["kind"], IconName> = {
  job: "images",
  run: "workflow",
  stream: "play",
  recording: "video",
  live: "live",
  upload: "upload",
};

const TONES: Record<State, Tone> = {
  waiting: "calm",
  running: "info",
  done: "good",
  failed: "bad",
  cancelled: "calm",
};

export const EntryIcon = ({ kind }: Pick<Entry, "kind">) => <Icon name={ICONS[kind]} class="activity-icon" />;

interface Progress {
  percent: number;
  queuePlace: number | null;
}

/** What the service has said of work in this moment, newest last. */
const progress = signal<ReadonlyMap<string, Progress>>(new Map());
const MOST_KEPT = 200;

/** Follows the progress of jobs, runs and streams for as long as it is shown. */
export function useProgress() {
  useEffect(
    () =>
      onChanges(["job", "run", "stream"], (message) => {
        if (message.event !== "progress") return;
        const next = new Map(progress.peek());
        next.delete(message.id);
        next.set(message.id, message);
        for (const oldest of next.keys()) {
          if (next.size <= MOST_KEPT) break;
          next.delete(oldest);
        }
        progress.value = next;
      }),
    [],
  );
}

/** A bar while it runs, the place while it waits, the state in a word otherwise. */
export function EntryState({ entry }: { entry: Entry }) {
  const { id, kind, state, title } = entry;
  const isActive = state === "waiting" || state === "running";
  const now = isActive ? progress.value.get(id) : undefined;
  const percent = now?.percent ?? entry.percent;
  const queuePlace = now ? now.queuePlace : entry.queuePlace;
  if (isActive && queuePlace !== null) return <span class="soft small">{words.queued(queuePlace)}</span>;
  const isMoving = state === "running" || (now?.percent ?? 0) > 0;
  if (isMoving && percent !== null)
    return (
      <span class="activity-progress">
        <progress aria-label={words.progress(title)} max={100} value={percent} />
        <span class="numeric small">{Math.round(percent)} %</span>
      </span>
    );
  if (kind === "recording" && state === "running")
    return (
      <Badge tone="live" dot>
        {words.recording}
      </Badge>
    );
  return <Badge tone={TONES[state]}>{words.states[state]}</Badge>;
}
