//! Crate of media without I/O: formats, operations, image requests, codec configurations, the HLS packager, archives.
//! No async task, no actor.
//!
//! Everything here takes foreign bytes and a time, and gives values back. It never panics on what it is given, and
//! allocates by what arrived, never by a length that was declared.

pub mod av;
pub mod captions;
pub mod codec;
mod error;
pub mod format;
#[doc(hidden)]
pub mod fuzzing;
pub mod geometry;
pub mod hls;
pub mod meter;
pub mod operation;
pub mod setting;
pub mod task;
pub mod unit;
pub mod variant;
pub mod workflow;
pub mod zip;

pub use error::Error;
