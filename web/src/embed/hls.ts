/** The part of the element with hls.js, loaded when HLS is needed. */
export { attachHls } from "../player/hls";
