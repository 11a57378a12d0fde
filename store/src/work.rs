//! Leases of durable rows (jobs, runs, recordings, streams): claim, heartbeat, back-off, and begins after which a row
//! is given up (`MOST_BEGINS`). A lease is the right to work on a row, over crashes and restarts.
//!
//! A row of `work` represents something unfinished: a job, a run, a delivery, named by its kind and id. It is inserted
//! with the entity's own row, and deleted with the change that ends it. A claimer holds a [`Lease`] for a while; its
//! fence rises with every claim, and every write of an owner first checks [`hold`], so that an owner that was replaced
//! changes nothing.
//!
//! A claim costs a row nothing, however long it waits under it. [`begin`] counts, which the owner commits before the
//! work runs: a row that began [`MOST_BEGINS`] times without an end or progress is given up at its next claim, so that
//! it cannot kill its owner for ever. A begin is taken back unless the row itself is the likely cause of its
//! interruption: its owner crashed, or the service died while it was the only running row, or the only running
//! suspect. Rows that were running when the service died are suspects, of which one at a time is leased
//! (docs/decisions/0036).
//!
//! Nodes of a cluster claim beside each other ([`claim_beside`]) and read each other's leases with the progress of the work
//! ([`held`]). The leases of a node that died are voided by another one (`void_leases`), which also raises their fences: a
//! node that was only halted changes nothing when it continues.

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    connection::{Drive as _, Driver},
    duration_ms,
    rows::{self, Narrow, hex, json},
    statement::{query, query_as, query_scalar},
};

/// Begins without an end or progress after which a row is given up.
pub const MOST_BEGINS: u32 = 3;
/// Retries of a row without its bytes that do not count: some half an hour.
pub const UNCOUNTED_RETRIES: i64 = 14;

/// The first and the longest pause before a row is tried again.
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);
const BACK_OFF_LONGEST: Duration = Duration::from_secs(300);

/// Priority of rows when not all can be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::Type)]
#[repr(i64)]
pub enum Lane {
    /// Work for which a user waits.
    Interactive = 0,
    Batch = 1,
}

impl Lane {
    const BY_TURN: [Self; 2] = [Self::Interactive, Self::Batch];
}

/// The right to work on a row until it expires.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Lease {
    pub kind: String,
    pub id: Uuid,
    pub account_id: Uuid,
    pub lane: Lane,
    /// Rises with every claim.
    pub fence: i64,
    /// Times that work on it began, without an end or progress, before this claim.
    #[sqlx(try_from = "i64")]
    pub begins: u32,
}

impl Lease {
    /// Returns whether work on the row began too often: it is to be given up, not worked on.
    pub fn is_exhausted(&self) -> bool {
        self.begins >= MOST_BEGINS
    }
}

/// Result of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    pub leases: Vec<Lease>,
    /// Rows that began too often. They are deleted from `work`: the caller ends their entities as failed, in the same
    /// transaction.
    pub given_up: Vec<Uuid>,
}

/// Inserts a row, due at once. An existing one is left as it is.
pub async fn enqueue(
    tx: &mut Tx<'_>,
    kind: &str,
    id: Uuid,
    account_id: Uuid,
    lane: Lane,
    now_ms: i64,
) -> Result<(), Error> {
    enqueue_again(tx, kind, id, account_id, lane, 0, now_ms).await
}

/// Inserts a row as [`enqueue`] does that was deleted before: the fences of its leases continue above that of the last
/// one, whose owner may still take the row for its own.
pub(crate) async fn enqueue_again(
    tx: &mut Tx<'_>,
    kind: &str,
    id: Uuid,
    account_id: Uuid,
    lane: Lane,
    fence: i64,
    now_ms: i64,
) -> Result<(), Error> {
    query(
        "INSERT INTO work (kind, id, account_id, lane, fence, due_at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT DO NOTHING",
    )
    .bind(kind)
    .bind(id)
    .bind(account_id)
    .bind(lane)
    .bind(fence)
    .bind(now_ms)
    .execute(tx)
    .await?;
    Ok(())
}

