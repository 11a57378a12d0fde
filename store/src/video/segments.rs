//! Segments of a video stream's renditions: recorded in groups, segments from which on a stream is playable, restart
//! after an interruption.

use serde::Serialize;
use sqlx::FromRow;
use uuid::Uuid;

use super::{RenditionKind, Stream, objects::cut_objects};
use crate::{
    Connection, Error, Tx,
    rows::json,
    statement::{query, query_as, query_scalar},
    storage,
    work::{self, Lease},
};

/// Segments of every rendition from which on a stream is played while it grows.
const PLAYABLE_SEGMENTS: u32 = 3;
/// Step of a stream's progress, in percent, that counts as progress of a try. The count of claims restarts then, at
/// most twenty times in a stream's life, so that a source that crashes the service is given up although each try
/// records a little.
const STRIDE: u8 = 5;

/// A piece of a rendition's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow, Serialize)]
pub struct Segment {
    /// The rendition's number.
    #[sqlx(try_from = "i64")]
    pub rendition: u8,
    /// Number from 0.
    #[sqlx(try_from = "i64")]
    pub number: u32,
    /// Bytes of the rendition's file.
    #[sqlx(try_from = "i64")]
    pub offset: u64,
    #[sqlx(try_from = "i64")]
    pub length: u64,
    /// Start on the stream's timeline, which starts at 0.
    pub start_90k: i64,
    #[sqlx(try_from = "i64")]
    pub duration_90k: u32,
    /// Bytes from `offset` on that hold its first frame; 0 for audio.
    #[sqlx(try_from = "i64")]
    pub key_length: u64,
}

impl Segment {
    /// Returns the offset of the next segment in the file.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Returns the start time of the next segment.
    pub fn end_90k(&self) -> i64 {
        self.start_90k.saturating_add(i64::from(self.duration_90k))
    }
}

/// The beginning of a rendition's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Init {
    /// The rendition's number.
    pub rendition: u8,
    pub length: u64,
    /// RFC 6381.
    pub codecs: String,
    pub frame_rate: Option<f64>,
    /// True when the rendition has the source's own units, unless a copy that was requested turned out not to fit.
    pub is_copy: bool,
}

/// Segments flushed to the files since the last group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub inits: Vec<Init>,
    pub segments: Vec<Segment>,
    /// Progress of the whole stream, of 100.
    pub progress: u8,
}

impl Group {
    pub fn is_empty(&self) -> bool {
        self.inits.is_empty() && self.segments.is_empty()
    }
}

/// Records a group, and that the stream can be played once that is so; returns the stream as it is then.
/// `Error::Conflict` when the lease is lost, `Error::OverQuota` when the account's storage is full.
pub async fn record(
    tx: &mut Tx<'_>,
    lease: &Lease,
    group: &Group,
    now_ms: i64,
) -> Result<Stream, Error> {
    work::hold(tx, lease).await?;
    let before: i64 = query_scalar("SELECT progress FROM video_streams WHERE id = $1")
        .bind(lease.id)
        .fetch_optional(tx)
        .await?
        .ok_or(Error::NotFound("stream"))?;
    if i64::from(group.progress / STRIDE) > before / i64::from(STRIDE) {
        work::progressed(tx, lease).await?;
    }
    for init in &group.inits {
        query(
            "UPDATE video_renditions SET init_length = $3, codecs = $4, frame_rate = $5, is_copy = $6
             WHERE stream_id = $1 AND number = $2",
        )
        .bind(lease.id)
        .bind(init.rendition)
        .bind(i64::try_from(init.length).unwrap_or(i64::MAX))
        .bind(&init.codecs)
        .bind(init.frame_rate)
        .bind(init.is_copy)
        .execute(tx)
        .await?;
    }
    query(
        "INSERT INTO video_segments (stream_id, rendition, number, \"offset\", length, start_90k, duration_90k, key_length)
         SELECT $1, CAST(value ->> 'rendition' AS INTEGER), CAST(value ->> 'number' AS INTEGER),
             CAST(value ->> 'offset' AS INTEGER), CAST(value ->> 'length' AS INTEGER), CAST(value ->> 'start_90k' AS INTEGER),
             CAST(value ->> 'duration_90k' AS INTEGER), CAST(value ->> 'key_length' AS INTEGER)
         FROM json_each($2)",
    )
    .bind(lease.id)
    .bind(json(&group.segments)?)
    .execute(tx)
    .await?;
    let mut bytes = 0;
    for (rendition, sums) in sums(group) {
        add(tx, lease.id, rendition, &sums).await?;
        bytes += sums.bytes;
    }
    let stream = query_as(
        "UPDATE video_streams SET progress = max(progress, $2), playable = $3, updated_at = $4 WHERE id = $1 RETURNING *",
    )
    .bind(lease.id)
    .bind(group.progress)
    .bind(is_playable(tx, lease.id).await?)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("stream"))?;
    grown(tx, stream, bytes).await
}

/// Sums that a group adds to a rendition.
#[derive(Clone, Copy, Default)]
struct Sums {
    segments: u32,
    bytes: u64,
    duration_90k: i64,
}

