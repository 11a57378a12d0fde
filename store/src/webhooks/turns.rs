//! Webhook endpoints with something to send, and claims of their deliveries: due, probe, replay.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde::Serialize;
use sqlx::FromRow;
use uuid::Uuid;

use super::Endpoint;
use crate::{
    Connection, Error, Tx, duration_ms,
    rows::{self, hex, json},
    statement::{query, query_as, query_scalar},
};

/// An endpoint with open deliveries.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Lane {
    #[sqlx(flatten)]
    pub endpoint: Endpoint,
    /// Due time of the first of its deliveries that waits for the endpoint; `None` when there is none.
    pub next_due_at: Option<i64>,
    /// Due time of the first delivery that is sent whatever the endpoint's state.
    pub replay_due_at: Option<i64>,
}

/// Seeks from endpoint to endpoint along the index of waiting deliveries, so that its cost depends on the number of
/// endpoints with waiting deliveries and not on the number of deliveries.
pub(super) const LANES: &str = "WITH RECURSIVE waiting (id) AS (
         SELECT min(endpoint_id) FROM webhook_deliveries WHERE status IN ('pending', 'retrying')
         UNION ALL
         SELECT (SELECT min(endpoint_id) FROM webhook_deliveries WHERE endpoint_id > waiting.id AND status IN ('pending', 'retrying'))
         FROM waiting WHERE waiting.id IS NOT NULL),
     busy (id) AS (SELECT id FROM waiting WHERE id IS NOT NULL UNION SELECT id FROM webhook_endpoints WHERE is_releasing = 1
         UNION SELECT unhex(value) FROM json_each($1))
     SELECT e.*,
         (SELECT due_at FROM webhook_deliveries WHERE endpoint_id = e.id AND is_replay = 0 AND status IN ('pending', 'retrying')
          ORDER BY due_at LIMIT 1) AS next_due_at,
         (SELECT due_at FROM webhook_deliveries WHERE endpoint_id = e.id AND is_replay = 1 AND status IN ('pending', 'retrying')
          ORDER BY due_at LIMIT 1) AS replay_due_at
     FROM busy CROSS JOIN webhook_endpoints e ON e.id = busy.id WHERE e.deleted_at IS NULL";

/// Returns the endpoints that are not deleted and for which something waits, or whose release is not finished, and
/// those of `also`, to which something is in flight. Nothing depends on the time: later due times are returned too.
pub async fn lanes(db: &mut impl Connection, also: &[Uuid]) -> Result<Vec<Lane>, Error> {
    Ok(query_as(LANES).bind(rows::ids(also)?).fetch_all(db).await?)
}

/// Returns the endpoints of which owners other than this one hold deliveries.
pub async fn held_elsewhere(db: &mut impl Connection, owner: Uuid) -> Result<Vec<Uuid>, Error> {
    Ok(query_scalar(HELD_ELSEWHERE)
        .bind(owner)
        .fetch_all(db)
        .await?)
}

const HELD_ELSEWHERE: &str = "SELECT DISTINCT endpoint_id FROM webhook_deliveries
     WHERE status = 'delivering' AND lease_owner <> $1";

/// Locks endpoints until the unit ends, so that no other node claims of them meanwhile; returns those of which other owners hold
/// no delivery. First in a unit that runs beside others and changes endpoints and deliveries: units that change an endpoint
/// and then its deliveries never wait for it in a circle.
pub async fn claimable(
    tx: &mut Tx<'_>,
    owner: Uuid,
    endpoints: &[Uuid],
) -> Result<Vec<Uuid>, Error> {
    let endpoints = rows::ids(endpoints)?;
    query(LOCK_ENDPOINTS).bind(&endpoints).execute(tx).await?;
    // A statement of its own, which sees what was committed while the one above waited.
    Ok(query_scalar(CLAIMABLE)
        .bind(endpoints)
        .bind(owner)
        .fetch_all(tx)
        .await?)
}

const LOCK_ENDPOINTS: &str =
    "SELECT id FROM webhook_endpoints WHERE id IN (SELECT unhex(value) FROM json_each($1))
     ORDER BY id /*lock key*/";

