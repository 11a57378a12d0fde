//! An authorizer that takes notes, and a listener that serves it.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use sluice_ingest::{
    Error,
    publish::{
        Closed, Ended, Protocol, PublishAuthorizer, PublishRequest, PublishSession, Rejection,
        SessionReport,
    },
    rtmp::{RtmpSettings, serve},
};
use sluice_media::unit::Unit;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

/// Bound of any wait in a test.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Records of what the authorizer received, from all connections.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    pub requests: Vec<PublishRequest>,
    pub units: Vec<Unit>,
    pub largest_delivery: usize,
    pub report: Option<SessionReport>,
    pub ends: Vec<Ended>,
}

#[derive(Clone)]
pub struct RecordingAuthorizer {
    notes: Arc<watch::Sender<Notes>>,
    rejection: Option<Rejection>,
    close: CancellationToken,
    /// Deliveries wait while this is `false`.
    taking: watch::Receiver<bool>,
}

impl RecordingAuthorizer {
    pub fn new() -> Self {
        Self::holding(watch::channel(true).1)
    }

    pub fn refusing(rejection: Rejection) -> Self {
        Self {
            rejection: Some(rejection),
            ..Self::new()
        }
    }

    /// Takes units only while `taking` is true.
    pub fn holding(taking: watch::Receiver<bool>) -> Self {
        Self {
            notes: Arc::new(watch::channel(Notes::default()).0),
            rejection: None,
            close: CancellationToken::new(),
            taking,
        }
    }

    pub fn notes(&self) -> Notes {
        self.notes.borrow().clone()
    }

    /// Ends every publish from the service's side.
    pub fn close_all(&self) {
        self.close.cancel();
    }

    /// Waits until the notes fulfil a condition, and returns them.
    pub async fn wait_for(&self, what: &str, condition: impl FnMut(&Notes) -> bool) -> Notes {
        let mut notes = self.notes.subscribe();
        let waiting = tokio::time::timeout(DEADLINE, notes.wait_for(condition)).await;
        match waiting {
            Ok(notes) => notes.expect("the authorizer keeps its sender").clone(),
            Err(_) => panic!("no {what}: {:?}", self.notes().ends),
        }
    }
}

impl PublishAuthorizer for RecordingAuthorizer {
    type Session = RecordingSession;

    async fn admit(&self, request: PublishRequest) -> Result<RecordingSession, Rejection> {
        self.notes.send_modify(|notes| notes.requests.push(request));
        match &self.rejection {
            Some(rejection) => Err(rejection.clone()),
            None => Ok(RecordingSession(self.clone())),
        }
    }
}

pub struct RecordingSession(RecordingAuthorizer);

impl PublishSession for RecordingSession {
    /// Like the service's session, takes units that had arrived when it was closed.
    async fn deliver(&mut self, units: &mut Vec<Unit>) -> Result<(), Closed> {
        self.0
            .taking
            .wait_for(|taking| *taking)
            .await
            .map_err(|_| Closed)?;
        self.0.notes.send_modify(|notes| {
            notes.largest_delivery = notes.largest_delivery.max(units.len());
            notes.units.append(units);
        });
        match self.0.close.is_cancelled() {
            true => Err(Closed),
            false => Ok(()),
        }
    }

    fn report(&mut self, report: SessionReport) {
        self.0
            .notes
            .send_modify(|notes| notes.report = Some(report));
    }

    async fn closed(&self) -> Closed {
        self.0.close.cancelled().await;
        Closed
    }

    async fn end(self, how: Ended) {
        self.0.notes.send_modify(|notes| notes.ends.push(how));
    }
}

/// A listener on a free loopback port. Dropping it stops its connections.
pub struct Server {
    pub address: SocketAddr,
    pub stop: CancellationToken,
    /// Certificate that a client must trust; behind TLS only.
    certificate: Option<CertificateDer<'static>>,
    outcomes: mpsc::UnboundedReceiver<Result<(), Error>>,
    received: Arc<Mutex<Vec<u8>>>,
    is_reset: Arc<AtomicBool>,
}

impl Server {
    pub async fn start(authorizer: &RecordingAuthorizer) -> Self {
        Self::listen(authorizer, None).await
    }

    /// Starts the same behind TLS, with a certificate of its own.
    pub async fn start_tls(authorizer: &RecordingAuthorizer) -> Self {
        let (acceptor, certificate) = tls_acceptor();
        let mut server = Self::listen(authorizer, Some(acceptor)).await;
        server.certificate = Some(certificate);
        server
    }

    /// Connects a client's socket behind TLS.
    pub async fn connect_tls(&self) -> TlsStream<TcpStream> {
        let mut trusted = rustls::RootCertStore::empty();
        trusted.add(self.certificate.clone().unwrap()).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await
            .unwrap()
    }

    async fn listen(authorizer: &RecordingAuthorizer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let (outcome, outcomes) = mpsc::unbounded_channel();
        let received = Arc::new(Mutex::new(Vec::new()));
        let is_reset = Arc::new(AtomicBool::new(false));
        let (authorizer, stopped) = (authorizer.clone(), stop.clone());
        let (record, reset) = (Arc::clone(&received), Arc::clone(&is_reset));
        tokio::spawn(async move {
            while let Ok((socket, remote)) = listener.accept().await {
                let (authorizer, stop) = (authorizer.clone(), stopped.clone());
                let (tls, outcome) = (tls.clone(), outcome.clone());
                let socket = Recorded {
                    socket,
                    record: Arc::clone(&record),
                    is_reset: Arc::clone(&reset),
                };
                tokio::spawn(async move {
                    let settings = RtmpSettings::default();
                    let ended = match tls {
                        None => {
                            serve(socket, remote, Protocol::Rtmp, &authorizer, &settings, stop)
                                .await
                        }
                        Some(tls) => {
                            let socket = tls.accept(socket).await.unwrap();
                            serve(
                                socket,
                                remote,
                                Protocol::Rtmps,
                                &authorizer,
                                &settings,
                                stop,
                            )
                            .await
                        }
                    };
                    let _ = outcome.send(ended);
                });
            }
        });
        Self {
            address,
            stop,
            certificate: None,
            outcomes,
            received,
            is_reset,
        }
    }

    /// From here on writes fail as on a connection that the client has reset; what it had sent can still be read.
    pub fn reset(&self) {
        self.is_reset.store(true, Ordering::Release);
    }

    pub fn url(&self, app: &str, stream: &str) -> String {
        format!("rtmp://{}/{app}/{stream}", self.address)
    }

    /// Returns how the next connection ended.
    pub async fn outcome(&mut self) -> Result<(), Error> {
        tokio::time::timeout(DEADLINE, self.outcomes.recv())
            .await
            .expect("no connection ended in time")
            .expect("the listener runs")
    }

    /// All bytes that clients sent; of one client's, their capture.
    pub fn received(&self) -> Vec<u8> {
        self.received.lock().clone()
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn tls_acceptor() -> (TlsAcceptor, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    (acceptor, made.cert.der().clone())
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Socket that records what was read from it.
struct Recorded {
    socket: TcpStream,
    record: Arc<Mutex<Vec<u8>>>,
    is_reset: Arc<AtomicBool>,
}

impl AsyncRead for Recorded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(context, buffer);
        self.record
            .lock()
            .extend_from_slice(&buffer.filled()[before..]);
        polled
    }
}

impl AsyncWrite for Recorded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if self.is_reset.load(Ordering::Acquire) {
            return Poll::Ready(Err(std::io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
