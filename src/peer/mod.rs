//! Listener for the other nodes of a cluster (`cluster.listen`): ping, misses of images, purges.
//!
//! Every call is checked before it is looked at ([`CallChecks`]), and every answer to a node is signed. What others send before
//! that is bounded: connections, head, body, and the time for each. It has workers of its own, so that neither listener waits for
//! the other.

mod routes;
#[cfg(test)]
mod tests;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    dev::Server,
    http::{StatusCode, header},
    web::{self, Bytes, BytesMut},
};
use futures_util::StreamExt as _;
use rustix::net::sockopt::set_tcp_user_timeout;
use serde_json::json;
use sluice_actors::{
    cdn::Images,
    cluster::{CallChecks, CallRejection, Caller, HEADER, PeerAnswer, PeerCall, PeerError, Peers},
};
use sluice_store::cluster::Cluster;
use tokio::time::timeout;

use crate::http::{self, StartError};

const WORKERS: usize = 2;
/// Connections of each worker.
const MOST_CONNECTIONS: usize = 256;
/// Longest time for the head of a call, and then for its body.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// Longest body: a purge has the most, 39 kB. Anybody who reaches the listener can have this much read for each connection.
const MAX_BODY: usize = 64 << 10;
/// Time for which an idle connection is kept; callers keep it for less.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Time after which a connection ends whose node takes nothing of what is sent to it.
const SEND_TIMEOUT_MS: u32 = 10_000;
/// Longest time for calls in flight at the stop.
pub(crate) const STOP_WITHIN_S: u64 = 5;

/// The handles that calls act on.
pub struct PeerContext {
    checks: CallChecks,
    cluster: Cluster,
    images: Images,
}

impl PeerContext {
    pub async fn new(peers: &Peers, images: Images) -> Result<Self, PeerError> {
        Ok(Self {
            checks: peers.call_checks().await?,
            cluster: peers.cluster().clone(),
            images,
        })
    }
}

/// Binds `cluster.listen`.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    match http::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(StartError::Listen { source, .. }) => Err(source),
        Err(other) => Err(io::Error::other(other)),
    }
}

/// Builds the server, which accepts once it is awaited or spawned.
pub fn server(context: PeerContext, listener: TcpListener) -> io::Result<Server> {
    // Connections inherit it from their listener (tcp(7)).
    set_tcp_user_timeout(&listener, SEND_TIMEOUT_MS)?;
    let context = web::Data::from(Arc::new(context));
    let server = HttpServer::new(move || {
        App::new()
            .app_data(context.clone())
            .default_service(web::to(answer))
    })
    .workers(WORKERS)
    .max_connections(MOST_CONNECTIONS)
    .keep_alive(KEEP_ALIVE)
    .client_request_timeout(HEAD_WITHIN)
    .shutdown_timeout(STOP_WITHIN_S)
    .disable_signals();
    Ok(server.listen(listener)?.run())
}

async fn answer(
    request: HttpRequest,
    payload: web::Payload,
    context: web::Data<PeerContext>,
) -> HttpResponse {
    let body = match whole(payload).await {
        Ok(body) => body,
        Err((status, reason)) => return rejected(status, reason),
    };
    match check(&context, &request, &body) {
        Ok(caller) => {
            let answer = routes::answer(&context, &request, &body).await;
            signed(&context, caller, answer)
        }
        Err(rejection) => {
            tracing::debug!(%rejection, peer = ?request.peer_addr(), "a call was rejected");
            let status = match rejection {
                CallRejection::TooMany => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::UNAUTHORIZED,
            };
            rejected(status, &rejection.to_string())
        }
    }
}

/// Reads the body to its end.
async fn whole(mut payload: web::Payload) -> Result<Bytes, (StatusCode, &'static str)> {
    let reading = async {
        let mut body = BytesMut::new();
        while let Some(piece) = payload.next().await {
            let unread = |_| (StatusCode::BAD_REQUEST, "the body cannot be read");
            let piece = piece.map_err(unread)?;
            if body.len() + piece.len() > MAX_BODY {
                let reason = "the body has more than 64 KiB";
                return Err((StatusCode::PAYLOAD_TOO_LARGE, reason));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    };
    timeout(BODY_WITHIN, reading).await.unwrap_or(Err((
        StatusCode::REQUEST_TIMEOUT,
        "the body took more than 10 s",
    )))
}

fn check(
    context: &PeerContext,
    request: &HttpRequest,
    body: &[u8],
) -> Result<Caller, CallRejection> {
    let header = request.headers().get(HEADER);
    let header = header.and_then(|value| value.to_str().ok());
    let path = request.uri().path_and_query();
    let call = PeerCall {
        method: request.method().as_str(),
        path: path.map_or("/", |path| path.as_str()),
        body,
    };
    context.checks.check(header.unwrap_or_default(), call)
}

/// The answer to a node.
fn signed(context: &PeerContext, caller: Caller, answer: PeerAnswer) -> HttpResponse {
    let PeerAnswer { status, body } = answer;
    let signature = context.checks.sign_answer(caller, status, &body);
    let status = StatusCode::from_u16(status).expect("answers have statuses of HTTP");
    HttpResponse::build(status)
        .insert_header((HEADER, signature))
        .insert_header((header::CONTENT_TYPE, "application/octet-stream"))
        .body(body)
}

/// The answer to everyone else, after which the connection is closed.
fn rejected(status: StatusCode, reason: &str) -> HttpResponse {
    HttpResponse::build(status)
        .force_close()
        .json(json!({ "error": reason }))
}