fn sums(group: &Group) -> Vec<(u8, Sums)> {
    let mut found: Vec<(u8, Sums)> = Vec::new();
    let mut add = |rendition: u8, more: Sums| {
        let at = found.iter().position(|(known, _)| *known == rendition);
        let at = at.unwrap_or_else(|| {
            found.push((rendition, Sums::default()));
            found.len() - 1
        });
        let sums = &mut found[at].1;
        sums.segments += more.segments;
        sums.bytes += more.bytes;
        sums.duration_90k += more.duration_90k;
    };
    for init in &group.inits {
        let more = Sums {
            bytes: init.length,
            ..Sums::default()
        };
        add(init.rendition, more);
    }
    for segment in &group.segments {
        let more = Sums {
            segments: 1,
            bytes: segment.length,
            duration_90k: i64::from(segment.duration_90k),
        };
        add(segment.rendition, more);
    }
    found
}

async fn add(tx: &mut Tx<'_>, stream_id: Uuid, rendition: u8, sums: &Sums) -> Result<(), Error> {
    query(
        "UPDATE video_renditions SET segment_count = segment_count + $3, size_bytes = size_bytes + $4,
             duration_90k = duration_90k + $5
         WHERE stream_id = $1 AND number = $2",
    )
    .bind(stream_id)
    .bind(rendition)
    .bind(sums.segments)
    .bind(i64::try_from(sums.bytes).unwrap_or(i64::MAX))
    .bind(sums.duration_90k)
    .execute(tx)
    .await?;
    Ok(())
}

async fn is_playable(tx: &mut Tx<'_>, stream_id: Uuid) -> Result<bool, Error> {
    let fewest: Option<i64> =
        query_scalar("SELECT min(segment_count) FROM video_renditions WHERE stream_id = $1")
            .bind(stream_id)
            .fetch_one(tx)
            .await?;
    Ok(fewest.is_some_and(|fewest| fewest >= i64::from(PLAYABLE_SEGMENTS)))
}

/// Adds bytes of a stream to the account's storage; returns the stream as it is then. `Error::OverQuota` when they do
/// not fit.
pub(super) async fn grown(tx: &mut Tx<'_>, stream: Stream, bytes: u64) -> Result<Stream, Error> {
    storage::check(tx, stream.account_id, bytes, stream.allowance.storage_bytes).await?;
    resized(tx, stream, i64::try_from(bytes).unwrap_or(i64::MAX)).await
}

/// Changes the size as [`grown`] does, in either direction and without a limit.
pub(super) async fn resized(tx: &mut Tx<'_>, stream: Stream, bytes: i64) -> Result<Stream, Error> {
    storage::add(tx, stream.account_id, 0, bytes).await?;
    Ok(
        query_as("UPDATE video_streams SET size_bytes = size_bytes + $2 WHERE id = $1 RETURNING *")
            .bind(stream.id)
            .bind(bytes)
            .fetch_one(tx)
            .await?,
    )
}

/// Deletes what is made again: the segments of video from `kept` on, all of audio, and without any that are kept the
/// init sections too, with the rows of their objects; returns the stream as it is then. `Error::Conflict` when the lease is lost.
pub async fn step_back(
    tx: &mut Tx<'_>,
    lease: &Lease,
    kept: u32,
    now_ms: i64,
) -> Result<Stream, Error> {
    work::hold(tx, lease).await?;
    query(
        "DELETE FROM video_segments WHERE stream_id = $1
             AND (number >= $2 OR rendition IN (SELECT number FROM video_renditions WHERE stream_id = $1 AND kind = $3))",
    )
    .bind(lease.id)
    .bind(kept)
    .bind(RenditionKind::Audio)
    .execute(tx)
    .await?;
    cut_objects(tx, lease.id).await?;
    let before = size(tx, lease.id).await?;
    query(
        "UPDATE video_renditions SET init_length = NULL, codecs = NULL, frame_rate = NULL
         WHERE stream_id = $1 AND (kind = $2 OR $3 = 0)",
    )
    .bind(lease.id)
    .bind(RenditionKind::Audio)
    .bind(kept)
    .execute(tx)
    .await?;
    query(
        "UPDATE video_renditions AS r SET (segment_count, size_bytes, duration_90k) =
             (SELECT count(*), CAST(coalesce(sum(s.length), 0) AS INTEGER) + coalesce(r.init_length, 0),
                 CAST(coalesce(sum(s.duration_90k), 0) AS INTEGER)
              FROM video_segments s WHERE s.stream_id = r.stream_id AND s.rendition = r.number)
         WHERE stream_id = $1",
    )
    .bind(lease.id)
    .execute(tx)
    .await?;
    let after = size(tx, lease.id).await?;
    let stream: Option<Stream> = query_as(
        "UPDATE video_streams SET playable = 0, updated_at = $2 WHERE id = $1 RETURNING *",
    )
    .bind(lease.id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?;
    resized(tx, stream.ok_or(Error::NotFound("stream"))?, after - before).await
}

/// Returns the size of all renditions.
async fn size(tx: &mut Tx<'_>, stream_id: Uuid) -> Result<i64, Error> {
    Ok(query_scalar(
        "SELECT CAST(coalesce(sum(size_bytes), 0) AS INTEGER) FROM video_renditions WHERE stream_id = $1",
    )
    .bind(stream_id)
    .fetch_one(tx)
    .await?)
}

/// Returns a stream's segments, by rendition and number; none of one that has failed or was deleted, although they may
/// not be swept yet.
pub async fn segments(db: &mut impl Connection, stream_id: Uuid) -> Result<Vec<Segment>, Error> {
    Ok(query_as(
        "SELECT rendition, number, \"offset\", length, start_90k, duration_90k, key_length FROM video_segments
         WHERE stream_id = $1 AND NOT EXISTS (SELECT 1 FROM video_discarded WHERE stream_id = $1)
         ORDER BY rendition, number",
    )
    .bind(stream_id)
    .fetch_all(db)
    .await?)
}
