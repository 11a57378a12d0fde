//! Rows of recordings of broadcasts: status, files, streams, failures, from the first segment to the stored files.
//!
//! - A row is begun with the broadcast, and outlives its input. Its owner writes through a lease of the kind [`KIND`]
//!   once the broadcast has ended.
//! - A recording is ready when all its files are stored and their streams have ended, successfully or not: only the
//!   files count.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    Connection, Error, Page, Tx,
    broadcasts::Lost,
    live_inputs::LiveInput,
    rows::Json,
    rows::{JsonText, Narrow},
    statement::{query, query_as, query_scalar},
    work::{self, Lane, Lease},
};

/// Kind of a recording's row in [`crate::work`].
pub const KIND: &str = "recording";
/// Recordings that [`end_lost`] ends at once.
const MOST_ENDED: u32 = 1_000;
/// Error code of a recording whose owner crashed too often.
const CRASHED: &str = "crashed";
/// Error code of a recording of which only the data folder of a dead node has something.
const NODE_AWAY: &str = "node_away";

text_enum! {
    pub enum RecordingStatus {
        /// Its broadcast is on air, or waits for its encoder.
        Recording = "recording",
        /// Its files and streams are being made.
        Processing = "processing",
        Ready = "ready",
        Failed = "failed",
    }
}

impl RecordingStatus {
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Ready | Self::Failed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Recording {
    pub id: Uuid,
    pub account_id: Uuid,
    /// May be deleted.
    pub input_id: Uuid,
    pub input_name: String,
    /// Playback id of the input.
    pub playback_id: String,
    pub broadcast: String,
    /// True when the input's playback needed a token when the broadcast began; `allowed_domains` are the sites that
    /// might play it then.
    pub is_signed: bool,
    #[sqlx(try_from = "JsonText")]
    pub allowed_domains: Vec<String>,
    pub status: RecordingStatus,
    /// Reason why nothing more was recorded before the broadcast's end.
    pub stopped_reason: Option<String>,
    /// Error of a failed recording, reason why it waits, or what a ready one lacks.
    pub error: Option<String>,
    pub error_code: Option<String>,
    pub is_stored: bool,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    pub ready_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
}

impl Recording {
    /// Returns whether it failed because its node is away, and continues when that comes back with its data folder.
    pub fn waits_for_node(&self) -> bool {
        self.status == RecordingStatus::Failed && self.error_code.as_deref() == Some(NODE_AWAY)
    }
}

/// MP4 file of a recording.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct RecordingFile {
    pub recording_id: Uuid,
    /// Number from 0.
    #[sqlx(try_from = "i64")]
    pub number: u32,
    /// `None`: deleted.
    pub file_id: Option<Uuid>,
    /// `None`: there is none, or it was deleted.
    pub stream_id: Option<Uuid>,
    pub filename: String,
    pub size_bytes: i64,
    pub duration_ms: i64,
    #[sqlx(try_from = "Narrow")]
    pub width: Option<u32>,
    #[sqlx(try_from = "Narrow")]
    pub height: Option<u32>,
    pub is_settled: bool,
}

/// Reason of a recording's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// Message for people.
    pub message: String,
}

/// Notes that a broadcast of this input is recorded; again is fine.
pub async fn begin(
    tx: &mut Tx<'_>,
    input: &LiveInput,
    broadcast: &str,
    started_at: i64,
) -> Result<(), Error> {
    query(
        "INSERT INTO recordings (id, account_id, input_id, input_name, playback_id, broadcast, is_signed,
             allowed_domains, status, started_at, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $8, $9, 'recording', $7, $7, $7) ON CONFLICT (broadcast) DO NOTHING",
    )
    .bind(Uuid::now_v7())
    .bind(input.account_id)
    .bind(input.id)
    .bind(&input.name)
    .bind(&input.playback_id)
    .bind(broadcast)
    .bind(started_at)
    .bind(input.require_signed_playback)
    .bind(Json(&input.allowed_domains))
    .execute(tx)
    .await?;
    Ok(())
}

/// Records why nothing more is recorded; the first reason is kept.
pub async fn stopped(
    tx: &mut Tx<'_>,
    broadcast: &str,
    reason: &str,
    now_ms: i64,
) -> Result<(), Error> {
    query(
        "UPDATE recordings SET stopped_reason = coalesce(stopped_reason, $2), updated_at = $3 WHERE broadcast = $1",
    )
    .bind(broadcast)
    .bind(reason)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}

/// Queues the recording of a broadcast that ended, also one that failed because its node was away. Does nothing when there is
/// none, or it is queued already.
pub async fn end(
    tx: &mut Tx<'_>,
    broadcast: &str,
    ended_at: i64,
    now_ms: i64,
) -> Result<(), Error> {
    let ended: Option<Recording> = query_as(
        "UPDATE recordings SET status = 'processing', ended_at = max($2, started_at), error = NULL, error_code = NULL,
             updated_at = $3
         WHERE broadcast = $1 AND (status = 'recording' OR status = 'failed' AND error_code = $4) RETURNING *",
    )
    .bind(broadcast)
    .bind(ended_at)
    .bind(now_ms)
    .bind(NODE_AWAY)
    .fetch_optional(tx)
    .await?;
    if let Some(recording) = ended {
        let (id, account_id) = (recording.id, recording.account_id);
        work::enqueue(tx, KIND, id, account_id, Lane::Batch, now_ms).await?;
    }
    Ok(())
}

