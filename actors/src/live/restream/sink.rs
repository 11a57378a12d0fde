//! Connection to an output's target: a publish by RTMP or RTMPS, or an SRT call with MPEG-TS.

use std::net::SocketAddr;

use bytes::BytesMut;
use sluice_ingest::{
    rtmp::publish::{self, Publisher},
    srt::caller::Caller,
    ts::mux::Muxer,
};
use sluice_media::unit::Unit;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    RestreamSettings,
    url::{OutputUrl, Scheme},
};
use crate::outbound::{Outbound, Target};

/// A socket to a server, encrypted or not.
pub(super) trait TargetStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> TargetStream for T {}

/// A target that takes the stream. Errors are for the person who gave its address.
pub(super) enum Sink {
    Rtmp(Box<Publisher<Box<dyn TargetStream>>>),
    Srt(Box<Connecting>),
}

pub(super) struct Connecting {
    caller: Caller,
    muxer: Muxer,
    packets: BytesMut,
}

impl Sink {
    /// Dials the checked address, and asks to publish.
    pub(super) async fn open(
        url: &OutputUrl,
        outbound: &Outbound,
        settings: &RestreamSettings,
    ) -> Result<Self, String> {
        let target = url.target(outbound).map_err(|it| it.to_string())?;
        match url.way() {
            Scheme::Rtmp { app, stream } => {
                let destination = publish::PublishTarget {
                    app: app.as_str().into(),
                    stream: stream.as_str().into(),
                    tc_url: url.tc_url(app).into(),
                };
                let line = outbound.connect_to(&target).await.map_err(message_of)?;
                let line: Box<dyn TargetStream> = Box::new(line);
                let opened = Publisher::open(line, destination, settings.patience()).await;
                let publisher = opened.map_err(|failure| failure.to_string())?;
                Ok(Self::Rtmp(Box::new(publisher)))
            }
            Scheme::Srt(options) => {
                let remote = remote(&target, url.port(), outbound).await?;
                let called =
                    Caller::connect(remote, options.clone(), settings.answer_timeout).await;
                Ok(Self::Srt(Box::new(Connecting {
                    caller: called.map_err(|failure| failure.to_string())?,
                    muxer: Muxer::new(),
                    packets: BytesMut::new(),
                })))
            }
        }
    }

    /// Sends units as [`Publisher::send`] does; returns the bytes sent.
    pub(super) async fn send(&mut self, units: &[Unit]) -> Result<u64, String> {
        match self {
            Self::Rtmp(publisher) => {
                let sent = publisher.send(units).await;
                sent.map_err(|failure| failure.to_string())
            }
            Self::Srt(call) => call.send(units).await,
        }
    }

    /// See [`Publisher::attend`].
    pub(super) async fn attend(&mut self) -> Result<(), String> {
        match self {
            Self::Rtmp(publisher) => {
                let attended = publisher.attend().await;
                attended.map_err(|failure| failure.to_string())
            }
            Self::Srt(call) => Err(call.caller.ended().await.to_string()),
        }
    }

    /// Ends the target's stream politely.
    pub(super) async fn close(self) {
        match self {
            Self::Rtmp(publisher) => publisher.close().await,
            Self::Srt(call) => {
                let Connecting { caller, .. } = *call;
                caller.close().await;
            }
        }
    }
}

impl Connecting {
    async fn send(&mut self, units: &[Unit]) -> Result<u64, String> {
        for unit in units {
            let pushed = self.muxer.push(unit, &mut self.packets);
            pushed.map_err(|unsupported| unsupported.to_string())?;
        }
        let packets = self.packets.split().freeze();
        let bytes = packets.len() as u64;
        let sent = self.caller.send(packets).await;
        sent.map_err(|failure| failure.to_string())?;
        Ok(bytes)
    }
}

/// Resolves the host to an address that was checked.
async fn remote(target: &Target, port: u16, outbound: &Outbound) -> Result<SocketAddr, String> {
    let addresses = outbound.addresses_of(target).await.map_err(message_of)?;
    let first = addresses.first().ok_or("its name has no address")?;
    Ok(SocketAddr::new(*first, port))
}

/// Returns the connector's message without its HTTP scheme.
fn message_of(error: crate::outbound::Error) -> String {
    let text = error.to_string();
    text.replacen("https://", "", 1).replacen("http://", "", 1)
}
