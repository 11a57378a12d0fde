//! Process of the WebRTC gateway: arguments, UDP socket and TCP listener, which stay over its restarts.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    net::{SocketAddr, TcpListener, UdpSocket},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
    },
    sync::Arc,
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use sluice_ingest::webrtc::{Playout, WebRtcSettings, message::FromGateway};
use tokio::net::UnixStream;
use tracing::info;

use super::{control::Control, outbox::Outbox};
use crate::{
    Error,
    live::{
        gateway::{self, Failure, Gateway, GatewayHost, GatewayNames},
        listener::bind_with,
        srt,
    },
};

/// Most free TCP ports that are tried until UDP has the same one.
const BIND_ATTEMPTS: u32 = 16;

/// The bound ports.
#[derive(Clone, Debug)]
pub struct Sockets {
    pub udp: Arc<UdpSocket>,
    /// `None`: no TCP.
    pub tcp: Option<Arc<TcpListener>>,
}

impl Sockets {
    /// Binds the addresses of the settings; `None` when WebRTC is turned off. Where both ports are free ones, they are the same.
    pub async fn bind(settings: &WebRtcSettings) -> Result<Option<Self>, Error> {
        if !settings.enabled {
            return Ok(None);
        }
        let Some(mut address) = settings.tcp_listen else {
            let udp = srt::bind("webrtc.listen", settings.listen).await?;
            return Ok(Some(Self { udp, tcp: None }));
        };
        if address.port() == 0 && settings.listen.port() == 0 {
            return bind_same(settings.listen, address).map(Some);
        }
        let udp = srt::bind("webrtc.listen", settings.listen).await?;
        if address.port() == 0 {
            address.set_port(port_of(udp.local_addr())?);
        }
        let tcp = bind_with("webrtc.tcp_listen", address, async || {
            TcpListener::bind(address)
        });
        let tcp = Some(tcp.await?);
        Ok(Some(Self { udp, tcp }))
    }

    pub fn udp_address(&self) -> Option<SocketAddr> {
        self.udp.local_addr().ok()
    }

    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.tcp.as_ref().and_then(|tcp| tcp.local_addr().ok())
    }
}

/// Binds one free port for both. TCP chooses it: the system gives listeners ports that outgoing connections seldom have, so that it is
/// free again after a restart.
fn bind_same(udp_address: SocketAddr, tcp_address: SocketAddr) -> Result<Sockets, Error> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let tcp = TcpListener::bind(tcp_address)
            .map_err(|source| unusable("webrtc.tcp_listen", tcp_address, source))?;
        let same = SocketAddr::new(udp_address.ip(), port_of(tcp.local_addr())?);
        match UdpSocket::bind(same) {
            Ok(udp) => {
                return Ok(Sockets {
                    udp: Arc::new(udp),
                    tcp: Some(Arc::new(tcp)),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts < BIND_ATTEMPTS => {}
            Err(source) => return Err(unusable("webrtc.listen", udp_address, source)),
        }
    }
}

fn unusable(setting: &str, address: SocketAddr, source: io::Error) -> Error {
    Error::Io {
        what: format!("{setting}: {address} cannot be used"),
        source,
    }
}

fn port_of(address: io::Result<SocketAddr>) -> Result<u16, Error> {
    let address = address.map_err(Error::io("the address that webrtc.listen is bound to"))?;
    Ok(address.port())
}

/// Parts of the gateway's loop, the same after each restart.
#[derive(Clone)]
pub(super) struct RtcGateway {
    pub sockets: Sockets,
    pub control: Arc<Control>,
    pub host: GatewayHost,
}

impl Gateway for RtcGateway {
    const NAMES: GatewayNames = GatewayNames {
        component: "WebRTC gateway",
        command: "rtc-gateway",
        setting: "webrtc.enabled",
        aftermath: "its viewers and publishers connect again",
    };

    fn host(&self) -> &GatewayHost {
        &self.host
    }

    fn arguments(&self) -> Vec<String> {
        let settings = &self.control.settings;
        let playout = match settings.playout {
            Playout::Immediate => "immediate",
            Playout::Adaptive => "adaptive",
        };
        let milliseconds = |duration: std::time::Duration| duration.as_millis().to_string();
        let mut arguments: Vec<String> = [
            ("--threads", settings.threads.to_string()),
            ("--max-sessions", settings.max_sessions.to_string()),
            ("--max-pending", settings.max_pending.to_string()),
            (
                "--handshake-timeout-ms",
                milliseconds(settings.handshake_timeout),
            ),
            ("--join-cache", settings.join_cache.as_u64().to_string()),
            ("--playout", playout.to_owned()),
            (
                "--keyframe-interval-ms",
                milliseconds(settings.keyframe_interval),
            ),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect();
        if self.sockets.tcp.is_some() {
            arguments.push("--tcp".to_owned());
        }
        arguments
    }

    fn output(&self) -> io::Result<OwnedFd> {
        self.sockets.udp.try_clone().map(OwnedFd::from)
    }

    /// Sends the TCP listener, with a byte that is no message.
    fn greet(&self, socket: &StdUnixStream) -> io::Result<()> {
        let Some(tcp) = &self.sockets.tcp else {
            return Ok(());
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let listener = [tcp.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&listener));
        sendmsg(
            socket,
            &[IoSlice::new(&[0])],
            &mut control,
            SendFlags::empty(),
        )?;
        Ok(())
    }

    fn note_ready(&self) {
        *self.control.failure.lock() = None;
    }

    /// Shown as a degradation, which does not make the service unready.
    fn note_parked(&self, reason: String) {
        *self.control.failure.lock() = Some(reason);
    }

    async fn serve(&self, socket: UnixStream) -> Result<(), Failure> {
        let (mut reading, writing) = socket.into_split();
        let outbox = Arc::new(Outbox::default());
        let _running = Running(&self.control);
        let reports = gateway::read_reports(&mut reading, FromGateway::decode, |report| {
            if report == FromGateway::Ready {
                info!("WebRTC is listened for");
                self.control.gateway_is_ready(outbox.clone());
                self.note_ready();
            }
            self.control.take(report);
        });
        tokio::select! {
            outcome = reports => outcome,
            failure = outbox.write_to(writing) => Err(failure),
            () = self.control.keep_swept() => Ok(()),
        }
    }
}

/// Ends the sessions with the gateway.
struct Running<'a>(&'a Control);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.gateway_is_gone();
    }
}
