//! Crate of the ingest protocols (RTMP, SRT, RTSP, MPEG-TS): bytes from the wire to access units. Independent of
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

pub use error::Error;
