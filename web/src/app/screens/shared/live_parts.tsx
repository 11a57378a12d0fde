/** A live input's status and picture. */
import { useState } from "preact/hooks";
import { formatDuration } from "../../parts/format";
import { Badge } from "../../parts/states";
import { Since, useNow } from "../../parts/values";
import type { LiveInput } from "./live_types";

/** Between two pictures of an input. */
const PICTURE_EVERY_MS = 15_000;

/** The status in a word, with the time that it has lasted or that is left. */
export function LiveStatus({ input }: { input: LiveInput }) {
  if (input.status === "live")
    return (
      <span class="live-status">
        <Badge tone="live" dot>
          live
        </Badge>
        {input.startedAt && <Since at={input.startedAt} />}
      </span>
    );
  if (input.status === "reconnecting")
    return (
      <span class="live-status">
        <Badge tone="warn" dot>
          reconnecting
        </Badge>
        {input.reconnectUntil && <Left until={input.reconnectUntil} />}
      </span>
    );
  return <Badge>{input.enabled ? "idle" : "disabled"}</Badge>;
}

/** The time that is left, counting down. */
export function Left({ until }: { until: string }) {
  const now = useNow(1_000);
  return <span class="numeric">{formatDuration(Math.max(0, Date.parse(until) - now))} left</span>;
}

/** The newest picture of an input on air; an empty box otherwise. */
export function LivePicture({ input, width = 80 }: { input: LiveInput; width?: number }) {
  const now = useNow(PICTURE_EVERY_MS);
  const [missing, setMissing] = useState(-1);
  const turn = Math.floor(now / PICTURE_EVERY_MS);
  const isShown = input.status !== "idle" && missing !== turn;
  return (
    <span class="live-picture">
      {isShown && (
        <img
          src={`${new URL(input.playback.posterUrl, location.href).pathname}?at=${turn}`}
          alt=""
          width={width}
          height={Math.round((width * 9) / 16)}
          onError={() => setMissing(turn)}
        />
      )}
    </span>
  );
}
