/** How a line of activity shows its kind and how far it is, on its screen and on the Overview. */
import { progressOf } from "../../../api/progress";
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

/** A bar while it runs, the place while it waits, the state in a word otherwise. */
export function EntryState({ entry }: { entry: Entry }) {
  const { id, kind, state, title } = entry;
  const isActive = state === "waiting" || state === "running";
  const now = isActive ? progressOf(id) : undefined;
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
  if ((kind === "recording" || kind === "live") && state === "running")
    return (
      <Badge tone="live" dot>
        {words[kind]}
      </Badge>
    );
  return <Badge tone={TONES[state]}>{words.states[state]}</Badge>;
}
