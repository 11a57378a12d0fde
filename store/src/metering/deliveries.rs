//! Counted image deliveries: monthly meter and its cap, block size, statistics by day.
//!
//! The meter is taken in blocks: a block is counted as used before the first delivery out of it, so that no crash can
//! let an account pass its cap. A month of the meter is never older than the newest one the account has used: a clock
//! set back reopens nothing.

use uuid::Uuid;

use crate::{
    Connection, Error, Month, Tx,
    statement::{query, query_as, query_scalar},
};

/// The largest block.
const LARGEST_BLOCK: u64 = 1_000;
/// Largest share of the rest that one block may be: one in so many.
const BLOCK_SHARE: u64 = 100;
/// Days that a list of statistics has at most.
const MOST_DAYS: u32 = 1_000;

/// State of an account's meter in its current month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterState {
    pub month: Month,
    /// Deliveries reserved of the cap, delivered or not.
    pub taken: u64,
    /// Deliveries that this call added to `taken`.
    pub granted: u64,
}

/// Returns how many deliveries may be held in memory when `remaining` are left of the cap: at most 1 000, at most 1 %
/// of them, down to 1.
pub fn block_of(remaining: u64) -> u64 {
    (remaining / BLOCK_SHARE)
        .clamp(1, LARGEST_BLOCK)
        .min(remaining)
}

/// Fills the block up for a caller that still holds `held` of `month`; grants 0 when the cap (`limit`) is reached.
pub async fn take(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    limit: u64,
    held: Option<(Month, u64)>,
    now_ms: i64,
) -> Result<MeterState, Error> {
    let month = current_month(tx, account_id, now_ms).await?;
    let taken = taken_in(tx, account_id, month).await?;
    let held = held
        .filter(|(held_in, _)| *held_in == month)
        .map_or(0, |(_, held)| held);
    let granted = block_of(limit.saturating_sub(taken)).saturating_sub(held);
    let taken = add(tx, account_id, month, signed(granted)).await?;
    Ok(MeterState {
        month,
        taken,
        granted,
    })
}

/// Counts deliveries of an account without a cap, after the fact.
pub async fn count(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    delivered: u64,
    now_ms: i64,
) -> Result<MeterState, Error> {
    let month = current_month(tx, account_id, now_ms).await?;
    let taken = add(tx, account_id, month, signed(delivered)).await?;
    Ok(MeterState {
        month,
        taken,
        granted: delivered,
    })
}

/// Returns the rest of a block.
pub async fn give_back(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    month: Month,
    unused: u64,
) -> Result<(), Error> {
    query("UPDATE delivery_months SET taken = max(taken - $3, 0) WHERE account_id = $1 AND month = $2")
        .bind(account_id)
        .bind(month)
        .bind(signed(unused))
        .execute(tx)
        .await?;
    Ok(())
}

/// Deliveries taken in the current month.
pub async fn standing(
    db: &mut impl Connection,
    account_id: Uuid,
    now_ms: i64,
) -> Result<MeterState, Error> {
    let month = current_month(db, account_id, now_ms).await?;
    Ok(MeterState {
        month,
        taken: taken_in(db, account_id, month).await?,
        granted: 0,
    })
}

async fn current_month(
    db: &mut impl Connection,
    account_id: Uuid,
    now_ms: i64,
) -> Result<Month, Error> {
    let newest: Option<Month> =
        query_scalar("SELECT max(month) FROM delivery_months WHERE account_id = $1")
            .bind(account_id)
            .fetch_one(db)
            .await?;
    let now = Month::of(now_ms);
    Ok(newest.map_or(now, |newest| newest.max(now)))
}

async fn taken_in(db: &mut impl Connection, account_id: Uuid, month: Month) -> Result<u64, Error> {
    let taken: Option<i64> =
        query_scalar("SELECT taken FROM delivery_months WHERE account_id = $1 AND month = $2")
            .bind(account_id)
            .bind(month)
            .fetch_optional(db)
            .await?;
    Ok(taken.map_or(0, i64::unsigned_abs))
}

async fn add(tx: &mut Tx<'_>, account_id: Uuid, month: Month, added: i64) -> Result<u64, Error> {
    let taken: i64 = query_scalar(
        "INSERT INTO delivery_months (account_id, month, taken) VALUES ($1, $2, $3)
         ON CONFLICT (account_id, month) DO UPDATE SET taken = delivery_months.taken + $3 RETURNING taken",
    )
    .bind(account_id)
    .bind(month)
    .bind(added)
    .fetch_one(tx)
    .await?;
    Ok(taken.unsigned_abs())
}

/// Deliveries of one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Day {
    /// Days since 1970 (UTC).
    pub day: i64,
    pub hits: i64,
    pub misses: i64,
    pub bytes: i64,
}

impl Day {
    /// The day of a time in milliseconds since 1970.
    pub fn of(now_ms: i64) -> i64 {
        now_ms.div_euclid(24 * 60 * 60 * 1000)
    }
}

/// Adds to a day's statistics.
pub async fn add_to_day(tx: &mut Tx<'_>, account_id: Uuid, added: Day) -> Result<(), Error> {
    query(
        "INSERT INTO delivery_days (account_id, day, hits, misses, bytes) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (account_id, day) DO UPDATE SET hits = delivery_days.hits + $3,
             misses = delivery_days.misses + $4, bytes = delivery_days.bytes + $5",
    )
    .bind(account_id)
    .bind(added.day)
    .bind(added.hits)
    .bind(added.misses)
    .bind(added.bytes)
    .execute(tx)
    .await?;
    Ok(())
}

/// The days from `since` on that had deliveries, newest first.
pub async fn days(
    db: &mut impl Connection,
    account_id: Uuid,
    since: i64,
) -> Result<Vec<Day>, Error> {
    let days = query_as(
        "SELECT day, hits, misses, bytes FROM delivery_days WHERE account_id = $1 AND day >= $2 ORDER BY day DESC LIMIT $3",
    )
    .bind(account_id)
    .bind(since)
    .bind(MOST_DAYS)
    .fetch_all(db)
    .await?;
    Ok(days)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_at_most_a_thousand_and_a_hundredth_and_at_least_one() {
        for (remaining, block) in [
            (0, 0),
            (1, 1),
            (99, 1),
            (100, 1),
            (250, 2),
            (5_000, 50),
            (100_000, 1_000),
            (5_000_000, 1_000),
            (u64::MAX, 1_000),
        ] {
            assert_eq!(block_of(remaining), block, "{remaining}");
        }
    }
}
