/** The stream as its viewers see it: muted, at the live edge, attached while there is something to play. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Playback } from "../../../player/playback";
import type { LiveInput } from "../shared/live_types";
import { words } from "./words";

/** Between two looks at how playback is. */
const TEND_EVERY_MS = 250;

export function LivePlayer({ input }: { input: LiveInput }) {
  const video = useRef<HTMLVideoElement>(null);
  const status = useRef(input.status);
  status.current = input.status;
  const [isPlaying, setPlaying] = useState(false);
  const [isSupported] = useState(() => Playback.isSupported(document.createElement("video")));
  const url = new URL(input.playback.hlsUrl, location.href);
  const address = url.pathname + url.search;

  useEffect(() => {
    const element = video.current;
    if (!element || !isSupported) return;
    // Set on the element: attributes of a template do not mute.
    element.muted = true;
    const start = () => element.play().catch(() => undefined);
    const playback = new Playback(address, element, { start }, () => setPlaying(playback.advancing));
    const tend = () => {
      const isLive = status.current === "live";
      if (isLive) playback.attach();
      else if (status.current === "idle" && !playback.draining) playback.detach();
      playback.tend(isLive);
      setPlaying(playback.advancing);
    };
    const timer = setInterval(tend, TEND_EVERY_MS);
    tend();
    return () => {
      clearInterval(timer);
      playback.detach();
    };
  }, [address, isSupported]);

  return (
    <div class="live-player" data-playing={isPlaying}>
      <video ref={video} muted playsInline controls={isPlaying} aria-label={words.player.label} />
      {!isPlaying && <p class="live-player-note">{note(input, isSupported)}</p>}
    </div>
  );
}

function note(input: LiveInput, isSupported: boolean): string {
  if (!isSupported) return words.player.unsupported;
  if (input.status === "idle") return words.player.idle;
  return input.status === "reconnecting" ? words.player.reconnecting : words.player.starting;
}
