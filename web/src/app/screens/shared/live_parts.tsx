/** A live input's status and newest image, as the Overview, the list and the input's page show them. */
import { useState } from "preact/hooks";
import { onThisOrigin } from "../../api/base";
import { formatDuration } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { Badge } from "../../parts/states";
import { Since, useNow } from "../../parts/values";
import type { LiveInput } from "./live_types";

/** Between two posters of an input. */
const POSTER_EVERY_MS = 15_000;
/** The first poster exists once a segment does. */
const FIRST_POSTER_AFTER_MS = 4_000;

type InputStatus = Pick<LiveInput, "status" | "enabled" | "startedAt" | "reconnectUntil">;

/** The status in a word, with the time that it has lasted or that is left. */
export function LiveStatus({ input }: { input: InputStatus }) {
  if (input.status === "idle") return <Badge>{input.enabled ? "idle" : "disabled"}</Badge>;
  const isLive = input.status === "live";
  return (
    <span class="live-status">
      <Badge tone={isLive ? "live" : "warn"} dot>
        {input.status}
      </Badge>
      {isLive && input.startedAt && <Since at={input.startedAt} />}
      {!isLive && input.reconnectUntil && <Left until={input.reconnectUntil} />}
    </span>
  );
}

/** The time that is left, counting down. */
function Left({ until }: { until: string }) {
  const now = useNow(1_000);
  return <span class="numeric">{formatDuration(Math.max(0, Date.parse(until) - now))} left</span>;
}

const WIDTH = 80;

/** The newest poster of an input on air; an icon otherwise. */
export function LivePoster({ input }: { input: Pick<LiveInput, "status" | "startedAt" | "playback"> }) {
  const now = useNow(2_000);
  const [missing, setMissing] = useState(-1);
  const turn = Math.floor(now / POSTER_EVERY_MS);
  const isEarly = input.startedAt !== null && now - Date.parse(input.startedAt) < FIRST_POSTER_AFTER_MS;
  const isShown = input.status !== "idle" && !isEarly && missing !== turn;
  return (
    <span class="live-poster">
      {!isShown && <Icon name="video" />}
      {isShown && (
        <img
          src={onThisOrigin(input.playback.posterUrl, { at: String(turn) })}
          alt=""
          width={WIDTH}
          height={(WIDTH * 9) / 16}
          onError={() => setMissing(turn)}
        />
      )}
    </span>
  );
}
