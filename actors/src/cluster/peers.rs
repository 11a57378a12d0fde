//! Client of other nodes: [`Peers::call`] with its deadline, idle connections, signature of the answer.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use hyper::{
    Method, Request, Response,
    body::{Body as _, Incoming},
    header::{HOST, HeaderMap},
};
use sluice_store::{
    Store,
    cluster::{Cluster, Node},
    now_ms,
};
use tokio::{
    net::TcpStream,
    sync::{OnceCell, Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};
use uuid::Uuid;

use super::{
    call_checks::CallChecks,
    error::PeerError,
    signature::{HEADER, PeerCall, PeerKey},
};
use crate::outbound::{
    self, Body,
    connection::{Connection, Failure, explained},
    pool::Pool,
};

/// Longest time until a connection is there.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// Calls at a time; further ones wait within their time.
const MOST_CALLS: usize = 256;
/// Idle connections, in all and to one node.
const MOST_IDLE: usize = 64;
const MOST_IDLE_PER_NODE: usize = 16;
/// Time for which a connection is kept: less than the 30 s of the listener.
const KEEP_IDLE: Duration = Duration::from_secs(20);
/// Longest head of an answer.
const MAX_HEAD: u64 = 16 << 10;
/// Longest body of an answer.
const MAX_ANSWER: usize = 64 << 20;
/// Bytes of the answers that are read at a time, each counted whole from its head on; further ones wait within their time.
/// Whatever answers at a node's address can have this much read, since a signature is checked at the end.
const MOST_OF_ANSWERS: usize = 256 << 20;
/// Longest answer that does not wait for room: one that says how a node is must not wait for images.
const SMALL_ANSWER: usize = 64 << 10;
/// Characters of a rejection that are shown.
const MOST_OF_REASON: usize = 300;

/// A whole answer that the called node has signed. Any status is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAnswer {
    pub status: u16,
    pub body: Bytes,
}

/// The handle of calls to other nodes. Clones share its connections and its bounds.
#[derive(Clone)]
pub struct Peers {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    cluster: Cluster,
    /// Read at the first use.
    key: OnceCell<PeerKey>,
    idle: Pool<Connection>,
    calls: Semaphore,
    room: Room,
}

/// Memory for answers, in units of [`SMALL_ANSWER`].
struct Room(Semaphore);

impl Room {
    fn new() -> Self {
        Self(Semaphore::new(MOST_OF_ANSWERS / SMALL_ANSWER))
    }

    /// Waits for the memory of an answer of this length, a whole one when it is not known. Taken at once and not as it is read, so
    /// that no two answers wait for each other. `Error::TooLarge` for more than an answer may have.
    async fn take(
        &self,
        length: Option<u64>,
    ) -> Result<Option<SemaphorePermit<'_>>, outbound::Error> {
        let length = length.map_or(Ok(MAX_ANSWER), usize::try_from);
        let length = length.unwrap_or(usize::MAX);
        if length > MAX_ANSWER {
            return Err(outbound::Error::TooLarge(MAX_ANSWER as u64));
        }
        if length <= SMALL_ANSWER {
            return Ok(None);
        }
        let units = u32::try_from(length.div_ceil(SMALL_ANSWER)).unwrap_or(u32::MAX);
        // It is never closed.
        Ok(self.0.acquire_many(units).await.ok())
    }
}

impl Peers {
    pub fn new(store: &Store) -> Self {
        Self {
            shared: Arc::new(Shared {
                store: store.clone(),
                cluster: store.cluster().clone(),
                key: OnceCell::new(),
                idle: Pool::new(MOST_IDLE, MOST_IDLE_PER_NODE),
                calls: Semaphore::new(MOST_CALLS),
                room: Room::new(),
            }),
        }
    }

    /// The nodes that can be called.
    pub fn cluster(&self) -> &Cluster {
        &self.shared.cluster
    }

    /// Returns the checks of calls to this node, for its listener.
    pub async fn call_checks(&self) -> Result<CallChecks, PeerError> {
        let key = self.key().await?.clone();
        Ok(CallChecks::new(self.shared.cluster.clone(), key))
    }

