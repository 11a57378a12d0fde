//! SRT gateway in the service: arguments, `/readyz`, UDP socket; its connections become publishers.
//!
//! Survives a restart (in `Args`): the bound UDP socket, so that the port stays, and the running sessions. May be lost:
//! the process with its connections, whose encoders reconnect. Messages of the gateway are read at once and put into bounded
//! queues, so that no session holds another back.

mod calls;
mod gateway_publisher;
mod passphrase;

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::OwnedFd,
    sync::Arc,
    time::Duration,
};

use sluice_ingest::srt::{SrtSettings, message::FromGateway};
use tokio::{net::UnixStream, sync::mpsc};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::info;

pub use passphrase::Passphrases;

use super::{
    Directory, LiveAuthorizer,
    gateway::{self, Failure, Gateway, GatewayHost, GatewayNames},
    listener::bind_with,
};
use crate::{Error, component::Component};
use calls::Calls;

/// Most orders of sessions that wait for the gateway; a session that ends waits for room.
const ORDERS: usize = 256;

/// Arguments of the loop, the same after each restart.
#[derive(Clone)]
pub struct Args {
    pub udp: Arc<UdpSocket>,
    pub authorizer: LiveAuthorizer,
    pub directory: Arc<Directory>,
    pub passphrases: Passphrases,
    pub settings: Arc<SrtSettings>,
    /// Interval at which the gateway reads its sockets; zero: as often as it can.
    pub read_interval: Duration,
    pub host: GatewayHost,
    pub sessions: TaskTracker,
}

/// Makes the component that runs the gateway.
pub fn component(args: Args) -> Component {
    Component::of_task(Args::NAMES.component, move || {
        gateway::keep_running(args.clone())
    })
}

/// Binds the UDP address of a setting, as [`bind`](super::listener::bind) does for TCP.
pub async fn bind(setting: &str, address: SocketAddr) -> Result<Arc<UdpSocket>, Error> {
    bind_with(setting, address, async || UdpSocket::bind(address)).await
}

impl Gateway for Args {
    const NAMES: GatewayNames = GatewayNames {
        component: "SRT gateway",
        command: "srt-gateway",
        setting: "srt.enabled",
        aftermath: "its encoders reconnect",
    };

    fn host(&self) -> &GatewayHost {
        &self.host
    }

    fn arguments(&self) -> Vec<String> {
        let milliseconds = |duration: Duration| duration.as_millis().to_string();
        let settings = &self.settings;
        [
            ("--latency-ms", milliseconds(settings.latency)),
            ("--idle-timeout-ms", milliseconds(settings.idle_timeout)),
            ("--read-interval-ms", milliseconds(self.read_interval)),
            ("--max-connections", settings.max_connections.to_string()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }

    fn output(&self) -> io::Result<OwnedFd> {
        self.udp.try_clone().map(OwnedFd::from)
    }

    async fn serve(&self, socket: UnixStream) -> Result<(), Failure> {
        let (mut reading, writing) = socket.into_split();
        let (orders, queue) = mpsc::channel(ORDERS);
        let publishing = gateway_publisher::run(self.clone(), writing, queue);
        let _publishing = AbortOnDropHandle::new(tokio::spawn(publishing));
        let mut calls = Calls::new(self, orders);
        gateway::read_reports(&mut reading, FromGateway::decode, |report| {
            if let FromGateway::Ready { version } = report {
                let (major, minor, patch) = (version >> 16, version >> 8 & 0xff, version & 0xff);
                info!(
                    libsrt = format!("{major}.{minor}.{patch}"),
                    "SRT is listened for"
                );
                self.note_ready();
            }
            calls.take(report);
        })
        .await
    }
}
