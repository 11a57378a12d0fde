// ffmpeg as an encoder: publishes a small test video in real time, and ends as an encoder ends, politely or not.
import { spawn } from "node:child_process";

const FRAME_RATE = 15;
const running = new Set();

/**
 * Publishes to `url` (RTMP or SRT, with the stream key).
 *
 * @param keyFrameS seconds between two key frames
 * @returns {{ended: Promise<number | null>, stop: () => Promise<number | null>, kill: () => Promise<number | null>}}
 */
export function publish(url, { keyFrameS = 1 } = {}) {
  const distance = String(FRAME_RATE * keyFrameS);
  const child = spawn(
    "ffmpeg",
    [
      ...["-nostdin", "-hide_banner", "-v", "error", "-re"],
      ...["-f", "lavfi", "-i", `testsrc2=size=640x360:rate=${FRAME_RATE}`],
      ...["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p"],
      ...["-g", distance, "-keyint_min", distance, "-sc_threshold", "0", "-b:v", "600k"],
      ...["-c:a", "aac", "-b:a", "96k", "-ac", "2"],
      ...["-f", url.startsWith("srt:") ? "mpegts" : "flv", url],
    ],
    { stdio: "ignore" },
  );
  running.add(child);
  const ended = new Promise((resolve) => child.once("exit", resolve)).finally(() => running.delete(child));
  const end = (signal) => {
    child.kill(signal);
    return ended;
  };
  return { ended, stop: () => end("SIGINT"), kill: () => end("SIGKILL") };
}

/** Ends what a failed step has left running. */
export function stopAll() {
  for (const child of running) child.kill("SIGKILL");
}
