//! RTMP and RTMPS listeners: accepting publishers, `rtmp.max_connections`, `rtmp.max_unadmitted`, TLS handshake, a port that
//! is taken.
//!
//! Survives a restart (in `Args`): the bound socket, the running sessions and the permits, so that a crash of the accept
//! loop costs no stream. A connection beyond the permits is closed at once, and one of a client network that has too many
//! connections which have shown no admitted key.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sluice_ingest::{
    publish::{Protocol, PublishAuthorizer, PublishRequest, Rejection},
    rtmp::{self, RtmpSettings},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{debug, warn};

use super::{
    LiveAuthorizer, LiveSession,
    batched_stream::{BatchedStream, BatchingSwitch},
};
use crate::{
    Error,
    component::Component,
    network::{KeyedPermit, NetworkLimit},
};

/// Pause after a failed accept (out of descriptors, for instance) or bind, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for which an address that is in use is tried again: a predecessor that was killed may hold it for a moment.
const BIND_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes an encrypted connection of an accepted socket; called for each connection, so that certificates can change.
pub type Acceptor = Arc<dyn Fn() -> TlsAcceptor + Send + Sync>;

/// Arguments of a listener, the same after each restart.
#[derive(Clone)]
pub struct Args {
    pub socket: Arc<TcpListener>,
    pub authorizer: LiveAuthorizer,
    pub settings: Arc<RtmpSettings>,
    /// RTMPS when given.
    pub tls: Option<Acceptor>,
    /// Interval at which admitted publishers are read; zero: at every packet.
    pub read_interval: Duration,
    pub permits: Arc<Semaphore>,
    /// Limit of connections that have not been admitted.
    pub unadmitted: Arc<NetworkLimit>,
    pub sessions: TaskTracker,
    /// Ends every session politely.
    pub stop: CancellationToken,
}

/// Binds the address of a setting; one that is in use is tried again for `BIND_TIMEOUT`.
pub async fn bind(setting: &str, address: SocketAddr) -> Result<Arc<TcpListener>, Error> {
    bind_with(setting, address, async || TcpListener::bind(address).await).await
}

/// [`bind`] for any socket.
pub(super) async fn bind_with<S>(
    setting: &str,
    address: SocketAddr,
    mut bind: impl AsyncFnMut() -> io::Result<S>,
) -> Result<Arc<S>, Error> {
    let deadline = tokio::time::Instant::now() + BIND_TIMEOUT;
    loop {
        match bind().await {
            Ok(socket) => return Ok(Arc::new(socket)),
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && tokio::time::Instant::now() < deadline =>
            {
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            Err(source) => {
                return Err(Error::Io {
                    what: format!("{setting}: {address} cannot be used"),
                    source,
                });
            }
        }
    }
}

/// Makes the component that runs a listener.
pub fn component(name: &'static str, args: Args) -> Component {
    Component::of_task(name, move || accept_all(args.clone()))
}

async fn accept_all(args: Args) {
    loop {
        let (socket, remote) = match args.socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = args.permits.clone().try_acquire_owned() else {
            debug!(%remote, "a connection was closed: rtmp.max_connections is reached");
            continue;
        };
        let Some(place) = args.unadmitted.take_for(remote.ip()) else {
            debug!(%remote, "a connection was closed: rtmp.max_unadmitted is reached");
            continue;
        };
        let session = args.clone();
        args.sessions.spawn(async move {
            serve(socket, remote, place, &session).await;
            drop(permit);
        });
    }
}

async fn serve(socket: TcpStream, remote: SocketAddr, place: KeyedPermit<IpAddr>, args: &Args) {
    let _ = socket.set_nodelay(true);
    let switch = BatchingSwitch::default();
    let authorizer = BatchingAuthorizer {
        authorizer: args.authorizer.clone(),
        switch: switch.clone(),
        place: Arc::new(Mutex::new(Some(place))),
    };
    let socket = BatchedStream::new(socket, switch, args.read_interval);
    let settings = &args.settings;
    let served = match &args.tls {
        None => {
            rtmp::serve(
                socket,
                remote,
                Protocol::Rtmp,
                &authorizer,
                settings,
                args.stop.clone(),
            )
            .await
        }
        Some(acceptor) => {
            match tokio::time::timeout(settings.handshake_timeout, acceptor().accept(socket)).await
            {
                Ok(Ok(socket)) => {
                    rtmp::serve(
                        socket,
                        remote,
                        Protocol::Rtmps,
                        &authorizer,
                        settings,
                        args.stop.clone(),
                    )
                    .await
                }
                Ok(Err(error)) => return debug!(%remote, %error, "a TLS handshake failed"),
                Err(_) => return debug!(%remote, "a TLS handshake took too long"),
            }
        }
    };
    if let Err(error) = served {
        debug!(%remote, %error, "a publisher's connection ended");
    }
}

/// Admits as the authorizer behind it; an admitted publisher's socket is read at an interval, and its place among the
/// unadmitted comes free.
#[derive(Clone)]
struct BatchingAuthorizer {
    authorizer: LiveAuthorizer,
    switch: BatchingSwitch,
    place: Arc<Mutex<Option<KeyedPermit<IpAddr>>>>,
}

impl PublishAuthorizer for BatchingAuthorizer {
    type Session = LiveSession;

    async fn admit(&self, request: PublishRequest) -> Result<LiveSession, Rejection> {
        let admitted = self.authorizer.admit(request).await;
        if let Ok(session) = &admitted {
            self.switch.turn_on(session.tap());
            drop(self.place.lock().take());
        }
        admitted
    }
}
