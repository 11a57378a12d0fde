//! Publishers whose connection event was sent and whose end event was not yet. The rows survive the process, so that
//! each connection event gets its one end event. An input has one for each node on which it is on air.

use uuid::Uuid;

use crate::{
    Error, Tx,
    broadcasts::Lost,
    rows,
    rows::JsonText,
    statement::{query, query_as},
};

/// Connections that [`take_lost`] takes at once.
pub const MOST_TAKEN: u32 = 500;

/// A publisher of a live input, which has at most one at each node.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct LiveConnection {
    pub input_id: Uuid,
    /// Id of this connection alone.
    pub id: Uuid,
    pub account_id: Uuid,
    pub broadcast_id: String,
    /// Payload of the connection event.
    #[sqlx(try_from = "JsonText", rename = "told")]
    pub payload: serde_json::Value,
}

/// Records a connection; the earlier ones that it follows were taken out before, by [`take_followed`].
pub async fn open(tx: &mut Tx<'_>, connection: &LiveConnection) -> Result<(), Error> {
    query(
        "INSERT INTO live_connections (input_id, id, account_id, broadcast_id, told) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(connection.input_id)
    .bind(connection.id)
    .bind(connection.account_id)
    .bind(&connection.broadcast_id)
    .bind(rows::Json(&connection.payload))
    .execute(tx)
    .await?;
    Ok(())
}

/// Takes out the connections of an input that a new one at this node follows: all but those to broadcasts that are on air on
/// other nodes. `node`: `None` when the service is alone, and none is kept.
pub async fn take_followed(
    tx: &mut Tx<'_>,
    input_id: Uuid,
    node: Option<Uuid>,
) -> Result<Vec<LiveConnection>, Error> {
    Ok(query_as(
        "DELETE FROM live_connections WHERE input_id = $1 AND NOT EXISTS (
             SELECT 1 FROM broadcasts b
             WHERE b.id = live_connections.broadcast_id AND b.state = 'live' AND b.node_id <> $2) RETURNING *",
    )
    .bind(input_id)
    .bind(node)
    .fetch_all(tx)
    .await?)
}

/// Takes out the connection of an input if it is that one.
pub async fn take_this(
    tx: &mut Tx<'_>,
    input_id: Uuid,
    id: Uuid,
) -> Result<Option<LiveConnection>, Error> {
    Ok(
        query_as("DELETE FROM live_connections WHERE input_id = $1 AND id = $2 RETURNING *")
            .bind(input_id)
            .bind(id)
            .fetch_optional(tx)
            .await?,
    )
}

/// Takes out the connections of an input that published to that broadcast.
pub async fn take_of_broadcast(
    tx: &mut Tx<'_>,
    input_id: Uuid,
    broadcast_id: &str,
) -> Result<Vec<LiveConnection>, Error> {
    Ok(query_as(
        "DELETE FROM live_connections WHERE input_id = $1 AND broadcast_id = $2 RETURNING *",
    )
    .bind(input_id)
    .bind(broadcast_id)
    .fetch_all(tx)
    .await?)
}

/// Takes out connections to broadcasts that are not among `keep`: nothing is left of them. For the start of the
/// service and for the death of a node. At most [`MOST_TAKEN`]: repeat until there is none.
pub async fn take_lost(
    tx: &mut Tx<'_>,
    lost: Lost,
    keep: &[String],
) -> Result<Vec<LiveConnection>, Error> {
    let keep = serde_json::to_string(keep).expect("texts become JSON");
    Ok(query_as(format!(
        "DELETE FROM live_connections WHERE (input_id, id) IN (
             SELECT c.input_id, c.id FROM live_connections c LEFT JOIN broadcasts b ON b.id = c.broadcast_id
             WHERE c.broadcast_id NOT IN (SELECT value FROM json_each($1)) AND {} LIMIT $2) RETURNING *",
        lost.condition()
    ))
    .bind(keep)
    .bind(MOST_TAKEN)
    .bind(lost.node())
    .fetch_all(tx)
    .await?)
}
