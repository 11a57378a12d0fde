//! Rows of publishers' connections to live inputs: protocol, address, encoder, times and reason of the end. An input's
//! owner reads there why a stream dropped.

use uuid::Uuid;

use crate::{
    Connection, Cursor, Error, Listed, Page, Tx,
    statement::{query, query_as},
};

/// Characters of an encoder's name that are kept.
const MOST_CHARACTERS: usize = 200;

/// Deletes connections that ended before the time `$1`, `$2` at most.
pub(crate) const DELETE_ENDED: &str = "DELETE FROM publisher_connections WHERE id IN (
     SELECT id FROM publisher_connections WHERE disconnected_at < $1 ORDER BY disconnected_at LIMIT $2)";

/// One connection of a publisher.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct PublisherConnection {
    pub id: Uuid,
    pub input_id: Uuid,
    pub broadcast_id: String,
    /// `rtmp`, `rtmps`, `srt` or `rtsp`.
    pub protocol: String,
    /// Without the port.
    pub remote_address: String,
    /// The name that the encoder gave itself.
    pub encoder: Option<String>,
    pub connected_at: i64,
    /// `None`: it is connected.
    pub disconnected_at: Option<i64>,
    /// Same as in the event `live.input.disconnected`.
    pub reason: Option<String>,
}

impl Listed for PublisherConnection {
    fn cursor(&self) -> Cursor {
        Cursor {
            created_at: self.connected_at,
            id: self.id,
        }
    }
}

/// The end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    pub reason: &'a str,
    /// `None`: no name is known beyond that of the beginning.
    pub encoder: Option<&'a str>,
    /// `None`: its process died, and the time at which the broadcast was last seen counts.
    pub at_ms: Option<i64>,
}

/// Notes that a publisher has connected; again is fine.
pub async fn open(tx: &mut Tx<'_>, connection: &PublisherConnection) -> Result<(), Error> {
    query(
        "INSERT INTO publisher_connections (id, input_id, broadcast_id, protocol, remote_address, encoder, connected_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
    )
    .bind(connection.id)
    .bind(connection.input_id)
    .bind(&connection.broadcast_id)
    .bind(&connection.protocol)
    .bind(&connection.remote_address)
    .bind(cut(connection.encoder.as_deref()))
    .bind(connection.connected_at)
    .execute(tx)
    .await?;
    Ok(())
}

/// Notes the end of a connection; the first end counts. Does nothing when the input was deleted.
pub async fn close(tx: &mut Tx<'_>, id: Uuid, end: End<'_>, now_ms: i64) -> Result<(), Error> {
    query(
        "UPDATE publisher_connections SET reason = $2, encoder = coalesce($3, encoder),
             disconnected_at = max(connected_at, coalesce(
                 $4, (SELECT seen_at FROM broadcasts WHERE broadcasts.id = broadcast_id), $5))
         WHERE id = $1 AND disconnected_at IS NULL",
    )
    .bind(id)
    .bind(end.reason)
    .bind(cut(end.encoder))
    .bind(end.at_ms)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}

fn cut(encoder: Option<&str>) -> Option<String> {
    encoder.map(|name| name.chars().take(MOST_CHARACTERS).collect())
}

/// The connections of an input, newest first.
pub async fn list(
    db: &mut impl Connection,
    input_id: Uuid,
    page: Page,
) -> Result<Vec<PublisherConnection>, Error> {
    let query = query_as(
        "SELECT * FROM publisher_connections WHERE input_id = $1 AND (connected_at, id) < ($2, $3)
         ORDER BY connected_at DESC, id DESC LIMIT $4",
    )
    .bind(input_id);
    page.read(query, db).await
}
