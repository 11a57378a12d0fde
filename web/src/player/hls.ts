/** Attaches an HLS source: hls.js where it can play, else the browser's own player. */
import { HlsSource, isHlsSupported } from "./hls_source";
import { isNativeHlsSupported, NativeSource } from "./native_source";
import type { Source, SourceListener } from "./source";

export function attachHls(url: string, video: HTMLVideoElement, listener: SourceListener): Source {
  return isHlsSupported() ? new HlsSource(url, video, listener) : new NativeSource(url, video, listener);
}

export function isAnyHlsSupported(video: HTMLVideoElement): boolean {
  return isHlsSupported() || isNativeHlsSupported(video);
}
