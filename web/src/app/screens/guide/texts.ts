/** The guides, each loaded when it is read. */
type Load = () => Promise<{ default: string }>;

export const guides: Record<string, Load> = {
  agents: () => import("../../../../../docs/guide/agents.md"),
  backup: () => import("../../../../../docs/guide/backup.md"),
  conversions: () => import("../../../../../docs/guide/conversions.md"),
  cors: () => import("../../../../../docs/guide/cors.md"),
  dashboard: () => import("../../../../../docs/guide/dashboard.md"),
  docker: () => import("../../../../../docs/guide/docker.md"),
  ffmpeg: () => import("../../../../../docs/guide/ffmpeg.md"),
  files: () => import("../../../../../docs/guide/files.md"),
  "https-and-proxies": () => import("../../../../../docs/guide/https-and-proxies.md"),
  images: () => import("../../../../../docs/guide/images.md"),
  obs: () => import("../../../../../docs/guide/obs.md"),
  operations: () => import("../../../../../docs/guide/operations.md"),
  playback: () => import("../../../../../docs/guide/playback.md"),
  recordings: () => import("../../../../../docs/guide/recordings.md"),
  restream: () => import("../../../../../docs/guide/restream.md"),
  rtsp: () => import("../../../../../docs/guide/rtsp.md"),
  share: () => import("../../../../../docs/guide/share.md"),
  srt: () => import("../../../../../docs/guide/srt.md"),
  troubleshooting: () => import("../../../../../docs/guide/troubleshooting.md"),
  "video-streams": () => import("../../../../../docs/guide/video-streams.md"),
  video: () => import("../../../../../docs/guide/video.md"),
  webhooks: () => import("../../../../../docs/guide/webhooks.md"),
  webrtc: () => import("../../../../../docs/guide/webrtc.md"),
  workflows: () => import("../../../../../docs/guide/workflows.md"),
};
