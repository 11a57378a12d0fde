//! The thin driver between a socket, the protocol's state machine and the gate.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{
    Error,
    gate::{Gate, Protocol},
};

use super::RtmpSettings;

/// Speaks RTMP on an accepted socket until it ends. Never panics, never allocates by a declared length. `stop` ends it
/// with a polite close.
pub async fn serve<S, G>(
    socket: S,
    remote: SocketAddr,
    protocol: Protocol,
    gate: &G,
    settings: &RtmpSettings,
    stop: CancellationToken,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    G: Gate,
{
    let _ = (socket, remote, protocol, gate, settings, stop);
    Err(Error::unsupported("RTMP", "not yet spoken"))
}
