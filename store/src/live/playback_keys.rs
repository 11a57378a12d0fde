//! Rows of playback keys, with which accounts sign playback tokens themselves: at most 20 for an account. Only that a
//! key exists is stored: its secret is derived from the installation's key and its id.

use uuid::Uuid;

use crate::{
    Connection, Error, Tx, page,
    statement::{query_as, query_scalar},
};

/// Keys of one account: enough to rotate them without a gap, and a bound on the service's memory.
const MOST_KEYS: i64 = 20;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct PlaybackKey {
    /// Id that a token names as `kid`.
    pub id: Uuid,
    pub account_id: Uuid,
    pub name: String,
    pub created_at: i64,
}

/// Creates a key. `Error::Conflict` when the account has too many.
pub async fn create(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    name: &str,
    now_ms: i64,
) -> Result<PlaybackKey, Error> {
    let count: i64 = query_scalar("SELECT count(*) FROM playback_keys WHERE account_id = $1")
        .bind(account_id)
        .fetch_one(tx)
        .await?;
    if count >= MOST_KEYS {
        return Err(Error::Conflict(format!(
            "an account has at most {MOST_KEYS} playback keys: delete one first"
        )));
    }
    Ok(query_as(
        "INSERT INTO playback_keys (id, account_id, name, created_at) VALUES ($1, $2, $3, $4) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(account_id)
    .bind(name)
    .bind(now_ms)
    .fetch_one(tx)
    .await?)
}

/// The account's keys, newest first; there are at most 20.
pub async fn list(db: &mut impl Connection, account_id: Uuid) -> Result<Vec<PlaybackKey>, Error> {
    Ok(query_as(
        "SELECT * FROM playback_keys WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2",
    )
    .bind(account_id)
    .bind(MOST_KEYS)
    .fetch_all(db)
    .await?)
}

/// Returns a key of any account, for the check of tokens.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Option<PlaybackKey>, Error> {
    Ok(query_as("SELECT * FROM playback_keys WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?)
}

/// Returns every key of every account, for the first token; read in pages.
pub async fn all(db: &mut impl Connection) -> Result<Vec<PlaybackKey>, Error> {
    page::all(
        db,
        "SELECT * FROM playback_keys WHERE id > $1 ORDER BY id LIMIT $2",
    )
    .await
}

/// Deletes a key, and returns its row; `Error::NotFound` for an unknown id and for another account's.
pub async fn delete(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<PlaybackKey, Error> {
    query_as("DELETE FROM playback_keys WHERE id = $1 AND account_id = $2 RETURNING *")
        .bind(id)
        .bind(account_id)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("playback key"))
}