/// Ends recordings that were begun before that time and whose broadcasts are not among `keep`: their process died.
/// Ends a bounded number and returns how many: repeat until none is left.
pub async fn end_lost(
    tx: &mut Tx<'_>,
    of: Lost,
    keep: &[String],
    before_ms: i64,
    now_ms: i64,
) -> Result<u64, Error> {
    let keep = serde_json::to_string(keep).expect("texts become JSON");
    let lost: Vec<String> = query_scalar(format!(
        "SELECT r.broadcast FROM recordings r LEFT JOIN broadcasts b ON b.id = r.broadcast
         WHERE r.status = 'recording' AND r.started_at < $4 AND {}
             AND r.broadcast NOT IN (SELECT value FROM json_each($1)) LIMIT $2",
        of.condition()
    ))
    .bind(keep)
    .bind(MOST_ENDED)
    .bind(of.node())
    .bind(before_ms)
    .fetch_all(tx)
    .await?;
    for broadcast in &lost {
        end(tx, broadcast, now_ms, now_ms).await?;
    }
    Ok(lost.len() as u64)
}

/// Ends recordings of nodes that died before that time, and whose data folders have not come back since. What is in the object
/// store of them is stored; one of which nothing is there fails. Ends a bounded number and returns how many: repeat until none is
/// left.
pub async fn end_abandoned(tx: &mut Tx<'_>, before_ms: i64, now_ms: i64) -> Result<u64, Error> {
    let abandoned: Vec<(String, Option<i64>, bool)> = query_as(
        "SELECT r.broadcast, b.ended_at, EXISTS (SELECT 1 FROM live_segments s WHERE s.broadcast = r.broadcast)
         FROM recordings r JOIN broadcasts b ON b.id = r.broadcast
         WHERE r.status = 'recording' AND b.node_id IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = b.node_id AND (n.state <> 'dead' OR n.renewed_at > $1))
         LIMIT $2",
    )
    .bind(before_ms)
    .bind(MOST_ENDED)
    .fetch_all(tx)
    .await?;
    for (broadcast, ended_at, has_media) in &abandoned {
        let ended_at = ended_at.unwrap_or(now_ms);
        match has_media {
            true => end(tx, broadcast, ended_at, now_ms).await?,
            false => fail_away(tx, broadcast, ended_at, now_ms).await?,
        }
    }
    Ok(abandoned.len() as u64)
}

