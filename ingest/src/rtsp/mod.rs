//! RTSP pulls: the stream of a camera or server, fetched with `retina` and delivered to the authorizer as a
//! publisher's.
//!
//! The caller decides which address is dialled, and no redirect is followed. Every step has a deadline, the source's
//! bytes are inspected before the library reads them ([`guard`]), and a frame that lost packets is left out whole.

pub mod guard;
mod order;
mod session;
mod settings;
mod tracks;

pub use session::{Failure, Orders, RtspSource, RtspTransport, pull};
pub use settings::RtspSettings;