    /// Calls another node and waits for its whole answer; `path` has the query. An error says nothing about whether the node
    /// carried the call out. The wait ends with the node's lease, too.
    pub async fn call(
        &self,
        node: &Node,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<PeerAnswer, PeerError> {
        let answered = timeout(within, async {
            tokio::select! {
                answer = self.exchange(node, method, path, body) => answer,
                () = self.gone(node.id) => Err(PeerError::Gone { node: node.name.clone() }),
            }
        });
        answered.await.unwrap_or_else(|_| {
            Err(PeerError::Late {
                node: node.name.clone(),
                within,
            })
        })
    }

    /// Posts to all other live nodes at the same time.
    pub async fn call_all(
        &self,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Vec<(Node, Result<PeerAnswer, PeerError>)> {
        let others = self.shared.cluster.others();
        let calls = others.into_iter().map(|node| {
            let body = body.clone();
            async move {
                let answer = self.call(&node, Method::POST, path, body, within).await;
                (node, answer)
            }
        });
        join_all(calls).await
    }

    async fn key(&self) -> Result<&PeerKey, PeerError> {
        let key = &self.shared.key;
        Ok(key
            .get_or_try_init(|| PeerKey::of(&self.shared.store))
            .await?)
    }

    /// Returns when the node is not among the live ones.
    async fn gone(&self, node: Uuid) {
        let mut changes = self.shared.cluster.changed();
        while self.shared.cluster.nodes().iter().any(|it| it.id == node) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn exchange(
        &self,
        node: &Node,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<PeerAnswer, PeerError> {
        let _permit = self.shared.calls.acquire().await;
        let key = self.key().await?;
        let unreached = |reason: String| PeerError::Unreached {
            node: node.name.clone(),
            address: node.address.clone(),
            reason,
        };
        let failed = |source| PeerError::Failed {
            node: node.name.clone(),
            source,
        };
        let authority = node
            .address
            .strip_prefix("http://")
            .ok_or_else(|| unreached("it has no address".to_owned()))?;

        let (from, nonce) = (self.shared.cluster.node_id(), Uuid::new_v4().as_u128());
        let call = PeerCall {
            method: method.as_str(),
            path,
            body: &body,
        };
        let header = key.sign(from, node.id, now_ms(), nonce, call);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, authority)
            .header(HEADER, header)
            .body(Body::from(body))
            .map_err(|error| unreached(error.to_string()))?;

        let (connection, mut answer) = match self.by_idle(authority, request).await {
            Ok(answered) => answered,
            Err(Failure::Unsent(request)) => {
                let stream = connect(authority).await.map_err(unreached)?;
                let opened = Connection::open(Box::new(stream), MAX_HEAD).await;
                let mut connection = opened.map_err(failed)?;
                match connection.send(*request).await {
                    Ok(answer) => (connection, answer),
                    Err(Failure::Broken(error)) => return Err(failed(error)),
                    Err(Failure::Unsent(_)) => {
                        return Err(unreached("it closed the connection".to_owned()));
                    }
                }
            }
            Err(Failure::Broken(error)) => return Err(failed(error)),
        };
        let length = answer.body().size_hint().exact();
        let _room = self.shared.room.take(length).await.map_err(failed)?;
        let body = whole(answer.body_mut()).await.map_err(failed)?;
        self.keep(authority, connection).await;

        let status = answer.status().as_u16();
        match signature(answer.headers()) {
            Some(header) if key.accepts_answer(header, node.id, nonce, status, &body) => {
                Ok(PeerAnswer { status, body })
            }
            None if answer.status().is_client_error() || answer.status().is_server_error() => {
                Err(PeerError::Rejected {
                    node: node.name.clone(),
                    status,
                    reason: beginning(&body),
                })
            }
            _ => Err(PeerError::Unsigned {
                node: node.name.clone(),
            }),
        }
    }

    /// Sends a request by an idle connection; without one it is unsent.
    async fn by_idle(
        &self,
        authority: &str,
        request: Request<Body>,
    ) -> Result<(Connection, Response<Incoming>), Failure> {
        match self.shared.idle.take(authority, Instant::now()) {
            Some(mut connection) => {
                let answer = connection.send(request).await?;
                Ok((connection, answer))
            }
            None => Err(Failure::Unsent(Box::new(request))),
        }
    }

    /// Keeps a connection whose answer has been read to its end.
    async fn keep(&self, authority: &str, mut connection: Connection) {
        if connection.is_ready_again().await {
            let until = Instant::now() + KEEP_IDLE;
            self.shared
                .idle
                .put(authority.to_owned(), connection, until);
        }
    }
}

async fn connect(authority: &str) -> Result<TcpStream, String> {
    let connected = timeout(CONNECT_WITHIN, TcpStream::connect(authority)).await;
    let late = |_| format!("no connection within {} ms", CONNECT_WITHIN.as_millis());
    let stream = connected.map_err(late)?;
    let stream = stream.map_err(|error| error.to_string())?;
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Reads a body to its end.
async fn whole(body: &mut Incoming) -> Result<Bytes, outbound::Error> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| explained(&error))?;
        if let Some(piece) = frame.data_ref() {
            if read.len() + piece.len() > MAX_ANSWER {
                return Err(outbound::Error::TooLarge(MAX_ANSWER as u64));
            }
            read.extend_from_slice(piece);
        }
    }
    Ok(read.freeze())
}

fn signature(headers: &HeaderMap) -> Option<&str> {
    headers.get(HEADER)?.to_str().ok()
}

/// Returns the beginning of a text that another program wrote.
fn beginning(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let printable = text.chars().filter(|character| !character.is_control());
    printable.take(MOST_OF_REASON).collect()
}

impl std::fmt::Debug for Peers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn long_answers_wait_for_room_and_short_ones_do_not() {
        let room = Room::new();
        let take = |length| room.take(length).now_or_never();
        let whole = Some(MAX_ANSWER as u64);
        let mut taken = Vec::new();
        for length in [whole, None, whole, None] {
            let permit = take(length).expect("there is room").unwrap();
            taken.push(permit.expect("it is counted"));
        }
        let small = SMALL_ANSWER as u64;
        assert!(take(Some(small + 1)).is_none(), "it waits");
        assert!(matches!(take(Some(small)), Some(Ok(None))));
        assert!(matches!(take(Some(0)), Some(Ok(None))));
        let too_large = take(Some(MAX_ANSWER as u64 + 1));
        assert!(matches!(too_large, Some(Err(outbound::Error::TooLarge(_)))));
        drop(taken.pop());
        assert!(matches!(take(Some(small + 1)), Some(Ok(Some(_)))));
    }
}