// `status <> 'delivered'` repeats the condition of a partial index, without which SQLite does not use it.
const CLAIMABLE: &str = "SELECT unhex(w.value) AS id FROM json_each($1) w WHERE NOT EXISTS (
         SELECT 1 FROM webhook_deliveries
         WHERE endpoint_id = unhex(w.value) AND status = 'delivering' AND status <> 'delivered' AND lease_owner <> $2)";

/// Number and kind of the deliveries wanted of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    pub endpoint_id: Uuid,
    pub rows: u32,
    pub what: What,
}

/// Kind of an endpoint's deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Due deliveries of an active endpoint whose release is finished; by due time, then in the order of the events.
    Due,
    /// The oldest that waits, due or not, of a suspended endpoint.
    Probe,
    /// Deliveries that the owner asked for, whatever the endpoint's state.
    Replay,
}

/// Delivery that was claimed: its attempt's row is committed, and the request may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub delivery_id: Uuid,
    pub endpoint_id: Uuid,
    pub fence: i64,
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Attempts that failed and count, before this one.
    pub failures: u32,
    pub is_replay: bool,
    pub is_probe: bool,
    pub event_id: Uuid,
    pub event_type: String,
    /// The event's envelope, shared by the deliveries of one event.
    pub body: Arc<str>,
    pub created_at: i64,
}

#[derive(FromRow)]
struct ClaimedRow {
    seq: i64,
    id: Uuid,
    endpoint_id: Uuid,
    fence: i64,
    #[sqlx(try_from = "i64")]
    attempts: u32,
    #[sqlx(try_from = "i64")]
    failures: u32,
    is_replay: bool,
    event_seq: i64,
    due_at: i64,
    created_at: i64,
}

/// Claims what was requested as far as it exists, each endpoint's in the order in which it is to be begun, and writes
/// the rows of the attempts. A few statements, however many endpoints there are.
///
/// A due time after `horizon_ms` was written by a clock that was ahead, and counts as due.
pub async fn claim(
    tx: &mut Tx<'_>,
    owner: Uuid,
    wanted: &[ClaimRequest],
    lease: Duration,
    horizon_ms: i64,
    now_ms: i64,
) -> Result<Vec<Claimed>, Error> {
    let lease_ms = duration_ms(lease);
    let clock = Clock {
        now_ms,
        horizon_ms,
        lease_expires_at: now_ms.saturating_add(lease_ms),
    };
    let mut taken = Vec::new();
    for ((what, rows), endpoints) in alike(wanted) {
        let mut part = take(tx, owner, what, rows, &endpoints, clock).await?;
        // SQLite returns the rows of RETURNING in any order.
        part.sort_unstable_by_key(|row| (row.endpoint_id, row.due_at, row.event_seq));
        taken.extend(part.into_iter().map(|row| (row, what == What::Probe)));
    }
    if taken.is_empty() {
        return Ok(Vec::new());
    }
    begin_attempts(tx, &taken, now_ms).await?;
    with_bodies(tx, taken).await
}

#[derive(Clone, Copy)]
struct Clock {
    now_ms: i64,
    horizon_ms: i64,
    lease_expires_at: i64,
}

