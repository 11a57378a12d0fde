//! Tests of the gateway with peers over loopback.

mod client;
mod hostile;
mod playback;
mod publish;
mod service;

use super::super::message::SessionId;

/// Session that panics at its frames.
const PANICKING_SESSION: SessionId = 0x0bad_cafe;

/// Panics in the session that is there for it.
pub(super) fn panic_at_frame(session: SessionId) {
    assert_ne!(session, PANICKING_SESSION, "a test asked for this panic");
}
