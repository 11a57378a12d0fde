//! Attempts of webhook deliveries: outcomes (HTTP status, error, response preview), resulting states of deliveries,
//! interruption.

use serde::Serialize;
use uuid::Uuid;

use super::MOST_PREVIEW_CHARACTERS;
use crate::{
    Connection, Error, Tx,
    rows::Narrow,
    rows::{self, hex, json},
    statement::{query, query_as, query_scalar},
};

/// Characters that are kept of an error.
const MOST_ERROR_CHARACTERS: usize = 1_000;

/// Attempts of one delivery that are shown.
const MOST_ATTEMPTS: u32 = 1_000;

text_enum! {
    pub enum AttemptStatus {
        Running = "running",
        Delivered = "delivered",
        Failed = "failed",
        /// The service ended before the answer arrived.
        Interrupted = "interrupted",
    }
}

/// Request to an endpoint, as recorded.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Attempt {
    /// Number from 1.
    #[sqlx(try_from = "i64")]
    pub number: u32,
    pub status: AttemptStatus,
    /// True when the attempt probed a suspended endpoint.
    pub is_probe: bool,
    #[sqlx(try_from = "Narrow")]
    pub http_status: Option<u16>,
    pub error: Option<String>,
    pub started_at: i64,
    pub ended_at: Option<i64>,
    /// Time in its headers; `None` until it has ended, and when nothing was sent.
    pub signed_at: Option<i64>,
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    pub delivery_id: Uuid,
    /// Fence of its claim.
    pub fence: i64,
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Time in its headers; `None` when nothing was sent.
    pub signed_at: Option<i64>,
    pub ended_at: i64,
    pub http_status: Option<u16>,
    /// Cut at [`MOST_PREVIEW_CHARACTERS`].
    pub response_preview: Option<String>,
    pub error: Option<String>,
    pub next: Next,
}

/// State of a delivery after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Delivered,
    /// The attempt failed and counts; the next one is due then.
    RetryAt(i64),
    /// The attempt failed and does not count; the delivery is due as before.
    Wait,
    /// Given up.
    Failed,
}

/// The delivery's last attempts, at most [`MOST_ATTEMPTS`], in the order they were made. One that is probed for days has
/// thousands.
pub async fn attempts(db: &mut impl Connection, delivery_id: Uuid) -> Result<Vec<Attempt>, Error> {
    Ok(query_as(
        "SELECT * FROM (SELECT a.* FROM webhook_deliveries d JOIN webhook_attempts a ON a.delivery_seq = d.seq WHERE d.id = $1
             ORDER BY a.number DESC LIMIT $2) newest ORDER BY number",
    )
    .bind(delivery_id)
    .bind(MOST_ATTEMPTS)
    .fetch_all(db)
    .await?)
}

/// An outcome as the statements of [`record`] read it, by position: see [`OUTCOMES`].
#[derive(Serialize)]
struct Outcome(
    String,
    i64,
    u32,
    i64,
    Option<u16>,
    Option<String>,
    Option<String>,
    &'static str,
    Option<i64>,
    Option<i64>,
);

/// Table `held`: the outcomes of claims that still hold. Whether an attempt counts, and when the next one is, is in
/// `due_at`: a delivery that only waits is `retrying` without a new time. Nothing waits any more for an endpoint that
/// was deleted meanwhile.
const OUTCOMES: &str = "WITH held AS MATERIALIZED (
         SELECT d.seq, CAST(o.value ->> 2 AS INTEGER) AS number, CAST(o.value ->> 3 AS INTEGER) AS ended_at,
             CAST(o.value ->> 4 AS INTEGER) AS http_status, o.value ->> 5 AS preview, o.value ->> 6 AS error,
             CAST(o.value ->> 8 AS INTEGER) AS due_at, CAST(o.value ->> 9 AS INTEGER) AS signed_at,
             iif(o.value ->> 7 = 'retrying' AND e.deleted_at IS NOT NULL, 'failed', o.value ->> 7) AS status
         FROM json_each($1) o CROSS JOIN webhook_deliveries d
             ON d.id = unhex(o.value ->> 0) AND d.fence = CAST(o.value ->> 1 AS INTEGER) AND d.status = 'delivering'
         CROSS JOIN webhook_endpoints e ON e.id = d.endpoint_id /*lock d*/) ";