/// Number of further rows for which a claimer has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Slots of any lane.
    pub rows: usize,
    /// Slots of these for the batch lane: those kept free of it serve interactive requests.
    pub batch: usize,
}

impl Room {
    /// Returns room without slots kept free.
    pub fn for_any(rows: usize) -> Self {
        Self { rows, batch: rows }
    }

    fn of(self, lane: Lane, taken: usize) -> usize {
        let left = self.rows.saturating_sub(taken);
        match lane {
            Lane::Interactive => left,
            Lane::Batch => left.min(self.batch),
        }
    }
}

/// Returns whether a claim would find something; costs no write.
pub async fn is_due(
    db: &mut impl Connection,
    kind: &str,
    room: Room,
    now_ms: i64,
) -> Result<bool, Error> {
    for lane in Lane::BY_TURN {
        let room = room.of(lane, 0).min(1);
        if !due(db, DUE, kind, lane, room, now_ms).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Claims rows that are due and without a holder, as far as there is room: interactive ones first, then by due time.
pub async fn claim(
    tx: &mut Tx<'_>,
    kind: &str,
    owner: Uuid,
    room: Room,
    lease: Duration,
    now_ms: i64,
) -> Result<Claimed, Error> {
    let mut claimed = Claimed::default();
    let mut taken = 0;
    for lane in Lane::BY_TURN {
        let found = due(tx, DUE_TO_CLAIM, kind, lane, room.of(lane, taken), now_ms).await?;
        taken += found.len();
        for (id, begins) in found {
            if begins < i64::from(MOST_BEGINS) {
                let until = after(now_ms, lease);
                claimed.leases.push(take(tx, kind, id, owner, until).await?);
            } else {
                withdraw(tx, kind, id).await?;
                claimed.given_up.push(id);
            }
        }
    }
    Ok(claimed)
}

/// Claims as [`claim`] does, in a unit that runs beside the claims of other nodes, and of `only` these rows if there are any
/// named. Rows that began too often are leased too ([`Lease::is_exhausted`]): the caller ends their entities, and finishes them,
/// each in a unit of its account.
///
/// Claims wait for each other only while there are suspects.
pub async fn claim_beside(
    tx: &mut Tx<'_>,
    kind: &str,
    owner: Uuid,
    room: Room,
    only: Option<&[Uuid]>,
    lease: Duration,
    now_ms: i64,
) -> Result<Vec<Lease>, Error> {
    let statement = match lock_suspects(tx).await? {
        true => DUE_BESIDE,
        false => UNSUSPECTED_BESIDE,
    };
    let only = match only {
        Some(only) => Some(rows::ids(only)?),
        None => None,
    };
    let until = after(now_ms, lease);
    let mut leases = Vec::new();
    for lane in Lane::BY_TURN {
        let limit = room.of(lane, leases.len());
        let found: Vec<(Uuid, i64)> = query_as(statement)
            .bind(kind)
            .bind(lane)
            .bind(now_ms)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .bind(only.clone())
            .fetch_all(tx)
            .await?;
        for (id, _) in found {
            leases.push(take(tx, kind, id, owner, until).await?);
        }
    }
    Ok(leases)
}

/// Returns whether there are suspects; no other unit leases one of them before this one has ended. One that becomes a suspect
/// meanwhile is left to the next claim.
async fn lock_suspects(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let are_there: bool = query_scalar("SELECT EXISTS (SELECT 1 FROM work WHERE is_suspect = 1)")
        .fetch_one(tx)
        .await?;
    // SQLite has one writer.
    if are_there && matches!(tx.driver(), Driver::Postgres(_)) {
        query("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.work.suspects', 0))")
            .execute(tx)
            .await?;
    }
    Ok(are_there)
}

macro_rules! due_of_lane {
    () => {
        "SELECT id, begins - iif(is_begun, 1, 0) FROM work WHERE kind = $1 AND lane = $2 AND due_at <= $3
             AND (lease_expires_at IS NULL OR lease_expires_at <= $3)"
    };
}

/// Condition for one suspect at a time: none while another one is leased, of whatever kind, else the first of the lane that meets
/// a further condition. Without the latter, one on which no node can work at present would keep all others from being claimed.
macro_rules! one_suspect {
    ($($among:tt)*) => {
        concat!(
            " AND (is_suspect = 0
             OR id = (SELECT id FROM work WHERE kind = $1 AND lane = $2 AND is_suspect = 1 AND due_at <= $3",
            $($among)*,
            " ORDER BY due_at, id LIMIT 1)
                 AND NOT EXISTS (SELECT 1 FROM work WHERE is_suspect = 1 AND lease_expires_at > $3))"
        )
    };
}

macro_rules! among {
    () => {
        " AND ($5 IS NULL OR id IN (SELECT unhex(value) FROM json_each($5)))"
    };
}

macro_rules! by_due_time {
    () => {
        " ORDER BY due_at, id LIMIT $4"
    };
}

/// Statement of [`due`] that only reads.
const DUE: &str = concat!(due_of_lane!(), one_suspect!(""), by_due_time!());

/// The same with a lock on each row, past those that another claimer has locked.
const DUE_TO_CLAIM: &str = concat!(
    due_of_lane!(),
    one_suspect!(""),
    by_due_time!(),
    " /*skip*/"
);

/// The same of certain rows.
const DUE_BESIDE: &str = concat!(
    due_of_lane!(),
    one_suspect!(among!()),
    among!(),
    by_due_time!(),
    " /*skip*/"
);

/// The same without suspects.
const UNSUSPECTED_BESIDE: &str = concat!(
    due_of_lane!(),
    " AND is_suspect = 0",
    among!(),
    by_due_time!(),
    " /*skip*/"
);

/// Returns at most `limit` rows of a lane that are due and that no owner holds, each with its begins so far, by due
/// time.
async fn due(
    db: &mut impl Connection,
    statement: &'static str,
    kind: &str,
    lane: Lane,
    limit: usize,
    now_ms: i64,
) -> Result<Vec<(Uuid, i64)>, Error> {
    let rows = query_as(statement)
        .bind(kind)
        .bind(lane)
        .bind(now_ms)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(db)
        .await?;
    Ok(rows)
}

/// Leases a row. A begin under a lease that merely expired is taken back: the process runs, and nothing indicates that
/// the row is the cause.
async fn take(
    tx: &mut Tx<'_>,
    kind: &str,
    id: Uuid,
    owner: Uuid,
    until: i64,
) -> Result<Lease, Error> {
    let lease = query_as(
        "UPDATE work SET begins = begins - iif(is_begun, 1, 0), is_begun = 0, fence = fence + 1,
             lease_owner = $3, lease_expires_at = $4, share = NULL, queue_place = NULL
         WHERE kind = $1 AND id = $2 RETURNING kind, id, account_id, lane, fence, begins",
    )
    .bind(kind)
    .bind(id)
    .bind(owner)
    .bind(until)
    .fetch_one(tx)
    .await?;
    Ok(lease)
}

/// Prolongs leases, each named by its row and fence; returns those that were lost, whose work must stop. A lease that
/// is not named here expires, even when the same owner claimed it: its work has ended.
pub async fn heartbeat(
    tx: &mut Tx<'_>,
    kind: &str,
    held: &[(Uuid, i64)],
    lease: Duration,
    now_ms: i64,
) -> Result<Vec<(Uuid, i64)>, Error> {
    let mut lost = Vec::new();
    for (id, fence) in held {
        let prolonged = query(
            "UPDATE work SET lease_expires_at = $4 WHERE kind = $1 AND id = $2 AND fence = $3",
        )
        .bind(kind)
        .bind(*id)
        .bind(*fence)
        .bind(after(now_ms, lease))
        .execute(tx)
        .await?;
        if prolonged.rows_affected() == 0 {
            lost.push((*id, *fence));
        }
    }
    Ok(lost)
}

/// Row under a lease, as all nodes see it.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Held {
    pub id: Uuid,
    pub account_id: Uuid,
    pub fence: i64,
    pub lease_owner: Uuid,
    /// Progress of its running tasks in thousandths, as its owner reported it last ([`report`]).
    #[sqlx(try_from = "Narrow")]
    pub share: Option<u32>,
    /// Place in the queue of the owner's workers; 1 is next.
    #[sqlx(try_from = "Narrow")]
    pub queue_place: Option<u32>,
}

/// Returns the rows of a kind that are leased.
pub async fn held(db: &mut impl Connection, kind: &str) -> Result<Vec<Held>, Error> {
    Ok(query_as(HELD).bind(kind).fetch_all(db).await?)
}

const HELD: &str = "SELECT id, account_id, fence, lease_owner, share, queue_place FROM work
     WHERE kind = $1 AND lease_owner IS NOT NULL";

/// Progress of a row's running tasks, for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProgress {
    pub id: Uuid,
    /// Fence of the lease under which they run.
    pub fence: i64,
    /// Share of their work that is done, in thousandths of a task.
    pub share: u32,
    pub queue_place: Option<u32>,
}

