//! SRT client of outputs: calls a listener, sends MPEG-TS, time-outs, passphrase length, send buffer.
//!
//! The protocol is `srt-tokio`'s, which runs in a task of its own for each connection, on a [contained] runtime:
//! whatever a peer does to it ends that connection, and nothing else. As the protocol defines, data that a bad link
//! cannot carry in time is lost, so that sending never falls behind. The socket is connected to the peer: datagrams
//! from elsewhere never arrive, and a closed port is noticed at once.

mod contained;
mod failure;
mod options;

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use srt_tokio::{
    SrtSocket,
    options::{ByteCount, KeySize, Passphrase, SocketOptions},
};
use tokio::{
    net::UdpSocket,
    time::{sleep, timeout},
};

pub use self::{
    contained::{panics, silence_panics},
    failure::CallFailure,
    options::CallOptions,
};
use super::stream_id::MAX_BYTES as MAX_STREAM_ID_BYTES;

/// Size of a message: seven transport packets, which every receiver accepts.
const MESSAGE_BYTES: usize = 7 * 188;
/// Silence of the peer after which the connection counts as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which the connection may accept no message; it always accepts one, except on a stalled machine.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay of a receiver's last output beyond the latency.
const CLOSE_MARGIN: Duration = Duration::from_millis(250);
/// Time for the end beyond the delivery of what is in flight.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Packets in flight and in wait of a retransmission: 10 s of 25 Mbit/s.
const SEND_BUFFER_PACKETS: u64 = 25_600;
/// Payload of a datagram without headers, by which the buffer is counted.
const PACKET_BYTES: u64 = 1456;
/// Messages of the peer that are discarded at a time; the rest follow with the next packets that are sent.
const MAX_DISCARDED: usize = 256;
/// Lengths of a passphrase that SRT allows.
const PASSPHRASE_BYTES: RangeInclusive<usize> = 10..=79;

/// Connection to a listener. Ends when dropped, without waiting for what is in flight.
#[derive(Debug)]
pub struct Caller {
    socket: SrtSocket,
}

impl Caller {
    /// Calls a checked address, and returns a connection on which media may be sent, within this time.
    pub async fn connect(
        remote: SocketAddr,
        options: CallOptions,
        within: Duration,
    ) -> Result<Self, CallFailure> {
        let socket_options = socket_options(&options, within)?;
        // The UDP socket too is part of the runtime that polls it.
        let call = contained::spawn(async move {
            let udp = connected(remote).await?;
            SrtSocket::builder()
                .set(|it| *it = socket_options)
                .socket(udp)
                .call(remote, options.stream_id.as_deref())
                .await
        });
        let call = call.map_err(|error| CallFailure::of_call(&error, within))?;
        match timeout(within, call).await {
            Ok(Ok(Ok(socket))) => Ok(Self { socket }),
            Ok(Ok(Err(error))) => Err(CallFailure::of_call(&error, within)),
            // The library gives up on some answers by a panic.
            Ok(Err(_)) => Err(CallFailure::NotUnderstood),
            Err(_) => Err(CallFailure::Unanswered { within }),
        }
    }

    /// The latency that both sides agreed on.
    pub fn latency(&self) -> Duration {
        let settings = self.socket.settings();
        // libsrt answers with its own latency in the field of the other direction.
        let (there, back) = (settings.send_tsbpd_latency, settings.recv_tsbpd_latency);
        there.max(back)
    }

    /// Sends whole transport packets. The receiver outputs them with the intervals at which they are sent here.
    pub async fn send(&mut self, mut packets: Bytes) -> Result<(), CallFailure> {
        self.discard_received()?;
        let now = Instant::now();
        while !packets.is_empty() {
            let message = packets.split_to(packets.len().min(MESSAGE_BYTES));
            match timeout(SEND_TIMEOUT, self.socket.feed((now, message))).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(CallFailure::Ended),
                Err(_) => return Err(CallFailure::Stuck),
            }
        }
        Ok(())
    }

    /// Waits for the end of the connection, for when there is nothing to send. Cancel safe.
    pub async fn ended(&mut self) -> CallFailure {
        while self.socket.next().await.is_some() {}
        CallFailure::Ended
    }

    /// Ends the stream once the receiver has had the time to take what was sent: most discard what they still hold
    /// when a caller shuts down.
    pub async fn close(mut self) {
        // A receiver's clock lags by the duration of the handshake.
        let lag = self.socket.settings().rtt.min(CLOSE_TIMEOUT);
        sleep(self.latency() + lag + CLOSE_MARGIN).await;
        let patience = 2 * self.latency() + CLOSE_TIMEOUT;
        let _ = timeout(patience, self.socket.close_and_finish()).await;
    }

    /// Discards what the peer sends, which would otherwise stall the connection. Fails once the connection is over.
    fn discard_received(&mut self) -> Result<(), CallFailure> {
        for _ in 0..MAX_DISCARDED {
            match self.socket.next().now_or_never() {
                Some(Some(_)) => {}
                Some(None) => return Err(CallFailure::Ended),
                None => break,
            }
        }
        Ok(())
    }
}

/// Opens a socket that receives from the peer alone.
async fn connected(remote: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match remote {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(remote).await?;
    Ok(socket)
}

fn socket_options(call: &CallOptions, within: Duration) -> Result<SocketOptions, CallFailure> {
    check(call.stream_id.as_deref(), call.passphrase.as_deref())?;
    let mut options = SocketOptions::default();
    options.connect.timeout = within;
    options.session.peer_idle_timeout = IDLE_TIMEOUT;
    options.sender.peer_latency = call.latency;
    options.receiver.latency = call.latency;
    options.sender.buffer_size = ByteCount(SEND_BUFFER_PACKETS * PACKET_BYTES);
    if let Some(passphrase) = &call.passphrase {
        let passphrase = Passphrase::try_from(passphrase.to_string());
        options.encryption.passphrase = Some(passphrase.map_err(|_| CallFailure::PASSPHRASE)?);
        // Every receiver supports AES-128.
        options.encryption.key_size = KeySize::AES128;
    }
    Ok(options)
}

fn check(stream_id: Option<&str>, passphrase: Option<&str>) -> Result<(), CallFailure> {
    if passphrase.is_some_and(|it| !PASSPHRASE_BYTES.contains(&it.len())) {
        return Err(CallFailure::PASSPHRASE);
    }
    if stream_id.is_some_and(|it| it.len() > MAX_STREAM_ID_BYTES) {
        return Err(CallFailure::STREAM_ID);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
