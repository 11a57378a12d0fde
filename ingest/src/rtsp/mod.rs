//! RTSP pull: a camera's or server's stream fetched with `retina` and handed to the authorizer as a publisher's.
//!
//! Whom to dial is decided by the caller, and no redirect is followed. Every step has a deadline, what the source sends is
//! looked at before the library sees it ([`guard`]), and a frame that lost packets is left out whole.

pub mod guard;
mod order;
mod session;
mod settings;
mod tracks;

pub use session::{Failure, Orders, RtspSource, RtspTransport, pull};
pub use settings::RtspSettings;