/// A progress as the statement reads it, by position.
#[derive(Serialize)]
struct Reported(String, i64, u32, Option<u32>);

/// Writes down the progress of running tasks; that of a lost lease is left out.
pub async fn report(tx: &mut Tx<'_>, kind: &str, progress: &[TaskProgress]) -> Result<(), Error> {
    let reported: Vec<Reported> = progress
        .iter()
        .map(|it| Reported(hex(it.id), it.fence, it.share, it.queue_place))
        .collect();
    query(REPORT)
        .bind(kind)
        .bind(json(&reported)?)
        .execute(tx)
        .await?;
    Ok(())
}

const REPORT: &str = "WITH reported AS MATERIALIZED (
         SELECT unhex(value ->> 0) AS id, CAST(value ->> 1 AS INTEGER) AS fence, CAST(value ->> 2 AS INTEGER) AS share,
             CAST(value ->> 3 AS INTEGER) AS queue_place
         FROM json_each($2))
     UPDATE work AS w SET share = r.share, queue_place = r.queue_place
     FROM reported r WHERE w.kind = $1 AND w.id = r.id AND w.fence = r.fence";

/// Checks a lease, first in every transaction of a row's owner. `Error::Conflict` when the lease was lost: the row was
/// claimed again, cancelled, or given up. A lease that merely expired, and was not claimed since, still holds.
pub async fn hold(tx: &mut Tx<'_>, lease: &Lease) -> Result<(), Error> {
    let held: Option<(i64,)> =
        query_as("SELECT fence FROM work WHERE kind = $1 AND id = $2 AND fence = $3 /*lock*/")
            .bind(&lease.kind)
            .bind(lease.id)
            .bind(lease.fence)
            .fetch_optional(tx)
            .await?;
    held.map(|_| ()).ok_or_else(|| lost(lease))
}

