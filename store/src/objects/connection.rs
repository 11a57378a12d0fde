//! HTTP/1.1 connections to the object store: a bound for all of them, idle ones kept for the next request, stalls and answers
//! without end cut off.

use std::{
    convert::Infallible,
    error::Error as _,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::{CertificateError, ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Semaphore,
    task::AbortHandle,
    time::{Instant, timeout},
};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::{failure::Failure, limits::Limits};
use crate::Error;

/// Time for which an idle connection is kept; servers close theirs after 20 s and more.
const KEEP_IDLE: Duration = Duration::from_secs(15);
/// Longest wait until the task of an idle connection says whether it is still open; no byte is sent for that.
const READY_WITHIN: Duration = Duration::from_millis(500);
/// Bytes of an answer's head.
const MAX_HEAD: usize = 64 << 10;
/// Bytes of the answer that explains a failure.
const MAX_EXPLANATION: usize = 64 << 10;
/// Bytes of a request's body that hyper takes at a time.
const STEP: usize = 64 << 10;

/// Connections to one server.
pub(super) struct Connections {
    server: Server,
    limits: Limits,
    /// A permit for each connection that is in use; the idle ones are among the bound too, since a request takes one first.
    permits: Semaphore,
    /// The one that was used last is the last.
    idle: Mutex<Vec<Connection>>,
}

/// Complete answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Connections {
    pub(super) fn new(url: &Url, at_once: usize, limits: Limits) -> Result<Self, Error> {
        Ok(Self {
            server: Server::new(url)?,
            limits,
            permits: Semaphore::new(at_once),
            idle: Mutex::new(Vec::new()),
        })
    }

    /// Sends a request and reads its answer: up to `max_body` bytes of a success. Adds the bytes of both bodies to `moved` while
    /// they move. Waits for a free connection; the caller has the deadline.
    pub(super) async fn exchange(
        &self,
        request: &Request<Bytes>,
        max_body: usize,
        moved: &Arc<AtomicU64>,
    ) -> Result<Answer, Failure> {
        let permit = self.permits.acquire().await;
        let _permit = permit.expect("the permits are never closed");
        let (mut connection, response) = self.send(request, moved).await?;
        let (head, mut body) = response.into_parts();
        let most = match head.status.is_success() {
            true => max_body,
            false => MAX_EXPLANATION,
        };
        let body = self.read(&mut body, most, moved).await?;
        connection.used_at = Instant::now();
        if !connection.sender.is_closed() {
            self.idle.lock().push(connection);
        }
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Sends by an idle connection, or by a new one. An idle one that the server has closed costs nothing but the next one.
    async fn send(
        &self,
        request: &Request<Bytes>,
        moved: &Arc<AtomicU64>,
    ) -> Result<(Connection, Response<Incoming>), Failure> {
        while let Some(mut connection) = self.take_idle() {
            let ready = timeout(READY_WITHIN, connection.sender.ready()).await;
            if !matches!(ready, Ok(Ok(()))) {
                continue;
            }
            match self.head(&mut connection, request, moved).await {
                Ok(response) => return Ok((connection, response)),
                Err(Broken::Closed(_)) => {}
                Err(Broken::Stalled(reason)) => return Err(Failure::Transient(reason)),
            }
        }
        let mut connection = self.connect().await?;
        match self.head(&mut connection, request, moved).await {
            Ok(response) => Ok((connection, response)),
            Err(Broken::Closed(reason) | Broken::Stalled(reason)) => {
                Err(Failure::Transient(reason))
            }
        }
    }

    /// Takes the connection that was used last; closes those that were idle for long.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let now = Instant::now();
        let old = idle
            .iter()
            .take_while(|it| now.duration_since(it.used_at) >= KEEP_IDLE)
            .count();
        let closed: Vec<Connection> = idle.drain(..old).collect();
        let taken = idle.pop();
        drop(idle);
        drop(closed);
        taken
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let connected = timeout(self.limits.connect, self.server.connect()).await;
        let stream = match connected {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(self.unreachable(&explain_connect(&error))),
            Err(_) => {
                let reason = format!("no connection within {:?}", self.limits.connect);
                return Err(self.unreachable(&reason));
            }
        };
        let handshake = http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, driver) = handshake.map_err(|error| self.unreachable(&explain(&error)))?;
        let driver = tokio::spawn(async move {
            // The request that waits for the answer has the error.
            let _ended = driver.await;
        });
        Ok(Connection {
            sender,
            used_at: Instant::now(),
            _driver: Driver(driver.abort_handle()),
        })
    }

    fn unreachable(&self, reason: &str) -> Failure {
        let Server { host, port, .. } = &self.server;
        Failure::Transient(format!("cannot be reached at {host}:{port}: {reason}"))
    }

    /// Sends a request and waits for the head of its answer, for as long as bytes of the request are taken.
    async fn head(
        &self,
        connection: &mut Connection,
        request: &Request<Bytes>,
        moved: &Arc<AtomicU64>,
    ) -> Result<Response<Incoming>, Broken> {
        let mut seen = moved.load(Relaxed);
        let request = request.clone().map(|bytes| Upload {
            bytes,
            moved: moved.clone(),
        });
        let mut response = pin!(connection.sender.send_request(request));
        loop {
            match timeout(self.limits.stall, &mut response).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => {
                    let reason = format!("closed the connection: {}", explain(&error));
                    return Err(Broken::Closed(reason));
                }
                Err(_) if moved.load(Relaxed) > seen => seen = moved.load(Relaxed),
                Err(_) => {
                    let reason = format!("did not answer for {:?}", self.limits.stall);
                    return Err(Broken::Stalled(reason));
                }
            }
        }
    }

    async fn read(
        &self,
        body: &mut Incoming,
        most: usize,
        moved: &AtomicU64,
    ) -> Result<Bytes, Failure> {
        let too_large = || {
            Failure::rejected(
                format!("answers with more than {most} bytes"),
                "store.objects_url must lead to a bucket or prefix that only this service writes",
            )
        };
        let announced = body.size_hint().lower();
        if announced > most as u64 {
            return Err(too_large());
        }
        let mut bytes = BytesMut::with_capacity(announced as usize);
        loop {
            let frame = match timeout(self.limits.stall, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return Ok(bytes.freeze()),
                Ok(Some(Err(error))) => {
                    let reason = format!("broke off its answer: {}", explain(&error));
                    return Err(Failure::Transient(reason));
                }
                Err(_) => {
                    let reason = format!("sent nothing of its answer for {:?}", self.limits.stall);
                    return Err(Failure::Transient(reason));
                }
            };
            // Trailers have nothing that counts.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > most {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
            moved.fetch_add(data.len() as u64, Relaxed);
        }
    }
}