impl From<&Attempted> for Outcome {
    fn from(attempted: &Attempted) -> Self {
        let (status, due_at) = match attempted.next {
            Next::Delivered => ("delivered", None),
            Next::RetryAt(at) => ("retrying", Some(at)),
            Next::Wait => ("retrying", None),
            Next::Failed => ("failed", None),
        };
        let cut = |text: &Option<String>, most| text.as_ref().map(|text| rows::text(text, most));
        Self(
            hex(attempted.delivery_id),
            attempted.fence,
            attempted.number,
            attempted.ended_at,
            attempted.http_status,
            cut(&attempted.response_preview, MOST_PREVIEW_CHARACTERS),
            cut(&attempted.error, MOST_ERROR_CHARACTERS),
            status,
            due_at,
            attempted.signed_at,
        )
    }
}

/// Runs first, while the deliveries still show whose claim holds.
const END_ATTEMPTS: &str = "UPDATE webhook_attempts AS a SET http_status = h.http_status, error = h.error, ended_at = h.ended_at,
         signed_at = h.signed_at, status = iif(h.status = 'delivered', 'delivered', 'failed')
     FROM held h WHERE a.delivery_seq = h.seq AND a.number = h.number AND a.status = 'running'";

const ADVANCE_DELIVERIES: &str = "UPDATE webhook_deliveries AS d SET status = h.status, http_status = h.http_status,
         response_preview = h.preview, error = h.error, lease_owner = NULL, lease_expires_at = NULL,
         due_at = coalesce(h.due_at, d.due_at), failures = d.failures + iif(h.status = 'failed' OR h.due_at IS NOT NULL, 1, 0),
         is_replay = d.is_replay AND h.status = 'retrying',
         delivered_at = iif(h.status = 'delivered', h.ended_at, d.delivered_at),
         ended_at = iif(h.status = 'retrying', NULL, h.ended_at)
     FROM held h WHERE d.seq = h.seq";

/// The statements of [`record`].
pub(super) fn recording() -> [String; 2] {
    [END_ATTEMPTS, ADVANCE_DELIVERIES].map(|change| format!("{OUTCOMES}{change}"))
}

/// Records how attempts ended, in two statements however many they are; returns how many were recorded. One whose
/// claim was lost changes nothing: the delivery was interrupted, claimed again, or deleted with its endpoint.
pub async fn record(tx: &mut Tx<'_>, attempted: &[Attempted]) -> Result<u64, Error> {
    if attempted.is_empty() {
        return Ok(0);
    }
    let outcomes: Vec<Outcome> = attempted.iter().map(Outcome::from).collect();
    let outcomes = json(&outcomes)?;
    let mut recorded = 0;
    for statement in recording() {
        let changed = query(statement).bind(&outcomes).execute(tx).await?;
        recorded = changed.rows_affected();
    }
    Ok(recorded)
}

/// Makes at most `rows` deliveries due that were postponed only by a clock that was ahead, for the start: those
/// without a failure, which wait for no pause; those whose last attempt is in the future; and those beyond the longest
/// pause, `horizon_ms`. Later, nearer retries would hide them. Returns how many; call it again while it is `rows`.
pub async fn mend_due_times(
    tx: &mut Tx<'_>,
    rows: u32,
    horizon_ms: i64,
    now_ms: i64,
) -> Result<u64, Error> {
    let mended = query(MEND_DUE_TIMES)
        .bind(now_ms)
        .bind(horizon_ms)
        .bind(rows)
        .execute(tx)
        .await?;
    Ok(mended.rows_affected())
}

