/** The player beside the health, with advice, graphs and past connections. */
import { useEffect, useState } from "preact/hooks";
import { onHealth } from "../../api/changes";
import { api } from "../../api/client";
import { usePages, useResource } from "../../api/resource";
import { Button } from "../../parts/button";
import { formatBits, formatDuration, formatNumber } from "../../parts/format";
import { Section } from "../../parts/page";
import { Callout, Loaded, Skeleton } from "../../parts/states";
import { Name, Since, Time } from "../../parts/values";
import type { LiveInput } from "../shared/live_types";
import { HealthGraphs } from "./graphs";
import type { Connection, Health } from "./types";
import { words } from "./words";

/** The player with hls.js, which is most of what this page weighs: loaded after the rest is there. */
function LazyPlayer({ input }: { input: LiveInput }) {
  const [player, setPlayer] = useState<{ LivePlayer: typeof import("./player").LivePlayer } | null>(null);
  useEffect(() => {
    import("./player").then(setPlayer, () => undefined);
  }, []);
  return player ? <player.LivePlayer input={input} /> : <div class="live-player" />;
}

export function Watch({ input }: { input: LiveInput }) {
  const health = useResource(
    (signal) => api.get<Health>(`/api/live/inputs/${input.id}/health`, { signal }),
    [input.id, input.status],
    { keep: true },
  );
  useEffect(() => onHealth<Health>(input.id, health.set), [input.id, health.set]);
  return (
    <div class="stack">
      <div class="live-watch">
        <LazyPlayer input={input} />
        <Section title={words.health.title}>
          <Loaded of={health} skeleton={<Skeleton rows={4} height={28} />}>
            {(data) => <HealthFacts health={data} />}
          </Loaded>
        </Section>
      </div>
      <HealthGraphs input={input} />
      <Connections input={input} />
    </div>
  );
}

function HealthFacts({ health }: { health: Health }) {
  const troubles = Object.entries(health.trouble).filter(([, reason]) => reason);
  const isIdle = health.status === "idle";
  return (
    <>
      {troubles.map(([what, reason]) => (
        <Callout key={what} tone="bad" title={words.health.trouble[what] ?? what}>
          <p>{reason}</p>
        </Callout>
      ))}
      {health.advice.length > 0 && (
        <Callout tone="warn" title={words.health.advice(health.advice.length)}>
          <ul class="live-advice">
            {health.advice.map((sentence) => (
              <li key={sentence}>{sentence}</li>
            ))}
          </ul>
        </Callout>
      )}
      {isIdle && troubles.length === 0 && <p class="soft">{words.health.idle}</p>}
      {!isIdle && health.advice.length === 0 && <Callout tone="good" title={words.health.good} />}
      {!isIdle && <Measured health={health} />}
    </>
  );
}

function Measured({ health }: { health: Health }) {
  const video = [
    health.videoCodec?.toUpperCase(),
    health.videoProfile,
    health.width && health.height && `${health.width}×${health.height}`,
    health.frameRate !== null && words.health.fps(health.frameRate, health.declaredFrameRate),
    health.videoBitrateBps !== null && formatBits(health.videoBitrateBps),
  ];
  const audio = [
    health.audioCodec?.toUpperCase(),
    health.sampleRate && `${formatNumber(health.sampleRate / 1000)} kHz`,
    health.channels && `${health.channels} ch`,
    health.audioBitrateBps !== null && formatBits(health.audioBitrateBps),
  ];
  const line = (parts: unknown[]) => parts.filter(Boolean).join(" · ") || words.health.none;
  return (
    <dl class="facts">
      <dt>{words.health.video}</dt>
      <dd class="numeric">{line(video)}</dd>
      <dt>{words.health.audio}</dt>
      <dd class="numeric">{line(audio)}</dd>
      {health.keyFrameIntervalS !== null && (
        <>
          <dt>{words.health.keyFrames}</dt>
          <dd class="numeric">{words.health.every(health.keyFrameIntervalS)}</dd>
        </>
      )}
      {health.protocol && (
        <>
          <dt>{words.health.from}</dt>
          <dd>
            <Publisher {...health} />
            {health.connectedAt && (
              <>
                {", "}
                <Since at={health.connectedAt} />
              </>
            )}
          </dd>
        </>
      )}
      {health.lostPackets !== null && (
        <>
          <dt>{words.health.link}</dt>
          <dd class="numeric">
            {words.health.lost(health.lostPackets, health.retransmittedPackets ?? 0)}
            {health.roundTripMs !== null && ` · ${health.roundTripMs.toFixed(0)} ms`}
          </dd>
        </>
      )}
      {health.driftMs !== null && (
        <>
          <dt>{words.health.drift}</dt>
          <dd class="numeric">{`${health.driftMs > 0 ? "+" : ""}${formatNumber(health.driftMs)} ms`}</dd>
        </>
      )}
      <dt>{words.health.sessions}</dt>
      <dd class="numeric">{formatNumber(health.sessions)}</dd>
    </dl>
  );
}

/** Protocol, address and program of an encoder. */
function Publisher({
  protocol,
  remoteAddress,
  encoder,
}: Pick<Health, "protocol" | "remoteAddress" | "encoder">) {
  return (
    <span>
      {protocol?.toUpperCase()} <Name>{remoteAddress ?? ""}</Name>
      {encoder && (
        <>
          {", "}
          <Name>{encoder}</Name>
        </>
      )}
    </span>
  );
}

interface ConnectionPage {
  connections: Connection[];
  nextCursor: string | null;
}

function Connections({ input }: { input: LiveInput }) {
  const list = usePages<Connection>(
    async (cursor, signal) => {
      const query = { limit: 10, cursor };
      const path = `/api/live/inputs/${input.id}/connections`;
      const { connections, nextCursor } = await api.get<ConnectionPage>(path, { query, signal });
      return { items: connections, next: nextCursor };
    },
    `${input.id} ${input.status}`,
    [],
  );
  return (
    <Section title={words.health.connections}>
      <Loaded of={list} skeleton={<Skeleton rows={2} height={40} />}>
        {({ items: connections, hasMore }) =>
          connections.length === 0 ? (
            <p class="soft">{words.health.noConnections}</p>
          ) : (
            <>
              <table class="table table-cards">
                <thead>
                  <tr>
                    <th scope="col">{words.health.began}</th>
                    <th scope="col">{words.health.encoder}</th>
                    <th scope="col">{words.health.lasted}</th>
                    <th scope="col">{words.health.reason}</th>
                  </tr>
                </thead>
                <tbody>
                  {connections.map((item) => (
                    <tr key={item.id}>
                      <th scope="row">
                        <Time at={item.connectedAt} />
                      </th>
                      <td data-label={words.health.encoder}>
                        <Publisher {...item} />
                      </td>
                      <td data-label={words.health.lasted} class="numeric">
                        {item.disconnectedAt === null ? (
                          <Since at={item.connectedAt} />
                        ) : (
                          formatDuration(item.duration * 1_000)
                        )}
                      </td>
                      <td data-label={words.health.reason}>
                        {item.reason === null
                          ? words.health.connected
                          : (words.health.reasons[item.reason] ?? item.reason)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {hasMore && (
                <Button small onClick={list.more}>
                  {words.health.more}
                </Button>
              )}
            </>
          )
        }
      </Loaded>
    </Section>
  );
}