/// Connection that is idle or has one request. Dropping it closes it.
struct Connection {
    sender: SendRequest<Upload>,
    used_at: Instant,
    _driver: Driver,
}

struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reason why there is no head of an answer.
enum Broken {
    Closed(String),
    Stalled(String),
}

/// Body of a request, with a count of the bytes that were taken to be sent.
struct Upload {
    bytes: Bytes,
    moved: Arc<AtomicU64>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.bytes.len().min(STEP);
        let step = self.bytes.split_to(length);
        self.moved.fetch_add(length as u64, Relaxed);
        Poll::Ready(Some(Ok(Frame::data(step))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

struct Server {
    host: Host<String>,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Server {
    fn new(url: &Url) -> Result<Self, Error> {
        let unusable = |reason: &str| Error::Unsupported(format!("store.objects_url: {reason}"));
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(unusable("the endpoint must have a host"));
        };
        let host = host.to_owned();
        let tls = match url.scheme() {
            "https" => {
                let name = server_name(&host)
                    .ok_or_else(|| unusable("no certificate can have the endpoint's name"))?;
                let connector = connector().map_err(|error| unusable(&error.to_string()))?;
                Some((connector, name))
            }
            _ => None,
        };
        Ok(Self { host, port, tls })
    }

    async fn connect(&self) -> io::Result<Box<dyn Io>> {
        let stream = match &self.host {
            Host::Domain(name) => TcpStream::connect((name.as_str(), self.port)).await?,
            Host::Ipv4(v4) => TcpStream::connect((*v4, self.port)).await?,
            Host::Ipv6(v6) => TcpStream::connect((*v6, self.port)).await?,
        };
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// Makes the connector with the system's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR.
fn connector() -> Result<TlsConnector, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns the name that the certificate must have; SNI takes names without their last dot (RFC 6066 §3).
fn server_name(host: &Host<String>) -> Option<ServerName<'static>> {
    match host {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            ServerName::try_from(name.to_owned()).ok()
        }
        Host::Ipv4(v4) => Some(ServerName::IpAddress((*v4).into())),
        Host::Ipv6(v6) => Some(ServerName::IpAddress((*v6).into())),
    }
}

fn explain_connect(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the authority of its certificate is not known; add it to the system's authorities, or name its file in SSL_CERT_FILE"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

fn explain(error: &hyper::Error) -> String {
    match error.source() {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}
