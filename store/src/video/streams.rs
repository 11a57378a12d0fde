//! Rows of video streams: create, get, list, update; status, access (`public`, `signed`), token lifetime, poster and
//! storyboard.

use serde::{Deserialize, Serialize};
use sqlx::FromRow;
use uuid::Uuid;

use super::{KIND, OPERATIONS, segments::grown};
use crate::{
    Connection, Error, Month, Page, Tx,
    blob::BlobHash,
    credentials,
    idempotency::{self, Idempotency, IdempotentResult},
    jobs::Allowance,
    lineage::{self, Derived, DerivedKind, Lineage},
    operations::{self, Charge, ChargedWork},
    rows::Json,
    rows::{JsonText, Narrow},
    statement::query_as,
    work::{self, Lane, Lease},
};

text_enum! {
    pub enum StreamStatus {
        Pending = "pending",
        Processing = "processing",
        Ready = "ready",
        Failed = "failed",
    }
}

impl StreamStatus {
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Ready | Self::Failed)
    }
}

text_enum! {
    /// Access to the playback of a stream.
    pub enum Access {
        /// Playback with the playback id alone.
        Public = "public",
        /// Playback with a token.
        Signed = "signed",
    }
}

/// Rendition of a custom profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomRendition {
    /// The short edge of the upright frame, in pixels.
    pub height: u32,
    /// Bits per second; `None`: as the profiles have it.
    pub bitrate: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Stream {
    pub id: Uuid,
    pub account_id: Uuid,
    /// The stored file that it is made of; `None` also when that is deleted.
    pub source_file_id: Option<Uuid>,
    /// Blob of the source, until the stream has ended.
    pub source_blob: Option<BlobHash>,
    pub source_filename: String,
    pub title: String,
    /// `pb_` and 20 base62, unique.
    pub playback_id: String,
    pub status: StreamStatus,
    /// Progress of 100, as of the last change of the row.
    #[sqlx(try_from = "i64")]
    pub progress: u8,
    /// True when three segments of every rendition are stored, or all.
    pub playable: bool,
    pub profile: String,
    /// Renditions of a custom profile.
    #[sqlx(try_from = "JsonText")]
    pub custom_renditions: Vec<CustomRendition>,
    #[sqlx(try_from = "i64")]
    pub segment_duration_s: u32,
    pub access: Access,
    /// Lifetime of tokens for which none is requested.
    #[sqlx(try_from = "Narrow")]
    pub token_ttl_s: Option<u32>,
    #[sqlx(try_from = "JsonText")]
    pub allowed_domains: Vec<String>,
    /// `None` until the source has been inspected, like width and height, which a stream without video never has.
    pub duration_ms: Option<i64>,
    /// Width as shown, in pixels.
    #[sqlx(try_from = "Narrow")]
    pub width: Option<u32>,
    #[sqlx(try_from = "Narrow")]
    pub height: Option<u32>,
    pub has_poster: bool,
    pub has_storyboard: bool,
    /// Size of everything in its folder, as it counts into the account's storage.
    pub size_bytes: i64,
    #[sqlx(try_from = "JsonText")]
    pub allowance: Allowance,
    /// The month that was charged.
    pub month: Month,
    pub error: Option<String>,
    pub error_code: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub started_at: Option<i64>,
    pub ready_at: Option<i64>,
}

/// Source of a stream: a blob that is recorded in the same transaction, or that something of the account names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSource {
    pub blob: BlobHash,
    pub filename: String,
    /// Stored file with these bytes; may be deleted by now.
    pub file_id: Option<Uuid>,
}

/// A stream to be made.
#[derive(Clone, Debug)]
pub struct NewStream {
    pub account_id: Uuid,
    pub source: StreamSource,
    pub title: String,
    pub profile: String,
    pub custom_renditions: Vec<CustomRendition>,
    pub segment_duration_s: u32,
    pub access: Access,
    pub token_ttl_s: Option<u32>,
    pub allowed_domains: Vec<String>,
    pub allowance: Allowance,
    pub idempotency: Option<Idempotency>,
}

/// The answer to [`create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    New(Box<Stream>),
    /// An earlier request had the same key and parameters; nothing was charged.
    Known(Box<Stream>),
    /// The month's operations are used up; nothing was changed.
    UsedUp {
        used: u64,
    },
}

