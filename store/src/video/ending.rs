//! Begin and end of the work on a video stream: ready, failed, given up after crashes, or deleted; refunds.

use uuid::Uuid;

use super::{
    KIND, OPERATIONS, RenditionKind, Stream,
    captions::size_of_captions,
    get,
    segments::resized,
    streams::{by_id, charged_work, derived},
};
use crate::{
    Error, Tx, lineage, operations,
    statement::{query, query_as},
    storage,
    work::{self, Lease},
};

/// Error code of a stream whose owner crashed too often.
const CRASHED: &str = "crashed";

/// Reason of a stream's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// Message for people.
    pub message: String,
}

/// Marks the stream as running, in the transaction that claims it. Returns the stream the first time; after an
/// interruption it changes nothing.
pub async fn begin(tx: &mut Tx<'_>, id: Uuid, now_ms: i64) -> Result<Option<Stream>, Error> {
    Ok(query_as(
        "UPDATE video_streams SET status = 'processing', started_at = $2, updated_at = $2
         WHERE id = $1 AND status = 'pending' RETURNING *",
    )
    .bind(id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?)
}

/// Makes the stream ready: everything is recorded. Its source is released, and a rendition of audio without any
/// segment is deleted. `Error::Conflict` when the lease is lost.
pub async fn finish(tx: &mut Tx<'_>, lease: &Lease, now_ms: i64) -> Result<Stream, Error> {
    work::finish(tx, lease).await?;
    query("DELETE FROM video_renditions WHERE stream_id = $1 AND kind = $2 AND segment_count = 0")
        .bind(lease.id)
        .bind(RenditionKind::Audio)
        .execute(tx)
        .await?;
    query_as(
        "UPDATE video_streams SET status = 'ready', playable = 1, progress = 100, source_blob = NULL, ready_at = $2,
             updated_at = $2
         WHERE id = $1 RETURNING *",
    )
    .bind(lease.id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("stream"))
}

/// Refunds what the stream cost, and deletes the rows of its output: its folder can be removed, and its segments are
/// swept. `Error::Conflict` when the lease is lost.
pub async fn fail(
    tx: &mut Tx<'_>,
    lease: &Lease,
    failure: &Failure,
    now_ms: i64,
) -> Result<Stream, Error> {
    work::finish(tx, lease).await?;
    let stream = by_id(tx, lease.id).await?;
    failed(tx, stream, failure, now_ms).await
}

/// Fails a stream whose row of [`work`] was given up; returns the stream as it is then. `None` for one that has ended
/// meanwhile, or was deleted.
pub async fn give_up(tx: &mut Tx<'_>, id: Uuid, now_ms: i64) -> Result<Option<Stream>, Error> {
    let stream = match by_id(tx, id).await {
        Ok(stream) if !stream.status.has_ended() => stream,
        Ok(_) | Err(Error::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let failure = Failure {
        code: CRASHED.to_owned(),
        message: "the work on it was cut short three times: make the stream again".to_owned(),
    };
    Ok(Some(failed(tx, stream, &failure, now_ms).await?))
}

async fn failed(
    tx: &mut Tx<'_>,
    stream: Stream,
    failure: &Failure,
    now_ms: i64,
) -> Result<Stream, Error> {
    query("DELETE FROM video_renditions WHERE stream_id = $1")
        .bind(stream.id)
        .execute(tx)
        .await?;
    refund(tx, &stream).await?;
    let bytes = stream.size_bytes;
    let stream = resized(tx, stream, -bytes).await?;
    Ok(query_as(
        "UPDATE video_streams SET status = 'failed', playable = 0, has_poster = 0, has_storyboard = 0, source_blob = NULL,
             error = $2, error_code = $3, updated_at = $4
         WHERE id = $1 RETURNING *",
    )
    .bind(stream.id)
    .bind(&failure.message)
    .bind(&failure.code)
    .bind(now_ms)
    .fetch_one(tx)
    .await?)
}

/// Deletes a stream with everything that belongs to it, and returns its row; one that has not ended is withdrawn from
/// work and costs nothing. Its folder can be removed, and its segments are swept. Errors as [`get`].
pub async fn delete(tx: &mut Tx<'_>, account_id: Uuid, id: Uuid) -> Result<Stream, Error> {
    let stream = get(tx, account_id, id).await?;
    work::withdraw(tx, KIND, id).await?;
    if !stream.status.has_ended() {
        refund(tx, &stream).await?;
    }
    let bytes = stream.size_bytes + size_of_captions(tx, id).await?;
    storage::add(tx, account_id, 0, -bytes).await?;
    lineage::forget(tx, &derived(id)).await?;
    query("DELETE FROM video_streams WHERE id = $1")
        .bind(id)
        .execute(tx)
        .await?;
    Ok(stream)
}

async fn refund(tx: &mut Tx<'_>, stream: &Stream) -> Result<(), Error> {
    let work = charged_work(stream.created_at);
    operations::refund(tx, stream.account_id, stream.month, work, OPERATIONS).await
}