/// Fails a recording of which only the data folder of its node has something; [`end`] continues it.
async fn fail_away(
    tx: &mut Tx<'_>,
    broadcast: &str,
    ended_at: i64,
    now_ms: i64,
) -> Result<(), Error> {
    query(
        "UPDATE recordings SET status = 'failed', ended_at = max($2, started_at), error = $3, error_code = $4, updated_at = $5
         WHERE broadcast = $1 AND status = 'recording'",
    )
    .bind(broadcast)
    .bind(ended_at)
    .bind("the node that recorded it is away, and nothing of it is in the object store: start that node again in its data folder")
    .bind(NODE_AWAY)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns a recording of any account, for actors.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Recording, Error> {
    query_as("SELECT * FROM recordings WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("recording"))
}

/// Returns the recordings that are over and not stored yet, of these broadcasts and of those with media in the object store, for
/// a node that has the media of these broadcasts.
pub async fn unstored(db: &mut impl Connection, broadcasts: &[String]) -> Result<Vec<Uuid>, Error> {
    Ok(query_scalar(
        "SELECT r.id FROM recordings r WHERE r.status = 'processing' AND r.is_stored = 0
             AND (r.broadcast IN (SELECT value FROM json_each($1))
                 OR EXISTS (SELECT 1 FROM live_segments s WHERE s.broadcast = r.broadcast))",
    )
    .bind(Json(broadcasts))
    .fetch_all(db)
    .await?)
}

/// Returns a broadcast's recording; `None` for a broadcast that was not recorded.
pub async fn by_broadcast(
    db: &mut impl Connection,
    broadcast: &str,
) -> Result<Option<Recording>, Error> {
    Ok(query_as("SELECT * FROM recordings WHERE broadcast = $1")
        .bind(broadcast)
        .fetch_optional(db)
        .await?)
}

/// The recordings of an input, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    input_id: Uuid,
    page: Page,
) -> Result<Vec<Recording>, Error> {
    let query = query_as(
        "SELECT * FROM recordings WHERE account_id = $1 AND input_id = $2 AND (created_at, id) < ($3, $4)
         ORDER BY created_at DESC, id DESC LIMIT $5",
    )
    .bind(account_id)
    .bind(input_id);
    page.read(query, db).await
}

/// A recording's files, in order.
pub async fn files(db: &mut impl Connection, id: Uuid) -> Result<Vec<RecordingFile>, Error> {
    Ok(
        query_as("SELECT * FROM recording_files WHERE recording_id = $1 ORDER BY number")
            .bind(id)
            .fetch_all(db)
            .await?,
    )
}

/// Records a file that was just stored, with its stream if one is made of it. `Error::Conflict` when the lease is
/// lost.
pub async fn stored(tx: &mut Tx<'_>, lease: &Lease, file: &RecordingFile) -> Result<(), Error> {
    work::progressed(tx, lease).await?;
    query(
        "INSERT INTO recording_files (recording_id, number, file_id, stream_id, filename, size_bytes, duration_ms, width,
             height, is_settled)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(lease.id)
    .bind(file.number)
    .bind(file.file_id)
    .bind(file.stream_id)
    .bind(&file.filename)
    .bind(file.size_bytes)
    .bind(file.duration_ms)
    .bind(file.width)
    .bind(file.height)
    .bind(file.is_settled)
    .execute(tx)
    .await?;
    Ok(())
}

/// Records what a recording waits for, as text. `Error::Conflict` when the lease is lost.
pub async fn waits(
    tx: &mut Tx<'_>,
    lease: &Lease,
    reason: Option<&Failure>,
    now_ms: i64,
) -> Result<(), Error> {
    work::hold(tx, lease).await?;
    query("UPDATE recordings SET error = $2, error_code = $3, updated_at = $4 WHERE id = $1")
        .bind(lease.id)
        .bind(reason.map(|reason| &reason.message))
        .bind(reason.map(|reason| &reason.code))
        .bind(now_ms)
        .execute(tx)
        .await?;
    Ok(())
}

/// Finishes a recording whose files are all stored; one without any is deleted. `lack` says what the files lack of what was
/// recorded. Returns the recording as it is then. `Error::Conflict` when the lease is lost.
pub async fn finish(
    tx: &mut Tx<'_>,
    lease: &Lease,
    lack: Option<&Failure>,
    now_ms: i64,
) -> Result<Option<Recording>, Error> {
    work::finish(tx, lease).await?;
    if files(tx, lease.id).await?.is_empty() {
        query("DELETE FROM recordings WHERE id = $1")
            .bind(lease.id)
            .execute(tx)
            .await?;
        return Ok(None);
    }
    query("UPDATE recordings SET is_stored = 1, error = $3, error_code = $4, updated_at = $2 WHERE id = $1")
        .bind(lease.id)
        .bind(now_ms)
        .bind(lack.map(|lack| &lack.message))
        .bind(lack.map(|lack| &lack.code))
        .execute(tx)
        .await?;
    settle(tx, lease.id, now_ms).await.map(Some)
}

/// Ends a recording as failed. `Error::Conflict` when the lease is lost.
pub async fn fail(
    tx: &mut Tx<'_>,
    lease: &Lease,
    failure: &Failure,
    now_ms: i64,
) -> Result<(), Error> {
    work::finish(tx, lease).await?;
    failed(tx, lease.id, failure, now_ms).await
}

/// Fails a recording whose row of [`work`] was given up.
pub async fn give_up(tx: &mut Tx<'_>, id: Uuid, now_ms: i64) -> Result<(), Error> {
    let failure = Failure {
        code: CRASHED.to_owned(),
        message: "the work on it was cut short three times".to_owned(),
    };
    failed(tx, id, &failure, now_ms).await
}

async fn failed(tx: &mut Tx<'_>, id: Uuid, failure: &Failure, now_ms: i64) -> Result<(), Error> {
    query(
        "UPDATE recordings SET status = 'failed', error = $2, error_code = $3, updated_at = $4
         WHERE id = $1 AND status = 'processing'",
    )
    .bind(id)
    .bind(&failure.message)
    .bind(&failure.code)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}

/// Records that the stream made of a recording's file has ended or was deleted: returns the file with its recording,
/// the first time. `None` for a stream of something else.
pub async fn stream_ended(
    tx: &mut Tx<'_>,
    stream_id: Uuid,
    now_ms: i64,
) -> Result<Option<(Recording, RecordingFile)>, Error> {
    let settled: Option<RecordingFile> = query_as(
        "UPDATE recording_files SET is_settled = 1 WHERE stream_id = $1 AND is_settled = 0 RETURNING *",
    )
    .bind(stream_id)
    .fetch_optional(tx)
    .await?;
    let Some(file) = settled else {
        return Ok(None);
    };
    let recording = settle(tx, file.recording_id, now_ms).await?;
    Ok(Some((recording, file)))
}

/// Makes a recording ready that waits for nothing any more.
async fn settle(tx: &mut Tx<'_>, id: Uuid, now_ms: i64) -> Result<Recording, Error> {
    query(
        "UPDATE recordings SET status = 'ready', ready_at = $2, updated_at = $2
         WHERE id = $1 AND status = 'processing' AND is_stored = 1
             AND NOT EXISTS (SELECT 1 FROM recording_files WHERE recording_id = $1 AND is_settled = 0)",
    )
    .bind(id)
    .bind(now_ms)
    .execute(tx)
    .await?;
    by_id(tx, id).await
}

#[cfg(test)]
mod tests;
