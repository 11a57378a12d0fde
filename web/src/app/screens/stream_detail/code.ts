/** Addresses of a stream, and code for pages of others. */
import type { Stream } from "../shared/stream_types";

export interface Addresses {
  page: string;
  hls: string;
  iframe: string;
  hlsjs: string;
}

/** With a token in place of the playback id where the stream is signed. `origin` is the service's own. */
export function addressesOf(
  { playbackId, access, title }: Pick<Stream, "playbackId" | "access" | "title">,
  origin: string,
): Addresses {
  const id = access === "signed" ? "TOKEN" : playbackId;
  const page = `${origin}/video/${id}`;
  const hls = `${origin}/video/v1/${id}/master.m3u8`;
  return {
    page,
    hls,
    iframe: `<iframe src="${page}" title="${attribute(title)}" allow="autoplay; fullscreen"\n  style="width:100%;aspect-ratio:16/9;border:0"></iframe>`,
    hlsjs: `<video id="video" controls playsinline></video>
<script type="module">
  import Hls from "./hls.mjs"; // npm install hls.js
  const url = "${hls}";
  const video = document.getElementById("video");
  if (Hls.isSupported()) {
    const hls = new Hls({ startPosition: 0 });
    hls.loadSource(url);
    hls.attachMedia(video);
  } else {
    video.src = url; // Safari plays it by itself
  }
</script>`,
  };
}

/** Text inside of an attribute in double quotes. */
const attribute = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
