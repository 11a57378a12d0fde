//! Crate of the ingest protocols (RTMP, SRT, RTSP, MPEG-TS, WebRTC): bytes from the wire to access units. Independent of
//! actors, HTTP and SQL.

mod corruption;
mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod publish;
pub mod rtmp;
pub mod rtsp;
pub mod srt;
pub mod ts;
pub mod webrtc;

pub use error::Error;
pub(crate) use sluice_media::framing;
