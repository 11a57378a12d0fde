/** The resolutions and bitrates that can be chosen, and what the browser is asked for. Pure. */
import type { SourceKind } from "./words";

export interface Resolution {
  name: string;
  width: number;
  height: number;
  framesPerSecond: number;
  /** Bits a second that look well at it. */
  bitrate: number;
}

export const RESOLUTIONS: Resolution[] = [
  { name: "1080p, 30 fps", width: 1920, height: 1080, framesPerSecond: 30, bitrate: 4_500_000 },
  { name: "720p, 60 fps", width: 1280, height: 720, framesPerSecond: 60, bitrate: 4_000_000 },
  { name: "720p, 30 fps", width: 1280, height: 720, framesPerSecond: 30, bitrate: 2_500_000 },
  { name: "480p, 30 fps", width: 854, height: 480, framesPerSecond: 30, bitrate: 1_200_000 },
  { name: "360p, 30 fps", width: 640, height: 360, framesPerSecond: 30, bitrate: 700_000 },
];
export const USUAL = 2;

export const BITRATES = [700_000, 1_200_000, 2_500_000, 4_000_000, 4_500_000, 6_000_000, 8_000_000];

export const AUDIO_BITRATE = 128_000;

export function videoConstraints(
  { width, height, framesPerSecond }: Resolution,
  source: SourceKind,
  deviceId: string,
): MediaTrackConstraints {
  // A screen is made smaller to fit; a camera is asked for what it can do nearest to it.
  if (source === "screen") {
    return { width: { max: width }, height: { max: height }, frameRate: { max: framesPerSecond } };
  }
  return {
    width: { ideal: width },
    height: { ideal: height },
    frameRate: { ideal: framesPerSecond, max: framesPerSecond },
    ...(deviceId === "" ? {} : { deviceId: { exact: deviceId } }),
  };
}

/** @param clean noise and echo are removed, which is for voices and makes music worse */
export function audioConstraints(deviceId: string, clean: boolean): MediaTrackConstraints {
  return {
    echoCancellation: clean,
    noiseSuppression: clean,
    autoGainControl: clean,
    channelCount: { ideal: 2 },
    ...(deviceId === "" ? {} : { deviceId: { exact: deviceId } }),
  };
}

/** The codecs in the order in which they are offered: H.264 first, which every player of HLS and WebRTC takes. */
export function preferred<C extends { mimeType: string; sdpFmtpLine?: string }>(codecs: C[]): C[] {
  const rank = ({ mimeType, sdpFmtpLine = "" }: C) =>
    !/h264$/i.test(mimeType) ? 2 : /packetization-mode=1/.test(sdpFmtpLine) ? 0 : 1;
  return codecs
    .map((codec, index) => ({ codec, index }))
    .sort((one, other) => rank(one.codec) - rank(other.codec) || one.index - other.index)
    .map(({ codec }) => codec);
}
