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

use std::time::Duration;

use uuid::Uuid;

use crate::{
    Connection, Error, Tx, duration_ms,
    statement::{query, query_as},
};

/// Begins without an end or progress after which a row is given up.
pub const MOST_BEGINS: u32 = 3;

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

macro_rules! select_due {
    ($lock:literal) => {
        concat!(
            "SELECT id, begins - iif(is_begun, 1, 0) FROM work WHERE kind = $1 AND lane = $2 AND due_at <= $3
                 AND (lease_expires_at IS NULL OR lease_expires_at <= $3)
                 AND (is_suspect = 0
                     OR id = (SELECT id FROM work WHERE kind = $1 AND lane = $2 AND is_suspect = 1 AND due_at <= $3
                             ORDER BY due_at, id LIMIT 1)
                         AND NOT EXISTS (SELECT 1 FROM work WHERE is_suspect = 1 AND lease_expires_at > $3))
             ORDER BY due_at, id LIMIT $4",
            $lock
        )
    };
}

/// Statement of [`due`] that only reads.
const DUE: &str = select_due!("");

/// The same with a lock on each row, past those that another claimer has locked.
const DUE_TO_CLAIM: &str = select_due!(" /*skip*/");

/// Returns at most `limit` rows of a lane that are due and that no owner holds, each with its begins so far, by due
/// time. While a suspect is leased, of whatever kind, no other one is due; else the first of the lane is.
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
             lease_owner = $3, lease_expires_at = $4
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
    give_back(tx, lease, true, now_ms).await
}

/// Releases the row of an owner that crashed, to be tried again after a pause. This counts, also when the crash came
/// before the begin: the row is its likely cause. Errors as [`hold`].
pub async fn retry_after_crash(tx: &mut Tx<'_>, lease: &Lease, now_ms: i64) -> Result<(), Error> {
    give_back(tx, lease, false, now_ms).await
}

async fn give_back(
    tx: &mut Tx<'_>,
    lease: &Lease,
    in_order: bool,
    now_ms: i64,
) -> Result<(), Error> {
    let given_back: Option<(i64, i64)> = query_as(
        "UPDATE work SET lease_owner = NULL, lease_expires_at = NULL, retries = retries + 1, is_begun = 0,
             begins = begins - iif(is_begun, 1, 0) + iif($4, 0, 1)
         WHERE kind = $1 AND id = $2 AND fence = $3 RETURNING begins, retries",
    )
    .bind(&lease.kind)
    .bind(lease.id)
    .bind(lease.fence)
    .bind(in_order)
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

/// Voids the leases of an earlier process, at the start of the only one that has this database; returns how many.
///
/// A row whose work had begun becomes a suspect. The crash is charged to at most one: the only running suspect (no two
/// are leased), or else the only running row. The charged one is due after a pause, and so behind the other suspects.
pub(crate) async fn void_leases(tx: &mut Tx<'_>, now_ms: i64) -> Result<u64, Error> {
    let running: Vec<(String, Uuid, bool, i64)> =
        query_as("SELECT kind, id, is_suspect, begins FROM work WHERE is_begun = 1")
            .fetch_all(tx)
            .await?;
    let suspects: Vec<_> = running.iter().filter(|row| row.2).collect();
    let charged = match (suspects.as_slice(), running.as_slice()) {
        ([one], _) => Some(*one),
        ([], [one]) => Some(one),
        _ => None,
    };
    query("UPDATE work SET begins = begins - 1, is_begun = 0, is_suspect = 1 WHERE is_begun = 1")
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
        "UPDATE work SET lease_owner = NULL, lease_expires_at = NULL WHERE lease_owner IS NOT NULL",
    )
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