/// Records, before the work runs, that it begins; a second time under the same lease changes nothing. Errors as
/// [`hold`].
pub async fn begin(tx: &mut Tx<'_>, lease: &Lease) -> Result<(), Error> {
    let changed = query(
        "UPDATE work SET begins = begins + iif(is_begun, 0, 1), is_begun = 1 WHERE kind = $1 AND id = $2 AND fence = $3",
    )
    .bind(&lease.kind)
    .bind(lease.id)
    .bind(lease.fence)
    .execute(tx)
    .await?;
    one(changed.rows_affected(), lease)
}

/// Notes that the work made progress, so that a long row is not given up for being interrupted often. Errors as
/// [`hold`].
pub async fn progressed(tx: &mut Tx<'_>, lease: &Lease) -> Result<(), Error> {
    let changed = query(
        "UPDATE work SET begins = iif(is_begun, 1, 0), is_suspect = 0, retries = 0
         WHERE kind = $1 AND id = $2 AND fence = $3",
    )
    .bind(&lease.kind)
    .bind(lease.id)
    .bind(lease.fence)
    .execute(tx)
    .await?;
    one(changed.rows_affected(), lease)
}

/// Takes the row out: the entity has ended in this transaction. Errors as [`hold`].
pub async fn finish(tx: &mut Tx<'_>, lease: &Lease) -> Result<(), Error> {
    let deleted = query("DELETE FROM work WHERE kind = $1 AND id = $2 AND fence = $3")
        .bind(&lease.kind)
        .bind(lease.id)
        .bind(lease.fence)
        .execute(tx)
        .await?;
    one(deleted.rows_affected(), lease)
}

