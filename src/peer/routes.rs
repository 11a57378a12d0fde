//! Routes of calls between nodes, once a call has been accepted.

use actix_web::{HttpRequest, http::Method};
use serde_json::json;
use sluice_actors::{
    cdn::{PEER_PURGE, PEER_VARIANTS},
    cluster::{PROTOCOL, PeerAnswer},
};
use sluice_store::now_ms;

use super::PeerContext;

/// Returns the id and the clock of this node.
const PING: &str = "/peer/ping";

/// Carries a call out.
pub(super) async fn answer(
    context: &PeerContext,
    request: &HttpRequest,
    body: &[u8],
) -> PeerAnswer {
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    match (request.method(), path) {
        (&Method::GET, PING) => ping(context),
        (&Method::POST, PEER_PURGE) => context.images.purge_for_node(body).await,
        (&Method::GET, path) => match path.strip_prefix(PEER_VARIANTS) {
            Some(asked) => context.images.answer_node(asked).await,
            None => unknown(),
        },
        _ => unknown(),
    }
}

fn ping(context: &PeerContext) -> PeerAnswer {
    let node = context.cluster.this();
    let answer = json!({
        "node": node.id,
        "name": node.name,
        "version": node.version,
        "protocol": PROTOCOL,
        "timeMs": now_ms(),
    });
    PeerAnswer {
        status: 200,
        body: answer.to_string().into(),
    }
}

/// The answer to what this version of the program does not know; a newer node does without.
fn unknown() -> PeerAnswer {
    PeerAnswer {
        status: 404,
        body: "this node knows no such call".into(),
    }
}