/// Seeks along the index of waiting deliveries, from endpoint to endpoint, to those that are due later.
const MEND_DUE_TIMES: &str = "WITH RECURSIVE waiting (id) AS (
         SELECT min(endpoint_id) FROM webhook_deliveries WHERE status IN ('pending', 'retrying')
         UNION ALL
         SELECT (SELECT min(endpoint_id) FROM webhook_deliveries WHERE endpoint_id > waiting.id AND status IN ('pending', 'retrying'))
         FROM waiting WHERE waiting.id IS NOT NULL)
     UPDATE webhook_deliveries SET due_at = $1 WHERE seq IN (
         SELECT d.seq FROM waiting CROSS JOIN (SELECT FALSE AS is_replay UNION ALL SELECT TRUE) kind ON TRUE
             CROSS JOIN webhook_deliveries d ON d.endpoint_id = waiting.id AND d.is_replay = kind.is_replay
                 AND d.status IN ('pending', 'retrying') AND d.due_at > $1
         WHERE d.failures = 0 OR d.last_attempt_at > $1 OR d.due_at > $2 LIMIT $3 /*lock d*/)";

/// Takes at most `rows` deliveries from an owner that has ended, or from every owner: for the start, when all holders
/// are of an earlier process. Their attempts are marked as interrupted; they are due as before, and the attempt does
/// not count. Returns how many; call it again while it is `rows`.
pub async fn interrupt(
    tx: &mut Tx<'_>,
    owner: Option<Uuid>,
    rows: u32,
    now_ms: i64,
) -> Result<u64, Error> {
    let interrupted: Vec<i64> = query_scalar(
        "UPDATE webhook_deliveries SET status = 'retrying', lease_owner = NULL, lease_expires_at = NULL, http_status = NULL,
             response_preview = NULL, error = 'the service ended during the attempt'
         WHERE seq IN (SELECT seq FROM webhook_deliveries WHERE status = 'delivering' AND ($1 IS NULL OR lease_owner = $1)
             LIMIT $2 /*skip*/)
         RETURNING seq",
    )
    .bind(owner)
    .bind(rows)
    .fetch_all(tx)
    .await?;
    end_interrupted(tx, &interrupted, now_ms).await
}

/// Takes deliveries as [`interrupt`] does whose leases have expired and whose owner is not among `live`.
pub async fn interrupt_expired(
    tx: &mut Tx<'_>,
    live: &[Uuid],
    rows: u32,
    now_ms: i64,
) -> Result<u64, Error> {
    let interrupted: Vec<i64> = query_scalar(
        "UPDATE webhook_deliveries SET status = 'retrying', lease_owner = NULL, lease_expires_at = NULL, http_status = NULL,
             response_preview = NULL, error = 'the service ended during the attempt'
         WHERE seq IN (SELECT seq FROM webhook_deliveries WHERE status = 'delivering' AND lease_expires_at <= $1
             AND lease_owner NOT IN (SELECT unhex(value) FROM json_each($3)) LIMIT $2 /*skip*/)
         RETURNING seq",
    )
    .bind(now_ms)
    .bind(rows)
    .bind(rows::ids(live)?)
    .fetch_all(tx)
    .await?;
    end_interrupted(tx, &interrupted, now_ms).await
}

/// Marks the running attempts of these deliveries as interrupted; returns the number of deliveries.
async fn end_interrupted(tx: &mut Tx<'_>, interrupted: &[i64], now_ms: i64) -> Result<u64, Error> {
    query(
        "UPDATE webhook_attempts SET status = 'interrupted', ended_at = $2
         WHERE delivery_seq IN (SELECT CAST(value AS INTEGER) FROM json_each($1)) AND status = 'running'",
    )
    .bind(json(interrupted)?)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(interrupted.len() as u64)
}
