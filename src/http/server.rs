//! HTTP listener and workers: binding of `http.listen`, `http.workers`, `send_timeout`, order of middleware.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{App, HttpServer, dev::Server, middleware::from_fn, web};
use rustix::net::sockopt::set_tcp_user_timeout;

use super::{
    context, https,
    middleware::{admit, answer_head, end_unread, note_change, observe, reject_encoded},
    webrtc::LocalAddress,
};
use crate::{
    application::{context::AppContext, error::ApiError},
    config::Http,
    tls::{Certificates, TlsError},
};

/// Longest wait for `http.listen`: a process that is about to end may hold the port a moment longer.
const BIND_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between two attempts to bind.
const BIND_PAUSE: Duration = Duration::from_millis(100);

/// Reason why HTTP cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("http.listen: {address} cannot be used: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Server that accepts once it is awaited or spawned; stop it through [`Server::handle`].
pub struct Bound {
    pub server: Server,
    /// The address in use, also when the setting asked for port 0.
    pub address: SocketAddr,
    pub is_https: bool,
}

/// Builds the server on the socket of [`bind`]; `certificates` makes it HTTPS with HTTP/2.
///
/// Workers finish running requests for `http.drain` after a graceful stop. A connection whose client takes nothing of what is
/// sent to it is ended by the system after `http.send_timeout`. Signals are left to the caller.
pub fn server(
    app: AppContext,
    listener: TcpListener,
    certificates: Option<Arc<Certificates>>,
) -> Result<Bound, StartError> {
    let http = app.platform.config.http.clone();
    let address = listener.local_addr().map_err(listen_error(http.listen))?;
    // Connections inherit it from their listener. It counts for closed windows as for lost packets (tcp(7)).
    set_tcp_user_timeout(&listener, milliseconds(http.send_timeout))
        .map_err(|error| listen_error(http.listen)(error.into()))?;
    let is_https = certificates.is_some();
    let server = match certificates {
        Some(certificates) => {
            let tls = certificates.acceptor_config(&https::ALPN)?;
            https::server(app, listener, tls)
        }
        None => plain(app, listener, &http),
    };
    Ok(Bound {
        server: server.map_err(listen_error(http.listen))?,
        address,
        is_https,
    })
}

fn plain(app: AppContext, listener: TcpListener, http: &Http) -> io::Result<Server> {
    let server = HttpServer::new(move || application(app.clone()))
        .workers(workers(http))
        .max_connections(http.max_connections)
        .on_connect(LocalAddress::note_plain)
        .keep_alive(http.keep_alive)
        .client_request_timeout(http.header_timeout)
        .shutdown_timeout(http.drain.as_secs())
        .disable_signals();
    Ok(server.listen(listener)?.run())
}

/// The application of one worker, from the outside in.
pub(super) fn application(
    app: AppContext,
) -> App<
    impl actix_web::dev::ServiceFactory<
        actix_web::dev::ServiceRequest,
        Config = (),
        Response = actix_web::dev::ServiceResponse<impl actix_web::body::MessageBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    App::new()
        .configure(|routes| context::register(app, routes))
        .app_data(web::PathConfig::default().error_handler(|_, _| ApiError::NotFound("id").into()))
        .configure(super::configure)
        .wrap(from_fn(answer_head))
        .wrap(from_fn(note_change))
        .wrap(from_fn(admit))
        .wrap(from_fn(reject_encoded))
        .wrap(from_fn(observe))
        .wrap(from_fn(end_unread))
}

pub(super) fn workers(http: &Http) -> usize {
    match http.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    }
}

fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Binds `http.listen`. Connections wait in its backlog until the server runs.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let give_up_at = Instant::now() + BIND_TIMEOUT;
    loop {
        match TcpListener::bind(address) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < give_up_at =>
            {
                tokio::time::sleep(BIND_PAUSE).await;
            }
            result => return result.map_err(listen_error(address)),
        }
    }
}

fn listen_error(address: SocketAddr) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::Listen { address, source }
}