/// Changes of a stream; `None` leaves a field as it is, `Some(None)` empties it.
#[derive(Clone, Debug, Default)]
pub struct StreamPatch {
    pub title: Option<String>,
    pub access: Option<Access>,
    pub token_ttl_s: Option<Option<u32>>,
    pub allowed_domains: Option<Vec<String>>,
}

/// Charges the account and makes the stream, to be worked on. `Error::Conflict` when the idempotency key was used for other
/// parameters.
pub async fn create(tx: &mut Tx<'_>, new: &NewStream, now_ms: i64) -> Result<Submitted, Error> {
    let (account_id, cap) = (new.account_id, new.allowance.operations);
    if let Some(wanted) = &new.idempotency
        && let Some(id) =
            idempotency::find(tx, account_id, wanted, IdempotentResult::stream, now_ms).await?
    {
        return Ok(Submitted::Known(Box::new(get(tx, account_id, id).await?)));
    }
    let work = charged_work(now_ms);
    let month = match operations::charge(tx, account_id, work, OPERATIONS, cap, now_ms).await? {
        Charge::Charged(month) => month,
        Charge::UsedUp { used } => return Ok(Submitted::UsedUp { used }),
    };
    let stream = insert(tx, new, month, now_ms).await?;
    work::enqueue(tx, KIND, stream.id, account_id, Lane::Batch, now_ms).await?;
    let made = Lineage {
        derived_kind: DerivedKind::Rendition,
        derived_id: stream.id.to_string(),
        source_file_id: stream.source_file_id,
        operation: serde_json::json!({"tool": "stream", "profile": stream.profile}),
        created_at: now_ms,
    };
    lineage::record(tx, made).await?;
    if let Some(wanted) = &new.idempotency {
        idempotency::remember(
            tx,
            account_id,
            wanted,
            IdempotentResult::Stream(stream.id),
            now_ms,
        )
        .await?;
    }
    Ok(Submitted::New(Box::new(stream)))
}

/// Work of a stream, as the account's history shows it.
pub(super) fn charged_work(created_at: i64) -> ChargedWork<'static> {
    ChargedWork {
        kind: "stream",
        asked_at: created_at,
    }
}

/// Returns the derived object under which [`create`] records a stream's source.
pub(super) fn derived(id: Uuid) -> Derived {
    Derived {
        kind: DerivedKind::Rendition,
        id: id.to_string(),
    }
}

async fn insert(
    tx: &mut Tx<'_>,
    new: &NewStream,
    month: Month,
    now_ms: i64,
) -> Result<Stream, Error> {
    Ok(query_as(
        "INSERT INTO video_streams (id, account_id, source_file_id, source_blob, source_filename, title, playback_id, status,
             profile, custom_renditions, segment_duration_s, access, token_ttl_s, allowed_domains, allowance, month,
             created_at, updated_at)
         VALUES ($1, $2, (SELECT id FROM files WHERE id = $3 AND account_id = $2), $4, $5, $6, $7, 'pending', $8, $9, $10,
             $11, $12, $13, $14, $15, $16, $16)
         RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(new.account_id)
    .bind(new.source.file_id)
    .bind(new.source.blob)
    .bind(&new.source.filename)
    .bind(&new.title)
    .bind(credentials::playback_id())
    .bind(&new.profile)
    .bind(Json(&new.custom_renditions))
    .bind(new.segment_duration_s)
    .bind(new.access)
    .bind(new.token_ttl_s)
    .bind(Json(&new.allowed_domains))
    .bind(Json(new.allowance))
    .bind(month)
    .bind(now_ms)
    .fetch_one(tx)
    .await?)
}

/// Returns a stream; `Error::NotFound` for an unknown id and for another account's.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Stream, Error> {
    query_as("SELECT * FROM video_streams WHERE id = $1 AND account_id = $2")
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("stream"))
}

/// Returns a stream of any account, for actors.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Stream, Error> {
    query_as("SELECT * FROM video_streams WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("stream"))
}

/// Stream that plays one of the requested files.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Showing {
    pub source_file_id: Uuid,
    pub playback_id: String,
    pub access: Access,
    #[sqlx(try_from = "Narrow")]
    pub token_ttl_s: Option<u32>,
}

