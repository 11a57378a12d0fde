//! What media is: access units, codec configurations, the HLS packager. Pure: no I/O, no task, no actor.
//!
//! Everything here takes foreign bytes and a time, and gives values back. It never panics on what it is given, and
//! allocates by what arrived, never by a length that was declared.

pub mod codec;
mod error;
pub mod hls;
pub mod meter;
pub mod setting;
pub mod unit;

pub use error::Error;