/// Deletes the row, also when it is leased, for a cancellation; a missing row is fine.
pub async fn withdraw(tx: &mut Tx<'_>, kind: &str, id: Uuid) -> Result<(), Error> {
    query("DELETE FROM work WHERE kind = $1 AND id = $2")
        .bind(kind)
        .bind(id)
        .execute(tx)
        .await?;
    Ok(())
}

/// Releases the row, to be tried again after a pause that grows with each such call; the work ended in order, and its
/// begin does not count. Errors as [`hold`].
pub async fn retry(tx: &mut Tx<'_>, lease: &Lease, now_ms: i64) -> Result<(), Error> {
    give_back(tx, lease, i64::MAX, now_ms).await
}

/// Releases the row of an owner that crashed, to be tried again after a pause. This counts, also when the crash came
/// before the begin: the row is its likely cause. Errors as [`hold`].
pub async fn retry_after_crash(tx: &mut Tx<'_>, lease: &Lease, now_ms: i64) -> Result<(), Error> {
    give_back(tx, lease, 0, now_ms).await
}

/// Releases the row, whose bytes are lost in the object store, to be tried again after a pause. This counts from
/// [`UNCOUNTED_RETRIES`] on: an operator may bring them back. Errors as [`hold`].
pub async fn retry_without_bytes(tx: &mut Tx<'_>, lease: &Lease, now_ms: i64) -> Result<(), Error> {
    give_back(tx, lease, UNCOUNTED_RETRIES, now_ms).await
}

/// Releases the row with a pause. It counts as a begin from so many earlier retries on (`counted_from`).
async fn give_back(
    tx: &mut Tx<'_>,
    lease: &Lease,
    counted_from: i64,
    now_ms: i64,
) -> Result<(), Error> {
    let given_back: Option<(i64, i64)> = query_as(
        "UPDATE work SET lease_owner = NULL, lease_expires_at = NULL, retries = retries + 1, is_begun = 0,
             begins = begins - iif(is_begun, 1, 0) + iif(retries >= $4, 1, 0)
         WHERE kind = $1 AND id = $2 AND fence = $3 RETURNING begins, retries",
    )
    .bind(&lease.kind)
    .bind(lease.id)
    .bind(lease.fence)
    .bind(counted_from)
    .fetch_optional(tx)
    .await?;
    let (begins, retries) = given_back.ok_or_else(|| lost(lease))?;
    // The next claim only gives it up: no reason to wait.
    let pause = match begins < i64::from(MOST_BEGINS) {
        true => back_off(retries),
        false => Duration::ZERO,
    };
    query("UPDATE work SET due_at = $3 WHERE kind = $1 AND id = $2")
        .bind(&lease.kind)
        .bind(lease.id)
        .bind(after(now_ms, pause))
        .execute(tx)
        .await?;
    Ok(())
}

/// Releases the row as if it had not been claimed, due at once: for the orderly stop of its owner. Errors as [`hold`].
pub async fn release(tx: &mut Tx<'_>, lease: &Lease) -> Result<(), Error> {
    let released = query(
        "UPDATE work SET lease_owner = NULL, lease_expires_at = NULL, begins = begins - iif(is_begun, 1, 0), is_begun = 0
         WHERE kind = $1 AND id = $2 AND fence = $3",
    )
    .bind(&lease.kind)
    .bind(lease.id)
    .bind(lease.fence)
    .execute(tx)
    .await?;
    one(released.rows_affected(), lease)
}

/// Releases every lease that `owner` holds, of one kind or of all, due at once; their begins do not count. For a
/// registry that starts again, and for the orderly end of a process ([`Store::close`](crate::Store::close)).
pub async fn release_all(tx: &mut Tx<'_>, kind: Option<&str>, owner: Uuid) -> Result<u64, Error> {
    let released = query(
        "UPDATE work SET lease_owner = NULL, lease_expires_at = NULL, begins = begins - iif(is_begun, 1, 0), is_begun = 0
         WHERE lease_owner = $1 AND kind = COALESCE($2, kind)",
    )
    .bind(owner)
    .bind(kind)
    .execute(tx)
    .await?;
    Ok(released.rows_affected())
}

