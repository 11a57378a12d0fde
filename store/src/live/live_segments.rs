//! Rows of recorded media in the object store: segments and init sections of a broadcast, from their upload until the recording
//! is stored as files.
//!
//! - Nothing is written without `store.objects_url`.
//! - A row carries the fence of its broadcast's owner: one that has been replaced writes none.
//! - [`delete`] removes rows first, objects afterwards.

use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    Connection, Error, Store, Tx,
    blob::{UploadedFile, pieces::Place},
    statement::{query, query_as, query_scalar},
};

/// Rows that are read at a time, and deleted in one unit of work.
const PAGE: usize = 500;

/// Media that were uploaded and have no row yet.
#[derive(Debug)]
pub struct NewLiveSegment {
    /// Name of the file in the folder of the recording.
    pub name: String,
    /// Line of the recording's index, in JSON.
    pub entry: String,
    pub file: UploadedFile,
}

/// Media that are in the object store.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct LiveSegment {
    pub name: String,
    pub entry: String,
}

/// Returns whether recorded media go to an object store.
pub fn are_kept(store: &Store) -> bool {
    store.blobs().has_objects()
}

/// Records media of a broadcast; again is fine. `Error::Conflict` when a newer owner has the broadcast; `Error::Objects` when
/// they have waited so long that they have to be uploaded again.
pub async fn record(
    tx: &mut Tx<'_>,
    broadcast: &str,
    fence: i64,
    media: &[NewLiveSegment],
    now_ms: i64,
) -> Result<(), Error> {
    for new in media {
        let place = new.file.place();
        let size = i64::try_from(new.file.size());
        let recorded = query(
            "INSERT INTO live_segments (broadcast, name, entry, fence, size_bytes, base, piece_hashes, created_at)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8
             WHERE NOT EXISTS (SELECT 1 FROM broadcasts WHERE id = $1 AND fence > $4)
             ON CONFLICT (broadcast, name) DO UPDATE SET entry = excluded.entry, fence = excluded.fence,
                 size_bytes = excluded.size_bytes, base = excluded.base, piece_hashes = excluded.piece_hashes
             WHERE live_segments.fence <= excluded.fence",
        )
        .bind(broadcast)
        .bind(&new.name)
        .bind(&new.entry)
        .bind(fence)
        .bind(size.map_err(|_| Error::Internal("a segment of 8 EiB".into()))?)
        .bind(place.base)
        .bind(place.piece_hashes.clone())
        .bind(now_ms)
        .execute(tx)
        .await?;
        if recorded.rows_affected() == 0 {
            return Err(Error::Conflict(format!(
                "the broadcast has a newer owner (this one has the fence {fence})"
            )));
        }
        new.file.note_recorded()?;
    }
    Ok(())
}

/// Lists all media of a broadcast.
pub async fn list(db: &mut impl Connection, broadcast: &str) -> Result<Vec<LiveSegment>, Error> {
    let mut listed: Vec<LiveSegment> = Vec::new();
    loop {
        let after = listed
            .last()
            .map_or_else(String::new, |row| row.name.clone());
        let page: Vec<LiveSegment> = query_as(
            "SELECT name, entry FROM live_segments WHERE broadcast = $1 AND name > $2 ORDER BY name LIMIT $3",
        )
        .bind(broadcast)
        .bind(after)
        .bind(PAGE as i64)
        .fetch_all(db)
        .await?;
        let is_last = page.len() < PAGE;
        listed.extend(page);
        if is_last {
            return Ok(listed);
        }
    }
}

/// Returns size and objects of media. `Error::NotFound` when they have no row.
pub(crate) async fn place(
    db: &mut impl Connection,
    broadcast: &str,
    name: &str,
) -> Result<(u64, Place), Error> {
    let found: Option<(i64, Uuid, Vec<u8>)> = query_as(
        "SELECT size_bytes, base, piece_hashes FROM live_segments WHERE broadcast = $1 AND name = $2",
    )
    .bind(broadcast)
    .bind(name)
    .fetch_optional(db)
    .await?;
    let (size, base, piece_hashes) = found.ok_or(Error::NotFound("recorded media"))?;
    let place = Place { base, piece_hashes };
    Ok((size.unsigned_abs(), place))
}

/// Returns the next broadcast that has media, in the order of their ids.
pub async fn next_broadcast(
    db: &mut impl Connection,
    after: &str,
) -> Result<Option<String>, Error> {
    let next = query_scalar(
        "SELECT broadcast FROM live_segments WHERE broadcast > $1 ORDER BY broadcast LIMIT 1",
    )
    .bind(after)
    .fetch_optional(db)
    .await?;
    Ok(next)
}

/// Returns when the newest media of a broadcast were recorded; `None` when there are none.
pub async fn newest_at(db: &mut impl Connection, broadcast: &str) -> Result<Option<i64>, Error> {
    let newest = query_scalar(
        "SELECT created_at FROM live_segments WHERE broadcast = $1 ORDER BY created_at DESC LIMIT 1",
    )
    .bind(broadcast)
    .fetch_optional(db)
    .await?;
    Ok(newest)
}

/// Deletes the media of a broadcast in the object store; returns how many. What a failure leaves of the objects is found by a
/// sweep.
pub async fn delete(store: &Store, broadcast: &str) -> Result<u64, Error> {
    let mut total = 0;
    loop {
        let of = broadcast.to_owned();
        let deleted: Vec<(Uuid, Vec<u8>)> = store
            .write_beside(move |tx| {
                Box::pin(async move {
                    let rows = query_as(
                        "DELETE FROM live_segments WHERE broadcast = $1 AND name IN (
                             SELECT name FROM live_segments WHERE broadcast = $1 LIMIT $2)
                         RETURNING base, piece_hashes",
                    )
                    .bind(of)
                    .bind(PAGE as i64)
                    .fetch_all(tx)
                    .await?;
                    Ok(rows)
                })
            })
            .await?;
        let count = deleted.len();
        total += count as u64;
        let places = deleted
            .into_iter()
            .map(|(base, piece_hashes)| Place { base, piece_hashes });
        let keys = places.flat_map(|place| place.keys());
        store.blobs().delete_objects(keys).await;
        if count < PAGE {
            return Ok(total);
        }
    }
}

#[cfg(test)]
mod tests;