/// Streams of these files that are ready and play on every site, the newest of a file last.
pub async fn showing(db: &mut impl Connection, file_ids: &[Uuid]) -> Result<Vec<Showing>, Error> {
    let ids: Vec<String> = file_ids.iter().map(|id| id.simple().to_string()).collect();
    let ids = serde_json::to_string(&ids).expect("texts are JSON");
    Ok(query_as(
        "SELECT v.source_file_id, v.playback_id, v.access, v.token_ttl_s
         FROM json_each($1) j CROSS JOIN video_streams v ON v.source_file_id = unhex(j.value)
         WHERE v.status = 'ready' AND v.allowed_domains = '[]' ORDER BY v.created_at, v.id",
    )
    .bind(ids)
    .fetch_all(db)
    .await?)
}

/// Returns a stream of any account, for players. `Error::NotFound` for an unknown one.
pub async fn by_playback_id(db: &mut impl Connection, playback_id: &str) -> Result<Stream, Error> {
    query_as("SELECT * FROM video_streams WHERE playback_id = $1")
        .bind(playback_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("stream"))
}

/// Filter of an account's streams; by default all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFilter {
    pub status: Option<StreamStatus>,
    /// Only streams made of this file.
    pub source_file_id: Option<Uuid>,
}

/// The account's streams that pass the filter, newest first.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: StreamFilter,
    page: Page,
) -> Result<Vec<Stream>, Error> {
    let query = query_as(
        "SELECT * FROM video_streams WHERE account_id = $1 AND (created_at, id) < ($4, $5)
             AND ($2 IS NULL OR status = $2) AND ($3 IS NULL OR source_file_id = $3)
         ORDER BY created_at DESC, id DESC LIMIT $6",
    )
    .bind(account_id)
    .bind(filter.status)
    .bind(filter.source_file_id);
    page.read(query, db).await
}

/// Changes the fields of the patch; returns the row as it is then. Errors as [`get`].
pub async fn update(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    patch: StreamPatch,
    now_ms: i64,
) -> Result<Stream, Error> {
    query_as(
        "UPDATE video_streams SET
             title = coalesce($3, title),
             access = coalesce($4, access),
             token_ttl_s = CASE WHEN $5 THEN $6 ELSE token_ttl_s END,
             allowed_domains = coalesce($7, allowed_domains),
             updated_at = $8
         WHERE id = $1 AND account_id = $2 RETURNING *",
    )
    .bind(id)
    .bind(account_id)
    .bind(patch.title)
    .bind(patch.access)
    .bind(patch.token_ttl_s.is_some())
    .bind(patch.token_ttl_s.flatten())
    .bind(patch.allowed_domains.map(Json))
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("stream"))
}

/// Images that were made of the source and are flushed, each with its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeImages {
    pub poster_bytes: Option<u64>,
    /// The sheet and its map.
    pub storyboard_bytes: Option<u64>,
}

/// Notes the images of a stream. `Error::Conflict` when the lease is lost or the images are noted already,
/// `Error::OverQuota` when the account's storage is full.
pub async fn images_made(
    tx: &mut Tx<'_>,
    lease: &Lease,
    images: MadeImages,
    now_ms: i64,
) -> Result<Stream, Error> {
    work::progressed(tx, lease).await?;
    let changed: Option<Stream> = query_as(
        "UPDATE video_streams SET has_poster = has_poster OR $2, has_storyboard = has_storyboard OR $3, updated_at = $4
         WHERE id = $1 AND NOT (has_poster AND $2) AND NOT (has_storyboard AND $3) RETURNING *",
    )
    .bind(lease.id)
    .bind(images.poster_bytes.is_some())
    .bind(images.storyboard_bytes.is_some())
    .bind(now_ms)
    .fetch_optional(tx)
    .await?;
    let stream = changed.ok_or_else(|| Error::Conflict("the images are there already".into()))?;
    let bytes = images.poster_bytes.unwrap_or(0) + images.storyboard_bytes.unwrap_or(0);
    grown(tx, stream, bytes).await
}

/// Unfinished streams of all accounts, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct StreamCounts {
    pub pending: i64,
    pub processing: i64,
}

/// Counts along the index of unfinished streams.
pub async fn count_by_status(db: &mut impl Connection) -> Result<StreamCounts, Error> {
    Ok(query_as(
        "SELECT count(*) FILTER (WHERE status = 'pending') AS pending, count(*) FILTER (WHERE status = 'processing') AS processing
         FROM video_streams WHERE status IN ('pending', 'processing')",
    )
    .fetch_one(db)
    .await?)
}
