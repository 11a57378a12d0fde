//! Table of the ingest protocols (RTMP, RTMPS, SRT, RTSP, WHIP): sockets, components, encoder addresses, `addresses.json`, `sluice
//! doctor` checks.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, UdpSocket},
    path::PathBuf,
    sync::Arc,
};

use serde::Serialize;
use sluice_actors::{
    cluster::Peers,
    component::{Component, ComponentStatuses},
    live::{
        Directory, LiveAuthorizer,
        gateway::GatewayHost,
        listener::{self, Acceptor},
        pull,
        srt::{self, Passphrases},
    },
    network::NetworkLimit,
    outbound::Outbound,
};
use sluice_ingest::publish::Protocol;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    application::address::PublicAddress,
    config::Config,
    tls::{Certificates, TlsError},
};

/// Transport of a protocol's media. The functions make the component that serves it; `/readyz` names the component when
/// it is parked.
pub enum Transport {
    Tcp(
        &'static Listener,
        fn(&IngestContext, Arc<TcpListener>) -> Result<Component, TlsError>,
    ),
    Udp(
        &'static Listener,
        fn(&IngestContext, Arc<UdpSocket>) -> Component,
    ),
    /// The service connects to the sources.
    Outgoing(fn(&IngestContext) -> Component),
    /// Publishers send an offer by HTTP, and their media to the ports of WebRTC.
    Offered,
}

/// An address that is listened on.
pub struct Listener {
    /// Its check in `sluice doctor`.
    pub check: &'static str,
    /// The setting of the address.
    pub setting: &'static str,
    /// `None`: turned off.
    pub address: fn(&Config) -> Option<SocketAddr>,
    server: fn(&Config, &PublicAddress, u16) -> String,
}

impl Listener {
    /// Returns the server address to paste into an encoder, for a listener on that port.
    pub fn server(&self, config: &Config, public: &PublicAddress, port: u16) -> String {
        (self.server)(config, public, port)
    }
}

/// Parts of the process that the components of all protocols need.
pub struct IngestContext {
    pub config: Arc<Config>,
    pub authorizer: LiveAuthorizer,
    pub directory: Arc<Directory>,
    pub passphrases: Passphrases,
    pub certificates: Option<Arc<Certificates>>,
    /// Other nodes of the cluster.
    pub peers: Peers,
    pub outbound: Outbound,
    /// This program, which is started again as a gateway.
    pub program: PathBuf,
    pub component_statuses: ComponentStatuses,
    pub rtmp_permits: Arc<Semaphore>,
    pub rtmp_unadmitted: Arc<NetworkLimit>,
    /// Sessions of publishers.
    pub sessions: TaskTracker,
    /// Ends them.
    pub stop: CancellationToken,
}

/// Returns the row of a protocol.
pub fn transport(protocol: Protocol) -> &'static Transport {
    match protocol {
        Protocol::Rtmp => &RTMP_TRANSPORT,
        Protocol::Rtmps => &RTMPS_TRANSPORT,
        Protocol::Srt => &SRT_TRANSPORT,
        Protocol::Rtsp => &RTSP_TRANSPORT,
        Protocol::Whip => &Transport::Offered,
    }
}

/// Returns the transport of a protocol's listener, `tcp` or `udp`, and the component that serves it.
pub fn component_of(protocol: Protocol) -> (&'static str, Option<&'static str>) {
    match protocol {
        Protocol::Rtmp => ("tcp", Some("RTMP listener")),
        Protocol::Rtmps => ("tcp", Some("RTMPS listener")),
        Protocol::Srt => ("udp", Some("SRT gateway")),
        Protocol::Rtsp | Protocol::Whip => ("tcp", None),
    }
}

pub static RTMP: Listener = Listener {
    check: "rtmp port",
    setting: "rtmp.listen",
    address: |config| Some(config.rtmp.listen),
    server: |config, public, port| public.rtmp_server(&config.rtmp.public_url, port),
};

static RTMP_TRANSPORT: Transport = Transport::Tcp(&RTMP, |context, socket| {
    Ok(listener::component(
        "RTMP listener",
        context.rtmp(socket, None),
    ))
});

