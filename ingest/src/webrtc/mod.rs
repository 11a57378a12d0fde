//! WebRTC: playback by WHEP and ingest by WHIP (RFC 9725), by the gateway process.
//!
//! ICE, DTLS, SRTP and session descriptions of strangers are read in a process of its own, the gateway: it has one UDP and one TCP
//! port and one socket to the service ([`message`]). The service decides who may watch or publish.

#[cfg(feature = "webrtc")]
pub mod gateway;
pub mod message;
pub mod payload;
pub mod publish;
mod settings;
pub mod treatment;

pub use settings::{IceServer, Playout, WebRtcSettings};

/// Exit code of a gateway on a machine that lacks a layer of the required sandbox: that of a wrong configuration
/// (`sysexits.h`).
pub const UNSANDBOXED: u8 = 78;
