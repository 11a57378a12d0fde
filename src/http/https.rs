//! HTTPS server: HTTP/2 windows and streams, ALPN, TLS handshakes of a client network (`http.max_handshakes`, `handshake_timeout`).
//!
//! actix-web's own acceptor stops taking all connections while 256 handshakes of a worker are unfinished, which a client
//! that connects and says nothing reaches with 90 connections a second. Here unfinished handshakes are bounded for each client
//! network, and in all only by `http.max_connections`.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use actix_http::{HttpService, Protocol, error::DispatchError};
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, map_config};
use actix_web::dev::{AppConfig, Server, fn_service};
use rustls::ServerConfig;
use sluice_actors::network::NetworkLimit;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    server::{application, workers},
    webrtc::LocalAddress,
};
use crate::{
    application::{address::is_trusted, context::AppContext},
    config::Http,
};

/// Protocols in order of preference.
pub(super) const ALPN: [&[u8]; 2] = [HTTP_2, b"http/1.1"];
const HTTP_2: &[u8] = b"h2";
/// Body bytes that one HTTP/2 connection may send before they are read. With the heads of its requests and what waits to be
/// sent, a connection takes at most 2 MiB (docs/decisions/0034-http2-limits.md).
const HTTP2_WINDOW_BYTES: u32 = 1 << 20;
/// Longest time for the end of a TLS connection, as in actix-web.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns a server equal to actix-web's `HttpServer`, behind an [`Acceptor`].
pub(super) fn server(
    app: AppContext,
    listener: TcpListener,
    tls: ServerConfig,
) -> io::Result<Server> {
    let http = app.platform.config.http.clone();
    let address = listener.local_addr()?;
    let builder = Server::build()
        .workers(workers(&http))
        .max_concurrent_connections(http.max_connections)
        .shutdown_timeout(http.drain.as_secs())
        .disable_signals();
    let max_header_list = u32::try_from(http.max_header_list.as_u64()).unwrap_or(u32::MAX);
    let stopping = builder.graceful_shutdown_signal();
    let acceptor = Arc::new(Acceptor::new(&http, tls));
    let builder = builder.listen("https", listener, move || {
        let stopping = stopping.clone();
        let application = application(app.clone())
            .into_factory()
            .map_err(|error: actix_web::Error| error.error_response());
        // The only public way to set that requests arrived by TLS, and the port.
        let config = AppConfig::__priv_test_new(true, address.to_string(), address);
        let http_service = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .on_connect_ext(|socket: &TlsStream<TcpStream>, connection| {
                LocalAddress::note(socket.get_ref().0, connection);
            })
            .keep_alive(http.keep_alive)
            .client_request_timeout(http.header_timeout)
            .client_disconnect_timeout(DISCONNECT_TIMEOUT)
            .h2_max_concurrent_streams(http.max_streams)
            .h2_max_header_list_size(max_header_list)
            .h2_initial_window_size(HTTP2_WINDOW_BYTES)
            .h2_initial_connection_window_size(HTTP2_WINDOW_BYTES)
            .finish(map_config(application, move |_| config.clone()));
        let acceptor = acceptor.clone();
        fn_service(move |socket: TcpStream| {
            let acceptor = acceptor.clone();
            async move { acceptor.accept(socket).await }
        })
        .and_then(http_service)
    })?;
    Ok(builder.run())
}

/// Makes TLS connections of accepted sockets.
struct Acceptor {
    tls: TlsAcceptor,
    handshake_timeout: Duration,
    /// Networks whose proxies pass connections of many clients on; they are not bounded.
    trusted: Vec<crate::config::Cidr>,
    handshakes: Arc<NetworkLimit>,
}

type Accepted = (TlsStream<TcpStream>, Protocol, Option<SocketAddr>);

impl Acceptor {
    fn new(http: &Http, tls: ServerConfig) -> Self {
        Self {
            tls: TlsAcceptor::from(Arc::new(tls)),
            handshake_timeout: http.handshake_timeout,
            trusted: http.trusted_proxies.clone(),
            handshakes: NetworkLimit::new(http.max_handshakes),
        }
    }

    /// Returns the connection and its protocol after the handshake. A connection beyond its network's bound is closed
    /// at once.
    async fn accept(&self, socket: TcpStream) -> Result<Accepted, DispatchError> {
        let peer = socket.peer_addr()?;
        let _permit = if is_trusted(peer.ip(), &self.trusted) {
            None
        } else {
            let permit = self.handshakes.take_for(peer.ip());
            Some(permit.ok_or_else(|| {
                tracing::debug!(client = %peer, "a connection was closed: http.max_handshakes is reached");
                io::Error::from(io::ErrorKind::QuotaExceeded)
            })?)
        };
        let handshake = timeout(self.handshake_timeout, self.tls.accept(socket));
        let stream = handshake
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let protocol = match stream.get_ref().1.alpn_protocol() {
            Some(HTTP_2) => Protocol::Http2,
            _ => Protocol::Http1,
        };
        Ok((stream, protocol, Some(peer)))
    }
}
