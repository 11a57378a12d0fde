/** Addresses of a stream, and code for pages of others. */
import { BASE } from "../../api/base";
import type { Stream } from "../shared/stream_types";

export interface Addresses {
  page: string;
  hls: string;
  poster: string;
  iframe: string;
  hlsjs: string;
}

/**
 * What others write before the paths of the service: what its answer has there, unless that is this origin, whose proxy may
 * need a path of its own.
 */
export function baseOf(manifestUrl: string | null, origin = location.origin, path = BASE): string {
  const base = /^(https?:\/\/.*?)\/video\//.exec(manifestUrl ?? "")?.[1] ?? origin;
  return base === origin ? origin + path : base;
}

/** With a token in place of the playback id where the stream is signed. `base` is what others write before it. */
export function addressesOf(
  { playbackId, access, title }: Pick<Stream, "playbackId" | "access" | "title">,
  base: string,
): Addresses {
  const id = access === "signed" ? "TOKEN" : playbackId;
  const page = `${base}/video/${id}`;
  const files = `${base}/video/v1/${id}`;
  const hls = `${files}/master.m3u8`;
  return {
    page,
    hls,
    poster: `${files}/poster.jpg`,
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
