//! Retention of events and webhook deliveries: by age (`webhooks.keep`) and within a number of bytes
//! (`webhooks.keep_bytes`).
//!
//! - What has ended is deleted when it is old enough. Over the bytes, the oldest is deleted first: deliveries that
//!   were made, then those that failed, in both cases with their events and after those of an earlier time that no
//!   delivery names; then the other events that no delivery names.
//! - A delivery that waits for an endpoint in use, or that was requested again, is never deleted. One that waits for a
//!   suspended or paused endpoint is deleted at the greatest age that anything may have, and as a last resort for its
//!   bytes; the log says how much.
//! - The bytes, the feed's end and an event's deliveries are counted by the schema's triggers; this module only
//!   deletes.

use std::time::Duration;

use tracing::warn;

use crate::{
    Connection, Error, Store, Tx, duration_ms, rows,
    statement::{query, query_scalar},
    turns::{SweepResult, in_turns, turns},
};

use super::{DeliveryStatus, kept_bytes};

/// Time after which the number of the last event about a resource is deleted when none has followed.
const SEQUENCES_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;
/// Least size of a delivery in bytes, as the schema counts them.
const DELIVERY_BYTES: u64 = 640;
/// Final states of a delivery, the less valuable first: a failed one can still be sent again.
const ENDED: [DeliveryStatus; 2] = [DeliveryStatus::Delivered, DeliveryStatus::Failed];
/// Attempts that may be deleted in a turn for each of its deliveries.
const ATTEMPTS: u32 = 8;
/// Waiting deliveries that are read, and dropped in a turn.
const PAGE: u32 = 100;

/// Statements that search many rows; each must use an index.
const FIRST_END: &str =
    "SELECT min(ended_at) FROM webhook_deliveries WHERE status = $1 AND ended_at IS NOT NULL";
const ENDED_BEFORE: &str = "SELECT seq FROM webhook_deliveries
     WHERE status = $1 AND ended_at < $2 ORDER BY ended_at LIMIT $3";
const WAITING_BEFORE: &str = "SELECT seq FROM webhook_deliveries
     WHERE status IN ('pending', 'retrying') AND status <> 'delivered' AND is_replay = 0 AND created_at < $1
         AND endpoint_id IN (SELECT id FROM webhook_endpoints WHERE status <> 'active') LIMIT $2";
const WITHOUT_ENDPOINT: &str = "SELECT seq FROM webhook_deliveries
     WHERE status IN ('pending', 'retrying') AND status <> 'delivered'
         AND endpoint_id IN (SELECT id FROM webhook_endpoints WHERE deleted_at IS NOT NULL) LIMIT $1";
const DELETE_UNNAMED: &str = "DELETE FROM events WHERE seq IN (
     SELECT seq FROM events WHERE deliveries = 0 AND created_at < $1 ORDER BY created_at LIMIT $2)";

/// The settings `webhooks.keep` and `webhooks.keep_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub keep: Duration,
    pub keep_bytes: u64,
}

/// Deletes rows that have expired or exceed the bytes, in turns of the writer; returns how many rows.
pub(crate) async fn sweep(store: &Store, retention: &Retention, now_ms: i64) -> Result<u64, Error> {
    let keep_ms = duration_ms(retention.keep);
    let before = now_ms.saturating_sub(keep_ms);
    let deleted = sweep_deleted_endpoints(store, now_ms).await?;
    let old = sweep_old(store, before).await?;
    let sequences = in_turns(store, move |tx, rows| {
        Box::pin(delete_sequences(tx, now_ms - SEQUENCES_KEPT_MS, rows))
    })
    .await?;
    let room = make_room(store, retention.keep_bytes).await?;
    Ok(deleted + old + sequences + room)
}

/// Deletes by age: deliveries that ended, those that waited too long, and the events that nothing names then.
async fn sweep_old(store: &Store, before: i64) -> Result<u64, Error> {
    let mut rows = 0;
    for ended in ENDED {
        rows += in_turns(store, move |tx, most| {
            Box::pin(delete_ended(tx, ended, before, most))
        })
        .await?;
    }
    let waited = in_turns(store, move |tx, most| {
        Box::pin(delete_waiting_before(tx, before, most))
    })
    .await?;
    if waited > 0 {
        warn!(
            rows = waited,
            "deliveries that waited for suspended or paused webhooks for webhooks.keep are dropped unsent"
        );
    }
    let events = in_turns(store, move |tx, most| {
        Box::pin(delete_unnamed_events(tx, before, most))
    })
    .await?;
    Ok(rows + waited + events)
}

/// Deletes the oldest until no more than `keep_bytes` are left, or nothing that may be deleted.
async fn make_room(store: &Store, keep_bytes: u64) -> Result<u64, Error> {
    let is_over = async || Ok::<_, Error>(kept_bytes(&mut store.read().await?).await? > keep_bytes);
    if !is_over().await? {
        return Ok(0);
    }
    let mut rows = turns(store, move |tx, most| {
        Box::pin(make_some_room(tx, keep_bytes, most))
    })
    .await?;
    if is_over().await? {
        rows += drop_waiting(store, keep_bytes).await?;
    }
    Ok(rows)
}

