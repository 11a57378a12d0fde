//! Rows of captions of video streams, each WebVTT in a blob: add, remove, list (`vod.max_captions`).

use std::collections::HashMap;

use sqlx::FromRow;
use uuid::Uuid;

use super::get;
use crate::{
    Connection, Error, Tx,
    blob::{BlobHash, Sealed},
    blobs, rows,
    statement::{query, query_as, query_scalar},
    storage,
};

#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Caption {
    pub id: Uuid,
    pub stream_id: Uuid,
    /// BCP 47.
    pub language: String,
    /// Label in a player's menu.
    pub label: String,
    /// Shown without being chosen; at most one of a stream.
    pub is_default: bool,
    pub blob: BlobHash,
    pub size_bytes: i64,
    pub created_at: i64,
}

/// A caption to be added.
#[derive(Clone, Debug)]
pub struct NewCaption {
    pub language: String,
    pub label: String,
    pub is_default: bool,
    /// Greatest number of captions of the stream.
    pub most: usize,
    /// Bytes that the account may store in all; 0: no limit.
    pub storage_bytes: u64,
}

/// Adds a caption to a stream, and records its blob: in place of the one in its language, and as the default in place of the
/// default before. Errors as [`get`]; `Error::Conflict` when the stream has as many as it may, `Error::OverQuota` when the
/// account's storage is full.
pub async fn add_caption(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    stream_id: Uuid,
    new: &NewCaption,
    content: &Sealed,
    now_ms: i64,
) -> Result<Caption, Error> {
    let stream = get(tx, account_id, stream_id).await?;
    let replaced: Vec<i64> = query_scalar(
        "DELETE FROM video_captions WHERE stream_id = $1 AND language = $2 RETURNING size_bytes",
    )
    .bind(stream.id)
    .bind(&new.language)
    .fetch_all(tx)
    .await?;
    storage::add(tx, account_id, 0, -replaced.iter().sum::<i64>()).await?;
    let count: i64 = query_scalar("SELECT count(*) FROM video_captions WHERE stream_id = $1")
        .bind(stream.id)
        .fetch_one(tx)
        .await?;
    if usize::try_from(count).is_ok_and(|count| count >= new.most) {
        return Err(Error::Conflict(format!(
            "the stream has {count} captions, which is as many as it may (vod.max_captions): delete one first"
        )));
    }
    let blob = content.blob();
    storage::check(tx, account_id, blob.size, new.storage_bytes).await?;
    blobs::record(tx, content, now_ms).await?;
    let size_bytes = i64::try_from(blob.size).unwrap_or(i64::MAX);
    storage::add(tx, account_id, 0, size_bytes).await?;
    if new.is_default {
        query("UPDATE video_captions SET is_default = 0 WHERE stream_id = $1")
            .bind(stream_id)
            .execute(tx)
            .await?;
    }
    Ok(query_as(
        "INSERT INTO video_captions (id, stream_id, language, label, is_default, blob, size_bytes, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(stream_id)
    .bind(&new.language)
    .bind(&new.label)
    .bind(new.is_default)
    .bind(blob.hash)
    .bind(size_bytes)
    .bind(now_ms)
    .fetch_one(tx)
    .await?)
}

/// Removes a caption, and returns its row. `Error::NotFound` for an unknown one and for another account's or stream's.
pub async fn remove_caption(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    stream_id: Uuid,
    id: Uuid,
) -> Result<Caption, Error> {
    get(tx, account_id, stream_id).await?;
    let removed: Option<Caption> =
        query_as("DELETE FROM video_captions WHERE id = $1 AND stream_id = $2 RETURNING *")
            .bind(id)
            .bind(stream_id)
            .fetch_optional(tx)
            .await?;
    let removed = removed.ok_or(Error::NotFound("caption"))?;
    storage::add(tx, account_id, 0, -removed.size_bytes).await?;
    Ok(removed)
}

/// Returns the captions of a stream, oldest first.
pub async fn captions(db: &mut impl Connection, stream_id: Uuid) -> Result<Vec<Caption>, Error> {
    Ok(
        query_as("SELECT * FROM video_captions WHERE stream_id = $1 ORDER BY created_at, id")
            .bind(stream_id)
            .fetch_all(db)
            .await?,
    )
}

/// Returns the captions of several streams at once, as [`captions`] does of one.
pub async fn captions_of(
    db: &mut impl Connection,
    streams: &[Uuid],
) -> Result<HashMap<Uuid, Vec<Caption>>, Error> {
    let rows: Vec<Caption> = query_as(
        "SELECT v.* FROM json_each($1) j CROSS JOIN video_captions v ON v.stream_id = unhex(j.value)
         ORDER BY v.stream_id, v.created_at, v.id",
    )
    .bind(rows::ids(streams)?)
    .fetch_all(db)
    .await?;
    let mut found: HashMap<Uuid, Vec<Caption>> = HashMap::new();
    for row in rows {
        found.entry(row.stream_id).or_default().push(row);
    }
    Ok(found)
}

pub(super) async fn size_of_captions(tx: &mut Tx<'_>, stream_id: Uuid) -> Result<i64, Error> {
    Ok(
        query_scalar(
            "SELECT CAST(coalesce(sum(size_bytes), 0) AS INTEGER) FROM video_captions WHERE stream_id = $1",
        )
        .bind(stream_id)
        .fetch_one(tx)
        .await?,
    )
}
