//! Bytes from the wire to access units. Knows neither actors, HTTP nor SQL.

mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod publish;
pub mod rtmp;
pub mod rtsp;
pub mod srt;
pub mod ts;

pub use error::Error;
