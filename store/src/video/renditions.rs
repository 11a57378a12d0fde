//! Rows of the renditions of a video stream: planned once its source has been inspected, then filled.

use std::collections::HashMap;

use sqlx::FromRow;
use uuid::Uuid;

use super::Stream;
use crate::{
    Connection, Error, Tx, rows,
    rows::Narrow,
    statement::{query, query_as},
    work::{self, Lease},
};

text_enum! {
    pub enum RenditionKind {
        Video = "video",
        Audio = "audio",
    }
}

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Rendition {
    pub stream_id: Uuid,
    /// Number among the stream's renditions, video first, from 0.
    #[sqlx(try_from = "i64")]
    pub number: u8,
    /// Name in addresses and of its file, such as `720p` and `audio`; unique in the stream.
    pub name: String,
    pub kind: RenditionKind,
    /// Width in pixels; `None` for audio.
    #[sqlx(try_from = "Narrow")]
    pub width: Option<u32>,
    #[sqlx(try_from = "Narrow")]
    pub height: Option<u32>,
    /// Target bit rate, in bits per second, and the maximum over a second or so.
    #[sqlx(try_from = "i64")]
    pub bitrate: u32,
    #[sqlx(try_from = "i64")]
    pub max_bitrate: u32,
    /// True when the source's own video or audio is copied as coded.
    pub is_copy: bool,
    /// RFC 6381; `None` until the init section is stored, as the others.
    pub codecs: Option<String>,
    /// Frames per second.
    pub frame_rate: Option<f64>,
    /// Bytes of its file before the first segment.
    pub init_length: Option<i64>,
    /// Segments that are stored.
    #[sqlx(try_from = "i64")]
    pub segment_count: u32,
    /// Size of its init section and segments.
    pub size_bytes: i64,
    pub duration_90k: i64,
}

impl Rendition {
    /// Returns the bit rate of the stored segments, in bits per second; `None` before the first segment.
    pub fn average_bitrate(&self) -> Option<u64> {
        let duration_90k = u64::try_from(self.duration_90k).ok().filter(|it| *it > 0)?;
        let bits = u128::from(self.media_bytes()) * 8;
        u64::try_from(bits * 90_000 / u128::from(duration_90k)).ok()
    }

    /// Returns the size of its segments.
    fn media_bytes(&self) -> u64 {
        let init = self.init_length.unwrap_or(0);
        u64::try_from(self.size_bytes - init).unwrap_or(0)
    }
}

/// A rendition to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRendition {
    pub name: String,
    pub kind: RenditionKind,
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub bitrate: u32,
    pub max_bitrate: u32,
    pub is_copy: bool,
}

/// Facts of the source, and the renditions to be made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub duration_ms: Option<i64>,
    /// Size as shown, in pixels; `None` without video.
    pub size: Option<(u32, u32)>,
    /// Video first.
    pub renditions: Vec<PlannedRendition>,
}

/// Notes the source's facts and makes the rows of the renditions, once. `Error::Conflict` when the lease is lost.
pub async fn plan(
    tx: &mut Tx<'_>,
    lease: &Lease,
    plan: &Plan,
    now_ms: i64,
) -> Result<Stream, Error> {
    work::progressed(tx, lease).await?;
    for (number, rendition) in plan.renditions.iter().enumerate() {
        insert(tx, lease.id, number, rendition).await?;
    }
    let (width, height) = plan.size.unzip();
    query_as(
        "UPDATE video_streams SET duration_ms = $2, width = $3, height = $4, updated_at = $5 WHERE id = $1 RETURNING *",
    )
    .bind(lease.id)
    .bind(plan.duration_ms)
    .bind(width)
    .bind(height)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("stream"))
}

async fn insert(
    tx: &mut Tx<'_>,
    stream_id: Uuid,
    number: usize,
    rendition: &PlannedRendition,
) -> Result<(), Error> {
    query(
        "INSERT INTO video_renditions (stream_id, number, name, kind, width, height, bitrate, max_bitrate, is_copy)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(stream_id)
    .bind(i64::try_from(number).unwrap_or(i64::MAX))
    .bind(&rendition.name)
    .bind(rendition.kind)
    .bind(rendition.width)
    .bind(rendition.height)
    .bind(rendition.bitrate)
    .bind(rendition.max_bitrate)
    .bind(rendition.is_copy)
    .execute(tx)
    .await?;
    Ok(())
}

/// Returns the renditions of a stream, in order; none before they are planned and once it has failed.
pub async fn renditions(
    db: &mut impl Connection,
    stream_id: Uuid,
) -> Result<Vec<Rendition>, Error> {
    Ok(
        query_as("SELECT * FROM video_renditions WHERE stream_id = $1 ORDER BY number")
            .bind(stream_id)
            .fetch_all(db)
            .await?,
    )
}

/// Returns the renditions of several streams at once, as [`renditions`] does of one.
pub async fn renditions_of(
    db: &mut impl Connection,
    streams: &[Uuid],
) -> Result<HashMap<Uuid, Vec<Rendition>>, Error> {
    let rows: Vec<Rendition> = query_as(
        "SELECT v.* FROM json_each($1) j CROSS JOIN video_renditions v ON v.stream_id = unhex(j.value)
         ORDER BY v.stream_id, v.number",
    )
    .bind(rows::ids(streams)?)
    .fetch_all(db)
    .await?;
    let mut found: HashMap<Uuid, Vec<Rendition>> = HashMap::new();
    for row in rows {
        found.entry(row.stream_id).or_default().push(row);
    }
    Ok(found)
}
