/** The stream as its viewers see it, with what it is made of. */
import { useEffect, useRef, useState } from "preact/hooks";
import { onThisOrigin } from "../../api/base";
import { formatBits, formatDuration, formatNumber } from "../../parts/format";
import { Section } from "../../parts/page";
import { Callout } from "../../parts/states";
import { Time } from "../../parts/values";
import { href } from "../../router";
import { posterOf } from "../shared/stream_parts";
import type { Stream } from "../shared/stream_types";
import { words } from "./words";

export function Watch({ stream }: { stream: Stream }) {
  return (
    <>
      <div class="live-watch">
        <Player
          key={stream.captions.map(({ language, url }) => `${language} ${url}`).join()}
          stream={stream}
        />
        <Facts stream={stream} />
      </div>
      <Renditions stream={stream} />
    </>
  );
}

function Player({ stream }: { stream: Stream }) {
  const video = useRef<HTMLVideoElement>(null);
  const [isBroken, setBroken] = useState(false);
  // The playlist may be cached for a minute: another list of captions is another address
  const captions = stream.captions.map(({ language }) => language).join();
  const manifest =
    stream.manifestUrl && stream.playable ? onThisOrigin(stream.manifestUrl, { captions }) : null;
  useEffect(() => {
    const element = video.current;
    if (!element || !manifest) return;
    let release = () => {};
    let ended = false;
    setBroken(false);
    import("../../../share/stream").then(({ play }) => {
      if (!ended) release = play(element, manifest, () => setBroken(true));
    });
    return () => {
      ended = true;
      release();
      element.removeAttribute("src");
      element.load();
    };
  }, [manifest]);
  if (stream.status === "failed")
    return (
      <Callout tone="bad" title={words.watch.failed}>
        <p>{stream.error}</p>
        <p>{words.watch.failedHint}</p>
      </Callout>
    );
  if (!manifest)
    return (
      <div class="stream-note">
        <p>{stream.status === "pending" ? words.watch.waiting : words.watch.working}</p>
      </div>
    );
  return (
    <div class="stack">
      <video
        ref={video}
        class="stream-video"
        controls
        playsInline
        poster={posterOf(stream) ?? undefined}
        aria-label={words.watch.player(stream.title)}
      />
      {isBroken && <Callout tone="warn">{words.watch.broken}</Callout>}
    </div>
  );
}

function Facts({ stream }: { stream: Stream }) {
  const { profile, duration, width, height, segmentDuration, sourceFileId, createdAt, readyAt } = stream;
  return (
    <Section title={words.watch.facts}>
      <dl class="facts">
        <dt>{words.watch.profile}</dt>
        <dd>{profile.replaceAll("_", " ")}</dd>
        {duration !== null && (
          <>
            <dt>{words.watch.duration}</dt>
            <dd class="numeric">{formatDuration(duration * 1_000)}</dd>
          </>
        )}
        {width !== null && height !== null && (
          <>
            <dt>{words.watch.size}</dt>
            <dd class="numeric">
              {width} × {height}
            </dd>
          </>
        )}
        <dt>{words.watch.segment}</dt>
        <dd class="numeric">{words.watch.seconds(segmentDuration)}</dd>
        <dt>{words.watch.source}</dt>
        <dd>
          {sourceFileId ? (
            <a href={`${href("/files")}?file=${sourceFileId}`}>{words.watch.sourceOpen}</a>
          ) : (
            words.watch.sourceGone
          )}
        </dd>
        <dt>{words.watch.created}</dt>
        <dd>
          <Time at={createdAt} />
        </dd>
        {readyAt && (
          <>
            <dt>{words.watch.ready}</dt>
            <dd>
              <Time at={readyAt} />
            </dd>
          </>
        )}
      </dl>
    </Section>
  );
}

function Renditions({ stream: { renditions } }: { stream: Stream }) {
  const texts = words.renditions;
  return (
    <Section title={texts.title}>
      {renditions.length === 0 ? (
        <p class="soft">{texts.none}</p>
      ) : (
        <div class="table-scroll">
          <table class="table table-cards">
            <thead>
              <tr>
                {[texts.name, texts.size, texts.aimed, texts.measured, texts.codec, texts.segments].map(
                  (name) => (
                    <th key={name} scope="col">
                      {name}
                    </th>
                  ),
                )}
              </tr>
            </thead>
            <tbody>
              {renditions.map(
                ({ id, width, height, bitrate, averageBitrate, codec, audioCodec, segmentCount }) => (
                  <tr key={id}>
                    <th scope="row">{id}</th>
                    <td class="numeric" data-label={texts.size}>
                      {width && height ? `${width} × ${height}` : "–"}
                    </td>
                    <td class="numeric" data-label={texts.aimed}>
                      {formatBits(bitrate)}
                    </td>
                    <td class="numeric" data-label={texts.measured}>
                      {averageBitrate !== null ? formatBits(averageBitrate) : "–"}
                    </td>
                    <td data-label={texts.codec}>{[codec, audioCodec].filter(Boolean).join(", ") || "–"}</td>
                    <td class="numeric" data-label={texts.segments}>
                      {formatNumber(segmentCount)}
                    </td>
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}
