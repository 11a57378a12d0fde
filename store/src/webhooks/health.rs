//! Health of webhook endpoints as written after attempts (suspended, consecutive failures), and the release of waiting
//! deliveries.

use serde::Serialize;
use uuid::Uuid;

use super::{Endpoint, EndpointStatus};
use crate::{
    Error, Tx,
    rows::{hex, json},
    statement::{query, query_scalar},
};

/// Health of an endpoint as found by attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointHealth {
    /// Revision of the endpoint from which this was computed.
    pub revision: i64,
    pub status: EndpointStatus,
    pub status_reason: Option<String>,
    pub consecutive_failures: u32,
    pub first_failure_at: Option<i64>,
    pub last_success_at: Option<i64>,
    pub last_failure_at: Option<i64>,
    pub next_probe_at: Option<i64>,
    pub is_releasing: bool,
}

impl Endpoint {
    /// Returns the health in the row.
    pub fn health(&self) -> EndpointHealth {
        EndpointHealth {
            revision: self.revision,
            status: self.status,
            status_reason: self.status_reason.clone(),
            consecutive_failures: self.consecutive_failures,
            first_failure_at: self.first_failure_at,
            last_success_at: self.last_success_at,
            last_failure_at: self.last_failure_at,
            next_probe_at: self.next_probe_at,
            is_releasing: self.is_releasing,
        }
    }
}

/// A health as the statement reads it, by position.
#[derive(Serialize)]
struct Found<'a>(
    String,
    i64,
    &'static str,
    Option<&'a str>,
    u32,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    bool,
);

/// The healths of an earlier revision, and those of endpoints that are paused, do not count.
pub(super) const SET_HEALTHS: &str =
    "WITH found AS MATERIALIZED (
         SELECT e.id, CAST(f.value ->> 6 AS INTEGER) AS last_success_at, CAST(f.value ->> 7 AS INTEGER) AS last_failure_at,
             e.revision = CAST(f.value ->> 1 AS INTEGER) AND e.status <> 'paused' AS counts,
             f.value ->> 2 AS status, f.value ->> 3 AS status_reason, CAST(f.value ->> 4 AS INTEGER) AS consecutive_failures,
             CAST(f.value ->> 5 AS INTEGER) AS first_failure_at, CAST(f.value ->> 8 AS INTEGER) AS next_probe_at,
             CAST(f.value ->> 9 AS BOOLEAN) AS is_releasing
         FROM json_each($1) f CROSS JOIN webhook_endpoints e ON e.id = unhex(f.value ->> 0) AND e.deleted_at IS NULL /*lock e*/)
     UPDATE webhook_endpoints AS e SET
         last_success_at = max(coalesce(f.last_success_at, e.last_success_at), coalesce(e.last_success_at, f.last_success_at)),
         last_failure_at = max(coalesce(f.last_failure_at, e.last_failure_at), coalesce(e.last_failure_at, f.last_failure_at)),
         status = iif(f.counts, f.status, e.status),
         status_reason = iif(f.counts, f.status_reason, e.status_reason),
         consecutive_failures = iif(f.counts, f.consecutive_failures, e.consecutive_failures),
         first_failure_at = iif(f.counts, f.first_failure_at, e.first_failure_at),
         next_probe_at = iif(f.counts, f.next_probe_at, e.next_probe_at),
         is_releasing = iif(f.counts, f.is_releasing, e.is_releasing),
         status_since = iif(f.counts AND f.status <> e.status,
             max(e.status_since, coalesce(f.last_success_at, 0), coalesce(f.last_failure_at, 0)), e.status_since),
         updated_at = iif(f.counts AND f.status <> e.status,
             max(e.updated_at, coalesce(f.last_success_at, 0), coalesce(f.last_failure_at, 0)), e.updated_at)
     FROM found f WHERE e.id = f.id";

/// Writes the health that attempts found, in one statement however many endpoints there are.
///
/// The owner's decisions since then take precedence: a health of an earlier revision, and one of an endpoint that is
/// paused, only updates the times of its last success and failure. Another status changes the endpoint as its owner
/// sees it, at the time of the attempt that brought it.
pub async fn set_healths(tx: &mut Tx<'_>, healths: &[(Uuid, EndpointHealth)]) -> Result<(), Error> {
    if healths.is_empty() {
        return Ok(());
    }
    // Every unit locks endpoints in the same order, so that two never wait for each other.
    let mut ordered: Vec<_> = healths.iter().collect();
    ordered.sort_by_key(|(id, _)| *id);
    let found: Vec<Found> = ordered
        .into_iter()
        .map(|(id, health)| {
            Found(
                hex(*id),
                health.revision,
                health.status.as_str(),
                health.status_reason.as_deref(),
                health.consecutive_failures,
                health.first_failure_at,
                health.last_success_at,
                health.last_failure_at,
                health.next_probe_at,
                health.is_releasing,
            )
        })
        .collect();
    query(SET_HEALTHS).bind(json(&found)?).execute(tx).await?;
    Ok(())
}

pub(super) const REWIND: &str = "UPDATE webhook_deliveries SET due_at = created_at WHERE seq IN (
         SELECT seq FROM webhook_deliveries
         WHERE endpoint_id = $1 AND status = 'retrying' AND is_replay = 0 AND due_at > created_at
         ORDER BY event_seq LIMIT $2 /*lock*/)";

/// Makes at most `rows` of an endpoint's waiting deliveries due when their events were, so that they go in that order; returns
/// how many. Call it again while it is `rows`, then [`finish_release`].
pub async fn rewind(tx: &mut Tx<'_>, endpoint_id: Uuid, rows: u32) -> Result<u64, Error> {
    let rewound = query(REWIND)
        .bind(endpoint_id)
        .bind(rows)
        .execute(tx)
        .await?;
    Ok(rewound.rows_affected())
}

/// Records that nothing of an endpoint is left to rewind, so that its deliveries may be claimed; false when something
/// is.
pub async fn finish_release(tx: &mut Tx<'_>, endpoint_id: Uuid) -> Result<bool, Error> {
    let finished: Option<Uuid> = query_scalar(
        "UPDATE webhook_endpoints SET is_releasing = 0 WHERE id = $1 AND NOT EXISTS (
             SELECT 1 FROM webhook_deliveries
             WHERE endpoint_id = $1 AND status = 'retrying' AND is_replay = 0 AND due_at > created_at)
         RETURNING id",
    )
    .bind(endpoint_id)
    .fetch_optional(tx)
    .await?;
    Ok(finished.is_some())
}
