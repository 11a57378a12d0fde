//! Closed segments of broadcasts, written in groups some time after they were published.

use sqlx::{query, query_as};

use crate::{Connection, Error, Tx, broadcasts};

/// Rows that one deletion takes at most: more would hold up the writer.
pub const MOST_DELETED: u32 = 5_000;

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct LiveSegment {
    pub broadcast_id: String,
    /// Media sequence number.
    pub msn: i64,
    pub start_90k: i64,
    pub duration_90k: i64,
    pub bytes: i64,
    pub fence: i64,
}

/// A segment to be noted.
#[derive(Clone, Copy, Debug)]
pub struct NewLiveSegment {
    pub msn: i64,
    pub start_90k: i64,
    pub duration_90k: i64,
    pub bytes: i64,
}

/// Records segments; one that is recorded already (a repeated group) is overwritten. `Error::Conflict` when a newer
/// owner has the input, `Error::NotFound` when the broadcast was deleted.
pub async fn insert(
    tx: &mut Tx<'_>,
    broadcast_id: &str,
    fence: i64,
    segments: &[NewLiveSegment],
) -> Result<(), Error> {
    let broadcast = broadcasts::get(tx, broadcast_id).await?;
    broadcasts::check_fence(tx, broadcast.input_id, fence).await?;
    for segment in segments {
        query(
            "INSERT INTO live_segments (broadcast_id, msn, start_90k, duration_90k, bytes, fence) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (broadcast_id, msn) DO UPDATE SET start_90k = excluded.start_90k,
                 duration_90k = excluded.duration_90k, bytes = excluded.bytes, fence = excluded.fence",
        )
        .bind(broadcast_id)
        .bind(segment.msn)
        .bind(segment.start_90k)
        .bind(segment.duration_90k)
        .bind(segment.bytes)
        .bind(fence)
        .execute(tx.sqlite())
        .await?;
    }
    Ok(())
}

/// Returns at most `limit` segments from `from_msn` on, in order.
pub async fn list(
    db: &mut impl Connection,
    broadcast_id: &str,
    from_msn: i64,
    limit: u32,
) -> Result<Vec<LiveSegment>, Error> {
    let segments = query_as(
        "SELECT * FROM live_segments WHERE broadcast_id = $1 AND msn >= $2 ORDER BY msn LIMIT $3",
    )
    .bind(broadcast_id)
    .bind(from_msn)
    .bind(limit)
    .fetch_all(db.sqlite())
    .await?;
    Ok(segments)
}

/// The lowest media sequence number among the newest `count` segments (at least one); `None` when there are not more.
pub async fn first_of_newest(
    db: &mut impl Connection,
    broadcast_id: &str,
    count: u32,
) -> Result<Option<i64>, Error> {
    let newest: Vec<(i64,)> = query_as(
        "SELECT msn FROM live_segments WHERE broadcast_id = $1 ORDER BY msn DESC LIMIT 2 OFFSET $2",
    )
    .bind(broadcast_id)
    .bind(count.max(1) - 1)
    .fetch_all(db.sqlite())
    .await?;
    Ok(newest.first().filter(|_| newest.len() == 2).map(|it| it.0))
}

/// Deletes at most `limit` segments below `before_msn`, the oldest first and never more than [`MOST_DELETED`]; returns
/// how many. The remaining ones of a broadcast are swept a day after its end.
pub async fn delete_before(
    tx: &mut Tx<'_>,
    broadcast_id: &str,
    before_msn: i64,
    limit: u32,
) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM live_segments WHERE broadcast_id = $1
         AND msn IN (SELECT msn FROM live_segments WHERE broadcast_id = $1 AND msn < $2 ORDER BY msn LIMIT $3)",
    )
    .bind(broadcast_id)
    .bind(before_msn)
    .bind(limit.min(MOST_DELETED))
    .execute(tx.sqlite())
    .await?;
    Ok(deleted.rows_affected())
}

/// Deletes at most `limit` segments of broadcasts that ended before `ended_before`, never more than [`MOST_DELETED`];
/// returns how many.
pub async fn delete_ended_before(
    tx: &mut Tx<'_>,
    ended_before: i64,
    limit: u32,
) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM live_segments WHERE (broadcast_id, msn) IN (
             SELECT s.broadcast_id, s.msn FROM broadcasts b JOIN live_segments s ON s.broadcast_id = b.id
             WHERE b.ended_at < $1 LIMIT $2)",
    )
    .bind(ended_before)
    .bind(limit.min(MOST_DELETED))
    .execute(tx.sqlite())
    .await?;
    Ok(deleted.rows_affected())
}
