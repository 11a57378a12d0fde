/** A video stream's status and image, as the list and the stream's page show them. */
import { useState } from "preact/hooks";
import { onThisOrigin } from "../../api/base";
import { progressOf } from "../../api/progress";
import { formatNumber } from "../../parts/format";
import { Icon } from "../../parts/icon";
import { Badge } from "../../parts/states";
import type { Stream } from "./stream_types";

const words = {
  statuses: { pending: "waiting", processing: "in progress", ready: "ready", failed: "failed" },
  playable: "plays already",
  place: (place: number) =>
    place === 1 ? "next in the queue" : `number ${formatNumber(place)} in the queue`,
  percent: (value: number) => `${formatNumber(value)} %`,
  progress: (title: string) => `Progress of ${title}`,
};

const TONES = { pending: "calm", processing: "info", ready: "good", failed: "bad" } as const;

/** The status in a word; while it is made, how far it is or its place in the queue, kept true by the change stream. */
export function StreamStatus({ stream }: { stream: Stream }) {
  const { percent, queuePlace } = progressOf(stream.id) ?? { ...stream, percent: stream.progress };
  const isMade = stream.status === "pending" || stream.status === "processing";
  return (
    <span class="stream-status">
      <Badge tone={TONES[stream.status]} dot={stream.status === "processing"}>
        {words.statuses[stream.status]}
      </Badge>
      {isMade && queuePlace !== null && <span class="soft small numeric">{words.place(queuePlace)}</span>}
      {isMade && queuePlace === null && (
        <span class="stream-progress">
          <progress aria-label={words.progress(stream.title)} max={100} value={percent} />
          <span class="soft small numeric">{words.percent(percent)}</span>
        </span>
      )}
      {stream.status === "processing" && stream.playable && <Badge tone="good">{words.playable}</Badge>}
    </span>
  );
}

/** A frame of the stream on this origin; an icon without one. */
export function StreamPoster({ stream }: { stream: Pick<Stream, "posterUrl" | "status"> }) {
  const [isBroken, setBroken] = useState(false);
  const src = posterOf(stream);
  return (
    <span class="live-poster">
      {src && !isBroken ? (
        <img src={src} alt="" loading="lazy" onError={() => setBroken(true)} />
      ) : (
        <Icon name="video" />
      )}
    </span>
  );
}

export const posterOf = ({ posterUrl }: Pick<Stream, "posterUrl">) =>
  posterUrl ? onThisOrigin(posterUrl) : null;
