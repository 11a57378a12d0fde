/** The inputs that are on air, or may come back. */
import { useState } from "preact/hooks";
import { formatDuration } from "../../parts/format";
import { Section } from "../../parts/page";
import { Badge } from "../../parts/states";
import { Name, Since, useNow } from "../../parts/values";
import { href } from "../../router";
import type { Inputs, OnAirInput } from "./types";
import { words } from "./words";

/** Between two pictures of an input. */
const PICTURE_EVERY_MS = 15_000;
/** The first picture is there as soon as a segment is. */
const FIRST_PICTURE_AFTER_MS = 4_000;

export function OnAir({ onAir, counts }: { onAir: OnAirInput[]; counts: Inputs["counts"] | undefined }) {
  const count = counts && words.onAir.count(counts.live + counts.reconnecting, counts.total);
  return (
    <Section
      title={words.onAir.title}
      actions={
        <>
          {counts && counts.total > 0 && <span class="soft small numeric">{count}</span>}
          <a class="small" href={href("/live")}>
            {words.onAir.all}
          </a>
        </>
      }
    >
      {onAir.length === 0 && <p class="soft">{words.onAir.none}</p>}
      {onAir.length > 0 && (
        <ul class="rows">
          {onAir.map((input) => (
            <li key={input.id} class="on-air-row">
              <Poster input={input} />
              <div class="grow">
                <a class="one-line" href={href(`/live/${input.id}`)}>
                  <Name>{input.name}</Name>
                </a>
                <span class="on-air-facts">
                  <State input={input} />
                  {input.viewers !== null && (
                    <span class="numeric">{words.onAir.viewers(input.viewers)}</span>
                  )}
                </span>
              </div>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

function State({ input }: { input: OnAirInput }) {
  if (input.status === "reconnecting")
    return (
      <>
        <Badge tone="warn" dot>
          {words.onAir.reconnecting}
        </Badge>
        {input.reconnectUntil && <Left until={input.reconnectUntil} />}
      </>
    );
  return (
    <>
      <Badge tone="live" dot>
        {words.onAir.live}
      </Badge>
      {input.startedAt && <Since at={input.startedAt} />}
    </>
  );
}

/** The time that is left, counting down. */
function Left({ until }: { until: string }) {
  const now = useNow(1_000);
  return <span class="numeric">{formatDuration(Date.parse(until) - now)}</span>;
}

function Poster({ input }: { input: OnAirInput }) {
  const now = useNow(2_000);
  const [isMissing, setMissing] = useState(false);
  const url = new URL(input.playback.posterUrl, location.href);
  const at = Math.floor(now / PICTURE_EVERY_MS);
  const isEarly = input.startedAt !== null && now - Date.parse(input.startedAt) < FIRST_PICTURE_AFTER_MS;
  return (
    <span class="on-air-picture">
      {!isMissing && !isEarly && (
        <img
          src={`${url.pathname}?at=${at}`}
          alt=""
          width={80}
          height={45}
          onError={() => setMissing(true)}
        />
      )}
    </span>
  );
}
