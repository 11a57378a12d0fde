//! SRT: ingest of MPEG-TS by the gateway process, and SRT outputs.
//!
//! libsrt is C, so it runs in a process of its own, the gateway: it has the UDP port and one socket to the service,
//! over which the service pushes the [`table`] of admitted stream ids and passphrases, and receives payloads and
//! statistics ([`message`]). The service parses the payloads, in safe code ([`session`]).
//!
//! ```text
//! encoder ──UDP──▶ gateway (libsrt) ── messages ──▶ service: session ── demuxer ── units ──▶ PublishSession
//!                     ▲── table, orders ───────────────┘
//! ```
//!
//! In the other direction, a stream is sent to a listener that its owner chose ([`caller`]): safe code, in the
//! service.

pub mod caller;
#[cfg(feature = "libsrt")]
pub mod gateway;
#[cfg(feature = "libsrt")]
mod libsrt;
pub mod message;
pub mod session;
mod settings;
pub mod stream_id;
pub mod table;

pub use settings::SrtSettings;

/// Exit code of a gateway on a machine that lacks a layer of the required sandbox: that of a wrong configuration
/// (`sysexits.h`).
pub const UNSANDBOXED: u8 = 78;