/// Voids the leases of a node that has died, or of every earlier process, at the start of the only one that has this database;
/// returns how many. A node that was only stopped is fenced.
///
/// A row whose work had begun becomes a suspect. The crash is charged to at most one: the only running suspect (no two
/// are leased), or else the only running row. The charged one is due after a pause, and so behind the other suspects.
pub(crate) async fn void_leases(
    tx: &mut Tx<'_>,
    owner: Option<Uuid>,
    now_ms: i64,
) -> Result<u64, Error> {
    let running: Vec<(String, Uuid, bool, i64)> = query_as(
        "SELECT kind, id, is_suspect, begins FROM work WHERE is_begun = 1 AND ($1 IS NULL OR lease_owner = $1)
         ORDER BY kind, id /*lock*/",
    )
    .bind(owner)
    .fetch_all(tx)
    .await?;
    let suspects: Vec<_> = running.iter().filter(|row| row.2).collect();
    let charged = match (suspects.as_slice(), running.as_slice()) {
        ([one], _) => Some(*one),
        ([], [one]) => Some(one),
        _ => None,
    };
    query(
        "UPDATE work SET begins = begins - 1, is_begun = 0, is_suspect = 1
         WHERE is_begun = 1 AND ($1 IS NULL OR lease_owner = $1)",
    )
    .bind(owner)
    .execute(tx)
    .await?;
    if let Some((kind, id, _, begins)) = charged {
        let pause = match *begins < i64::from(MOST_BEGINS) {
            true => back_off(*begins),
            false => Duration::ZERO,
        };
        // `begins` from before the statement above: the begin of the charged row counts.
        query("UPDATE work SET begins = $3, due_at = max(due_at, $4) WHERE kind = $1 AND id = $2")
            .bind(kind)
            .bind(*id)
            .bind(*begins)
            .bind(after(now_ms, pause))
            .execute(tx)
            .await?;
    }
    let voided = query(
        "UPDATE work SET lease_owner = NULL, lease_expires_at = NULL, fence = fence + iif($1 IS NULL, 0, 1)
         WHERE lease_owner = coalesce($1, lease_owner)",
    )
    .bind(owner)
    .execute(tx)
    .await?;
    Ok(voided.rows_affected())
}

/// Makes rows due whose due times can only be from a clock that was ahead: one that was never released is due since it
/// was inserted, and no pause is longer than [`BACK_OFF_LONGEST`]. Returns how many.
pub(crate) async fn mend_due_times(tx: &mut Tx<'_>, now_ms: i64) -> Result<u64, Error> {
    let mended =
        query("UPDATE work SET due_at = $1 WHERE due_at > iif(retries = 0 AND begins = 0, $1, $2)")
            .bind(now_ms)
            .bind(after(now_ms, BACK_OFF_LONGEST))
            .execute(tx)
            .await?;
    Ok(mended.rows_affected())
}

/// Returns the pause before the try after `retries`.
fn back_off(retries: i64) -> Duration {
    BACK_OFF_FIRST
        .saturating_mul(1 << retries.saturating_sub(1).clamp(0, 16))
        .min(BACK_OFF_LONGEST)
}

fn after(now_ms: i64, pause: Duration) -> i64 {
    now_ms.saturating_add(duration_ms(pause))
}

fn one(rows: u64, lease: &Lease) -> Result<(), Error> {
    match rows {
        0 => Err(lost(lease)),
        _ => Ok(()),
    }
}

fn lost(lease: &Lease) -> Error {
    Error::Conflict(format!(
        "the lease on {} {} is lost (fence {})",
        lease.kind, lease.id, lease.fence
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let seconds: Vec<u64> = [0, 1, 2, 3, 9, 10, 60]
            .map(|retries| back_off(retries).as_secs())
            .to_vec();
        assert_eq!(seconds, [1, 1, 2, 4, 256, 300, 300]);
    }
}