pub static RTMPS: Listener = Listener {
    check: "rtmps port",
    setting: "rtmp.tls_listen",
    address: |config| config.http.tls().map(|_| config.rtmp.tls_listen),
    server: |config, public, port| public.rtmps_server(&config.rtmp.public_url, port),
};

static RTMPS_TRANSPORT: Transport = Transport::Tcp(&RTMPS, |context, socket| {
    let tls = context.acceptor()?;
    Ok(listener::component(
        "RTMPS listener",
        context.rtmp(socket, Some(tls)),
    ))
});

pub static SRT: Listener = Listener {
    check: "srt port",
    setting: "srt.listen",
    address: |config| config.srt.enabled.then_some(config.srt.listen),
    server: |config, public, port| public.srt_server(&config.srt.public_url, port),
};

static SRT_TRANSPORT: Transport = Transport::Udp(&SRT, |context, udp| {
    srt::component(srt::Args {
        udp,
        authorizer: context.authorizer.clone(),
        directory: context.directory.clone(),
        passphrases: context.passphrases.clone(),
        settings: Arc::new(context.config.srt.clone()),
        read_interval: context.config.live.read_interval,
        host: context.gateway_host(),
        sessions: context.sessions.clone(),
    })
});

static RTSP_TRANSPORT: Transport = Transport::Outgoing(|context| {
    pull::component(pull::Args {
        authorizer: context.authorizer.clone(),
        directory: context.directory.clone(),
        peers: context.peers.clone(),
        outbound: context.outbound.clone(),
        settings: Arc::new(context.config.rtsp.clone()),
        sessions: context.sessions.clone(),
        stop: context.stop.child_token(),
    })
});

impl IngestContext {
    fn rtmp(&self, socket: Arc<TcpListener>, tls: Option<Acceptor>) -> listener::Args {
        listener::Args {
            socket,
            authorizer: self.authorizer.clone(),
            settings: Arc::new(self.config.rtmp.clone()),
            tls,
            read_interval: self.config.live.read_interval,
            permits: self.rtmp_permits.clone(),
            unadmitted: self.rtmp_unadmitted.clone(),
            sessions: self.sessions.clone(),
            stop: self.stop.child_token(),
        }
    }

    fn gateway_host(&self) -> GatewayHost {
        GatewayHost {
            program: self.program.clone(),
            sandbox: self.config.image_workers.sandbox,
            component_statuses: self.component_statuses.clone(),
            stop: self.stop.child_token(),
        }
    }

    fn acceptor(&self) -> Result<Acceptor, TlsError> {
        let certificates = self.certificates.as_ref();
        let certificates = certificates.expect("the row has an address only with a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(certificates.acceptor_config(&[])?));
        Ok(Arc::new(move || acceptor.clone()))
    }
}

impl Transport {
    /// Returns the listener; `None` for a protocol that has none of its own.
    pub fn listener(&self) -> Option<&'static Listener> {
        match self {
            Self::Tcp(listener, _) | Self::Udp(listener, _) => Some(listener),
            Self::Outgoing(_) | Self::Offered => None,
        }
    }
}

/// A protocol whose socket is bound, if it has one.
pub struct Bound {
    pub protocol: Protocol,
    pub address: Option<SocketAddr>,
    start: Start,
}

type Start = Box<dyn FnOnce(&IngestContext) -> Result<Component, TlsError> + Send>;

impl Bound {
    /// Starts the component that serves the protocol.
    pub fn component(self, context: &IngestContext) -> Result<Component, TlsError> {
        (self.start)(context)
    }
}

fn unknown(listener: &Listener, source: std::io::Error) -> sluice_actors::Error {
    sluice_actors::Error::Io {
        what: format!("the address that {} is bound to", listener.setting),
        source,
    }
}

/// The addresses that are listened on, by protocol; `null` for one that is turned off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Listening(BTreeMap<&'static str, Option<SocketAddr>>);