/// Deletes a part of the rows that no account misses.
async fn make_some_room(tx: &mut Tx<'_>, keep_bytes: u64, most: u32) -> Result<SweepResult, Error> {
    let most = within_excess(kept_bytes(tx).await?, keep_bytes, most);
    let rows = match most {
        0 => 0,
        _ => delete_oldest(tx, most).await?,
    };
    Ok(SweepResult {
        rows,
        is_last: rows == 0,
    })
}

/// Returns how many rows may be deleted without making more room than is needed, to a row.
fn within_excess(bytes: u64, keep_bytes: u64, most: u32) -> u32 {
    let excess = bytes.saturating_sub(keep_bytes);
    u32::try_from(excess.div_ceil(DELIVERY_BYTES)).map_or(most, |rows| rows.min(most))
}

/// Deletes at most `most` rows of the kind that is next.
async fn delete_oldest(tx: &mut Tx<'_>, most: u32) -> Result<u64, Error> {
    for ended in ENDED {
        let oldest: Option<i64> = query_scalar(FIRST_END).bind(ended).fetch_one(tx).await?;
        let Some(oldest) = oldest else {
            continue;
        };
        let events = delete_unnamed_events(tx, oldest, most).await?;
        return match events {
            0 => delete_ended(tx, ended, i64::MAX, most).await,
            events => Ok(events),
        };
    }
    delete_unnamed_events(tx, i64::MAX, most).await
}

/// Counts of deleted rows.
#[derive(Clone, Copy, Debug, Default)]
struct Deleted {
    deliveries: u64,
    /// Attempts and events with them.
    rows: u64,
}

/// Deletes at most `most` deliveries, with their attempts and with the events that nothing names then. One that was
/// probed for days has thousands of attempts: those beyond a turn are left, with their delivery.
async fn delete(tx: &mut Tx<'_>, seqs: &[i64], most: u32) -> Result<Deleted, Error> {
    if seqs.is_empty() {
        return Ok(Deleted::default());
    }
    let seqs = rows::Json(seqs);
    let attempts = query(
        "DELETE FROM webhook_attempts WHERE (delivery_seq, number) IN (
             SELECT a.delivery_seq, a.number FROM json_each($1) d
             CROSS JOIN webhook_attempts a ON a.delivery_seq = CAST(d.value AS INTEGER) LIMIT $2)",
    )
    .bind(seqs)
    .bind(most.saturating_mul(ATTEMPTS))
    .execute(tx)
    .await?;
    let named: Vec<i64> = query_scalar(
        "DELETE FROM webhook_deliveries WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($1))
             AND NOT EXISTS (SELECT 1 FROM webhook_attempts WHERE delivery_seq = webhook_deliveries.seq)
         RETURNING event_seq",
    )
    .bind(seqs)
    .fetch_all(tx)
    .await?;
    let events = query(
        "DELETE FROM events WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($1)) AND deliveries = 0",
    )
    .bind(rows::Json(&named))
    .execute(tx)
    .await?;
    let deliveries = named.len() as u64;
    Ok(Deleted {
        deliveries,
        rows: deliveries + attempts.rows_affected() + events.rows_affected(),
    })
}

/// The oldest deliveries that ended so before a time; returns how many rows. It has found all when these are fewer than
/// `most`.
async fn delete_ended(
    tx: &mut Tx<'_>,
    ended: DeliveryStatus,
    ended_before: i64,
    most: u32,
) -> Result<u64, Error> {
    let oldest: Vec<i64> = query_scalar(ENDED_BEFORE)
        .bind(ended)
        .bind(ended_before)
        .bind(most)
        .fetch_all(tx)
        .await?;
    Ok(delete(tx, &oldest, most).await?.rows)
}

/// Deletes as [`delete_ended`] does: deliveries that were made before a time and wait for endpoints that are not in
/// use.
async fn delete_waiting_before(
    tx: &mut Tx<'_>,
    created_before: i64,
    most: u32,
) -> Result<u64, Error> {
    let old: Vec<i64> = query_scalar(WAITING_BEFORE)
        .bind(created_before)
        .bind(most)
        .fetch_all(tx)
        .await?;
    Ok(delete(tx, &old, most).await?.rows)
}

/// The oldest events of before a time that no delivery names.
async fn delete_unnamed_events(
    tx: &mut Tx<'_>,
    created_before: i64,
    most: u32,
) -> Result<u64, Error> {
    let deleted = query(DELETE_UNNAMED)
        .bind(created_before)
        .bind(most)
        .execute(tx)
        .await?;
    Ok(deleted.rows_affected())
}

