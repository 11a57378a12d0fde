/** The light build (no captions, alternative audio or DRM) ships without types of its own; they are the full one's. */
declare module "hls.js/light" {
  export * from "hls.js";
  export { default } from "hls.js";
}
