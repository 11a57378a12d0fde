/** Bitrate, frames and viewers over the last quarter of an hour, with gaps where the encoder was offline. */
import { useEffect } from "preact/hooks";
import { api } from "../../api/client";
import { useResource } from "../../api/resource";
import { Chart } from "../../parts/chart";
import { formatBits, formatNumber } from "../../parts/format";
import { Section } from "../../parts/page";
import { Loaded, Skeleton } from "../../parts/states";
import type { LiveInput } from "../shared/live_types";
import type { HealthHistory } from "./types";
import { words } from "./words";

const SECONDS = 900;
/** Between two loads of the history while the input is on air. */
const EVERY_MS = 5_000;

export function HealthGraphs({ input }: { input: LiveInput }) {
  const history = useResource(
    (signal) =>
      api.get<HealthHistory>(`/api/live/inputs/${input.id}/health/history`, {
        query: { seconds: SECONDS },
        signal,
      }),
    [input.id, input.status],
    { keep: true },
  );
  const isOnAir = input.status !== "idle";
  useEffect(() => {
    if (!isOnAir) return;
    const timer = setInterval(() => !document.hidden && history.reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [isOnAir, history.reload]);
  if (history.data && history.data.t.length === 0) return null;
  return (
    <Section title={words.health.graphs}>
      <Loaded of={history} skeleton={<Skeleton rows={1} height={160} />}>
        {({ t, videoKbps, audioKbps, fps, viewers }) => (
          <div class="live-graphs">
            <Chart
              title={words.health.bitrate}
              times={t}
              series={[
                { label: words.health.video, values: bits(videoKbps), tone: "accent" },
                { label: words.health.audio, values: bits(audioKbps), tone: "good" },
              ]}
              format={formatBits}
            />
            <Chart
              title={words.health.frames}
              times={t}
              series={[{ label: words.health.frames, values: fps, tone: "accent" }]}
              format={(value) => value.toFixed(1)}
            />
            {viewers.some((count) => count !== null) && (
              <Chart
                title={words.health.watching}
                times={t}
                series={[{ label: words.health.watching, values: viewers, tone: "good" }]}
                format={formatNumber}
                whole
              />
            )}
          </div>
        )}
      </Loaded>
    </Section>
  );
}

const bits = (column: (number | null)[]) => column.map((value) => (value === null ? null : value * 1_000));