/// Drops, as the last resort, deliveries that wait for suspended or paused endpoints of any account, in the order of
/// their events.
async fn drop_waiting(store: &Store, keep_bytes: u64) -> Result<u64, Error> {
    let (mut rows, mut deliveries, mut after) = (0, 0, 0);
    loop {
        let page = waiting_after(&mut store.read().await?, after).await?;
        if page.is_empty() {
            break;
        }
        let turn = store.write(move |tx| Box::pin(drop_some(tx, page, keep_bytes)));
        let dropped = turn.await?;
        rows += dropped.rows;
        deliveries += dropped.deliveries;
        match dropped.up_to {
            Some(seq) => after = seq,
            None => break,
        }
    }
    if deliveries > 0 {
        warn!(
            deliveries,
            "events and deliveries take more than webhooks.keep_bytes: deliveries that wait for suspended or paused \
             webhooks are dropped unsent, the oldest first"
        );
    }
    Ok(rows)
}

/// Returns a page of them, by a reader: deliveries for endpoints in use are between them, and may be many.
async fn waiting_after(db: &mut impl Connection, after: i64) -> Result<Vec<i64>, Error> {
    Ok(query_scalar(
        "SELECT d.seq FROM webhook_deliveries d CROSS JOIN webhook_endpoints e ON e.id = d.endpoint_id
         WHERE d.seq > $1 AND +d.status IN ('pending', 'retrying') AND d.is_replay = 0 AND e.status <> 'active'
         ORDER BY d.seq LIMIT $2",
    )
    .bind(after)
    .bind(PAGE)
    .fetch_all(db)
    .await?)
}

struct Dropped {
    deliveries: u64,
    rows: u64,
    /// Position at which to continue; `None` when there is room enough.
    up_to: Option<i64>,
}

/// Drops as many as are needed of those that still wait, in their order.
async fn drop_some(tx: &mut Tx<'_>, page: Vec<i64>, keep_bytes: u64) -> Result<Dropped, Error> {
    let most = within_excess(kept_bytes(tx).await?, keep_bytes, PAGE);
    let waiting: Vec<i64> = query_scalar(
        "SELECT d.seq FROM json_each($1) p CROSS JOIN webhook_deliveries d ON d.seq = CAST(p.value AS INTEGER)
         CROSS JOIN webhook_endpoints e ON e.id = d.endpoint_id
         WHERE d.status IN ('pending', 'retrying') AND d.is_replay = 0 AND e.status <> 'active' ORDER BY d.seq LIMIT $2",
    )
    .bind(rows::Json(&page))
    .bind(most)
    .fetch_all(tx)
    .await?;
    let deleted = delete(tx, &waiting, most).await?;
    let is_enough = kept_bytes(tx).await? <= keep_bytes;
    let is_whole = deleted.deliveries == waiting.len() as u64;
    let up_to = match (page.first(), waiting.last()) {
        _ if is_enough => None,
        // Deliveries whose attempts were too many for this turn are found again.
        (Some(first), _) if !is_whole => Some(first - 1),
        (_, Some(last)) => Some(*last),
        _ => page.last().copied(),
    };
    Ok(Dropped {
        deliveries: deleted.deliveries,
        rows: deleted.rows,
        up_to,
    })
}

/// Deletes numbers that are not counted on any more. A live input may be idle for years, and its numbers continue for
/// as long as it exists.
async fn delete_sequences(tx: &mut Tx<'_>, before: i64, most: u32) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM event_sequences WHERE resource IN (
             SELECT resource FROM event_sequences WHERE updated_at < $1
                 AND NOT (resource LIKE 'live-input:%'
                     AND EXISTS (SELECT 1 FROM live_inputs WHERE id = unhex(substr(resource, 12), '-')))
             ORDER BY updated_at LIMIT $2)",
    )
    .bind(before)
    .bind(most)
    .execute(tx)
    .await?;
    Ok(deleted.rows_affected())
}

/// Ends deliveries that wait for deleted endpoints, and removes the endpoints that no delivery names any more.
async fn sweep_deleted_endpoints(store: &Store, now_ms: i64) -> Result<u64, Error> {
    in_turns(store, move |tx, most| {
        Box::pin(end_without_endpoint(tx, now_ms, most))
    })
    .await?;
    in_turns(store, move |tx, most| Box::pin(delete_endpoints(tx, most))).await
}

/// Ends at most `most` of the deliveries that wait for deleted endpoints; returns how many.
pub(super) async fn end_without_endpoint(
    tx: &mut Tx<'_>,
    now_ms: i64,
    most: u32,
) -> Result<u64, Error> {
    let waiting: Vec<i64> = query_scalar(WITHOUT_ENDPOINT)
        .bind(most)
        .fetch_all(tx)
        .await?;
    let ended = query(
        "UPDATE webhook_deliveries SET status = 'failed', ended_at = $1, is_replay = 0, error = 'the webhook was deleted'
         WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($2))",
    )
    .bind(now_ms)
    .bind(rows::Json(waiting))
    .execute(tx)
    .await?;
    Ok(ended.rows_affected())
}

async fn delete_endpoints(tx: &mut Tx<'_>, most: u32) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM webhook_endpoints WHERE id IN (
             SELECT id FROM webhook_endpoints e WHERE deleted_at IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE endpoint_id = e.id) LIMIT $1)",
    )
    .bind(most)
    .execute(tx)
    .await?;
    Ok(deleted.rows_affected())
}

#[cfg(test)]
mod tests;