impl Listening {
    pub fn of(protocols: &[Bound]) -> Self {
        let address = |protocol: Protocol| {
            let bound = protocols.iter().find(|bound| bound.protocol == protocol);
            bound.and_then(|bound| bound.address)
        };
        let listened = Protocol::ALL
            .into_iter()
            .filter(|protocol| transport(*protocol).listener().is_some());
        Self(
            listened
                .map(|protocol| (protocol.as_str(), address(protocol)))
                .collect(),
        )
    }

    /// Every protocol that can be listened for, with its address.
    pub fn addresses(&self) -> impl Iterator<Item = (Protocol, Option<SocketAddr>)> {
        Protocol::ALL
            .into_iter()
            .filter_map(|protocol| Some((protocol, *self.0.get(protocol.as_str())?)))
    }

    pub fn port(&self, protocol: Protocol) -> Option<u16> {
        let address = self.0.get(protocol.as_str()).copied().flatten();
        address.map(|address| address.port())
    }

    /// Every server address for encoders, with its protocol.
    pub fn servers(
        &self,
        config: &Config,
        public: &PublicAddress,
    ) -> impl Iterator<Item = (Protocol, String)> {
        Protocol::ALL.into_iter().filter_map(|protocol| {
            let listener = transport(protocol).listener()?;
            let port = self.port(protocol)?;
            Some((protocol, listener.server(config, public, port)))
        })
    }
}

/// Binds the sockets of all protocols that are turned on.
pub async fn bind(config: &Config) -> Result<Vec<Bound>, sluice_actors::Error> {
    let mut bound = Vec::new();
    for protocol in Protocol::ALL {
        let transport = transport(protocol);
        let address = transport
            .listener()
            .and_then(|listener| (listener.address)(config));
        let (address, start): (_, Start) = match (transport, address) {
            (Transport::Tcp(listener, start), Some(address)) => {
                let socket = listener::bind(listener.setting, address).await?;
                let address = socket
                    .local_addr()
                    .map_err(|source| unknown(listener, source))?;
                (Some(address), Box::new(|context| start(context, socket)))
            }
            (Transport::Udp(listener, start), Some(address)) => {
                let socket = srt::bind(listener.setting, address).await?;
                let address = socket
                    .local_addr()
                    .map_err(|source| unknown(listener, source))?;
                (
                    Some(address),
                    Box::new(|context| Ok(start(context, socket))),
                )
            }
            (Transport::Outgoing(start), _) => (None, Box::new(|context| Ok(start(context)))),
            (Transport::Tcp(..) | Transport::Udp(..), None) | (Transport::Offered, _) => continue,
        };
        bound.push(Bound {
            protocol,
            address,
            start,
        });
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_is_turned_on_is_bound_and_listed() {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut config = Config::default();
        (config.rtmp.listen, config.srt.listen) = (free, free);
        let bound = bind(&config).await.unwrap();
        let protocols: Vec<Protocol> = bound.iter().map(|it| it.protocol).collect();
        assert_eq!(
            protocols,
            [Protocol::Rtmp, Protocol::Srt, Protocol::Rtsp],
            "RTMPS needs a certificate"
        );
        let listening = Listening::of(&bound);
        let address = |index: usize| bound[index].address.unwrap();
        assert_eq!(
            json!(listening),
            json!({"rtmp": address(0), "rtmps": null, "srt": address(1)})
        );
        let public = PublicAddress::of("https://media.test", &Default::default(), &[]);
        let servers: Vec<String> = listening.servers(&config, &public).map(|it| it.1).collect();
        let (rtmp, srt) = (address(0).port(), address(1).port());
        assert_eq!(
            servers,
            [
                format!("rtmp://media.test:{rtmp}/live"),
                format!("srt://media.test:{srt}")
            ]
        );
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named_by_its_setting() {
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut config = Config::default();
        config.rtmp.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        config.srt.listen = taken.local_addr().unwrap();
        let Err(error) = bind(&config).await else {
            panic!("two sockets on one port");
        };
        assert!(error.to_string().starts_with("srt.listen: "), "{error}");
    }
}