/// Endpoints of which as much of the same is wanted share a statement.
fn alike(wanted: &[ClaimRequest]) -> Vec<((What, u32), Vec<String>)> {
    let mut groups: HashMap<(What, u32), Vec<String>> = HashMap::new();
    for one in wanted.iter().filter(|one| one.rows > 0) {
        let group = groups.entry((one.what, one.rows)).or_default();
        group.push(hex(one.endpoint_id));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_unstable_by_key(|(key, _)| *key);
    groups
}

/// `$1` the endpoints, `$2` rows of each, `$3` now, `$4` the horizon, `$5` the owner, `$6` the lease's end.
const TAKE: [&str; 3] = [
    "UPDATE webhook_deliveries SET status = 'delivering', fence = fence + 1, attempts = attempts + 1, last_attempt_at = $3,
         lease_owner = $5, lease_expires_at = $6
     WHERE seq IN (SELECT d.seq FROM json_each($1) w
         CROSS JOIN webhook_endpoints e ON e.id = unhex(w.value) AND e.deleted_at IS NULL AND ",
    " CROSS JOIN webhook_deliveries d ON d.seq IN (/*each*/ ",
    "/*each*/))
     RETURNING seq, id, endpoint_id, fence, attempts, failures, is_replay, event_seq, due_at, created_at",
];

/// Selects rows of the endpoint `e.id` that are due, and then those postponed by a wrong clock, each along the index.
fn due(is_replay: u8) -> String {
    let part = |name: &str, condition: &str| {
        format!(
            "SELECT seq FROM (SELECT seq FROM webhook_deliveries WHERE endpoint_id = e.id AND is_replay = {is_replay}
                 AND status IN ('pending', 'retrying') AND {condition} ORDER BY due_at, event_seq LIMIT $2 /*skip*/) {name}"
        )
    };
    format!(
        "{} UNION ALL {} LIMIT $2",
        part("due", "due_at <= $3"),
        part("postponed", "due_at > max($3, $4)")
    )
}

/// The statement that claims from the endpoints of which as much of the same is wanted.
pub(super) fn taking(what: What) -> String {
    let (condition, choice) = match what {
        What::Due => ("e.status = 'active' AND e.is_releasing = 0", due(0)),
        What::Probe => (
            "e.status = 'suspended'",
            "SELECT seq FROM webhook_deliveries WHERE endpoint_id = e.id AND is_replay = 0
                 AND status IN ('pending', 'retrying') ORDER BY event_seq LIMIT $2 /*skip*/"
                .to_owned(),
        ),
        What::Replay => ("true", due(1)),
    };
    let [head, join, tail] = TAKE;
    format!("{head}{condition}{join}{choice}{tail}")
}

async fn take(
    tx: &mut Tx<'_>,
    owner: Uuid,
    what: What,
    rows: u32,
    endpoints: &[String],
    clock: Clock,
) -> Result<Vec<ClaimedRow>, Error> {
    Ok(query_as(taking(what))
        .bind(json(endpoints)?)
        .bind(rows)
        .bind(clock.now_ms)
        .bind(clock.horizon_ms)
        .bind(owner)
        .bind(clock.lease_expires_at)
        .fetch_all(tx)
        .await?)
}

/// An attempt as the statement reads it, by position.
#[derive(Serialize)]
struct Begun(i64, u32, bool);

async fn begin_attempts(
    tx: &mut Tx<'_>,
    taken: &[(ClaimedRow, bool)],
    now_ms: i64,
) -> Result<(), Error> {
    let begun: Vec<Begun> = taken
        .iter()
        .map(|(row, is_probe)| Begun(row.seq, row.attempts, *is_probe))
        .collect();
    query(
        "INSERT INTO webhook_attempts (delivery_seq, number, status, is_probe, started_at)
         SELECT CAST(value ->> 0 AS INTEGER), CAST(value ->> 1 AS INTEGER), 'running', CAST(value ->> 2 AS BOOLEAN), $2
         FROM json_each($1)",
    )
    .bind(json(&begun)?)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}

async fn with_bodies(
    tx: &mut Tx<'_>,
    taken: Vec<(ClaimedRow, bool)>,
) -> Result<Vec<Claimed>, Error> {
    let mut wanted: Vec<i64> = taken.iter().map(|(row, _)| row.event_seq).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let rows: Vec<(i64, Uuid, String, String)> = query_as(
        "SELECT seq, id, event_type, body FROM events WHERE seq IN (SELECT CAST(value AS INTEGER) FROM json_each($1))",
    )
    .bind(json(&wanted)?)
    .fetch_all(tx)
    .await?;
    let events: HashMap<i64, (Uuid, String, Arc<str>)> = rows
        .into_iter()
        .map(|(seq, id, event_type, body)| (seq, (id, event_type, body.into())))
        .collect();
    taken
        .into_iter()
        .map(|(row, is_probe)| {
            let (event_id, event_type, body) = events
                .get(&row.event_seq)
                .ok_or_else(|| Error::Internal("a delivery's event is missing".into()))?;
            Ok(Claimed {
                delivery_id: row.id,
                endpoint_id: row.endpoint_id,
                fence: row.fence,
                number: row.attempts,
                failures: row.failures,
                is_replay: row.is_replay,
                is_probe,
                event_id: *event_id,
                event_type: event_type.clone(),
                body: body.clone(),
                created_at: row.created_at,
            })
        })
        .collect()
}
