//! RTMP and enhanced RTMP: ingest of publishers, and publishing to other servers.
//!
//! The protocol is a pure state machine that takes bytes and time and returns events and bytes; only [`serve`] uses
//! sockets. Invalid bytes end their own connection and affect nothing else: every length is checked against a bound,
//! memory grows with what arrived, and nothing recurses by foreign depth.
//!
//! [`serve`], [`RtmpSettings`] and, for the other direction, [`publish`] are what others use. The pure parts are
//! public for the benches and the fuzz targets.

pub mod amf0;
pub mod chunk;
mod clock;
mod command;
mod connection;
pub mod flv;
mod handshake;
pub mod message;
pub mod publish;
pub mod session;
mod settings;
mod writer;

pub use connection::serve;
pub use settings::RtmpSettings;
