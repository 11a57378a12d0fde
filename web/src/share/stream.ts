/** Plays an HLS asset in the viewer. A bundle of its own, fetched with the first such video: hls.js outweighs the page. */
import Hls, { Events } from "hls.js";

/** Releases the video. */
export type Release = () => void;

/**
 * @param onBroken called once when the stream cannot be played; it is released by then
 */
export function play(video: HTMLVideoElement, manifestUrl: string, onBroken: () => void): Release {
  if (!Hls.isSupported()) {
    video.addEventListener("error", onBroken, { once: true });
    video.src = manifestUrl;
    return () => video.removeEventListener("error", onBroken);
  }
  const hls = new Hls({ enableWorker: false, startPosition: 0 });
  let repaired = false;
  hls.on(Events.ERROR, (_, error) => {
    if (!error.fatal) return;
    if (error.type === Hls.ErrorTypes.MEDIA_ERROR && !repaired) {
      repaired = true;
      hls.recoverMediaError();
      return;
    }
    hls.destroy();
    onBroken();
  });
  hls.loadSource(manifestUrl);
  hls.attachMedia(video);
  return () => hls.destroy();
}
