/** The stream as its viewers see it: muted, at the live edge, attached while there is something to play. */
import { useEffect, useRef, useState } from "preact/hooks";
import { attachHls, isAnyHlsSupported } from "../../../player/hls";
import { Playback } from "../../../player/playback";
import { isPlayable, parseReply, type Reply } from "../../../player/stage";
import { TransportChoice } from "../../../player/transport";
import { isWebRtcSupported } from "../../../player/whep_source";
import { transportWords } from "../../../player/words";
import { onThisOrigin } from "../../api/base";
import type { LiveInput } from "../shared/live_types";
import { words } from "./words";

/** Between two looks at how playback is. */
const TEND_EVERY_MS = 250;
/** Between two requests for the state when one has failed. */
const RETRY_MS = 1_000;
/** Time for which the service holds a request for the state while nothing changes. */
const WAIT_S = 20;

export function LivePlayer({ input }: { input: LiveInput }) {
  const video = useRef<HTMLVideoElement>(null);
  const [isPlaying, setPlaying] = useState(false);
  const [transport, setTransport] = useState("");
  const [isSupported] = useState(
    () => isWebRtcSupported() || isAnyHlsSupported(document.createElement("video")),
  );
  const address = onThisOrigin(input.playback.hlsUrl);
  const status = useRef<LiveInput["status"]>("idle");
  const isLowLatency = input.latency === "low";
  status.current = usePlayable(address, input.status);

  useEffect(() => {
    const element = video.current;
    if (!element || !isSupported) return;
    // Set on the element: attributes of a template do not mute.
    element.muted = true;
    const start = () => element.play().catch(() => undefined);
    const show = () => {
      setPlaying(playback.advancing);
      setTransport(transportWords(playback.transport, isLowLatency, playback.latency));
    };
    const playback = new Playback({
      hls: address,
      whep: isWebRtcSupported() ? address.replace(/index\.m3u8(?=$|\?)/, "whep") : null,
      video: element,
      audio: { start },
      choice: new TransportChoice({ suitable: isLowLatency, via: null }),
      attachHls,
      onChange: show,
    });
    const tend = () => {
      const isLive = status.current === "live";
      if (isLive) playback.attach(true);
      else if (status.current === "idle" && !playback.draining) playback.detach();
      playback.tend(isLive);
      show();
    };
    const timer = setInterval(tend, TEND_EVERY_MS);
    tend();
    return () => {
      clearInterval(timer);
      playback.detach();
    };
  }, [address, isSupported, isLowLatency]);

  return (
    <div class="live-player" data-playing={isPlaying}>
      <video ref={video} muted playsInline controls={isPlaying} aria-label={words.player.label} />
      {isPlaying && transport && <p class="live-player-transport numeric">{transport}</p>}
      {!isPlaying && <p class="live-player-note">{note(input, isSupported)}</p>}
    </div>
  );
}

/**
 * The status, and "idle" until the playlist answers: an encoder is admitted some time before its first segment, and
 * each playlist that is asked for too early is an error in the browser's console.
 */
function usePlayable(playlist: string, status: LiveInput["status"]): LiveInput["status"] {
  const [playable, setPlayable] = useState<string | null>(null);
  useEffect(() => {
    if (status === "idle") setPlayable(null);
    if (status !== "live" || playable === playlist) return;
    const abort = new AbortController();
    untilPlayable(playlist.replace(/index\.m3u8$/, "state"), abort.signal).then(
      () => setPlayable(playlist),
      () => undefined,
    );
    return () => abort.abort();
  }, [playlist, status]);
  return status === "live" && playable !== playlist ? "idle" : status;
}

/** Follows the public state until there is something to play. */
async function untilPlayable(url: string, signal: AbortSignal): Promise<void> {
  let since = "";
  for (;;) {
    const reply = await publicState(url + since, signal);
    if (reply && isPlayable(reply)) return;
    since = reply ? `?wait=${WAIT_S}&since=${encodeURIComponent(reply.version)}` : "";
    if (!reply) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function publicState(url: string, signal: AbortSignal): Promise<Reply | null> {
  const response = await fetch(url, { signal, cache: "no-store" });
  return response.ok ? parseReply(await response.json()) : null;
}

function note(input: LiveInput, isSupported: boolean): string {
  if (!isSupported) return words.player.unsupported;
  if (input.status === "idle") return words.player.idle;
  return input.status === "reconnecting" ? words.player.reconnecting : words.player.starting;
}
