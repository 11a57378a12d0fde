//! Monthly meter of media operations: charge against the plan's cap, refund. One operation is one file processed.
//! Beside it each day's operations are counted by kind, for the account's history.
//!
//! A charge joins the transaction that makes the work, a refund the one that records the failure, so that neither can
//! be doubled or lost. The counter's key includes the month (UTC). A clock that is set back never reopens a month:
//! charges continue in the newest one that the account has.

use uuid::Uuid;

use super::deliveries::Day;
use crate::{
    Connection, Error, Month, Tx,
    statement::{query, query_as},
};

/// Operations that an account has used of a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    pub month: Month,
    pub operations: u64,
}

/// Work that is charged, as the history shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargedWork<'a> {
    /// Name of a tool, `workflow` or `stream`.
    pub kind: &'a str,
    /// Time at which it was asked for; the same at a refund.
    pub asked_at: i64,
}

/// The answer to a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Done; a refund names this month.
    Charged(Month),
    /// The cap would be exceeded: nothing was changed.
    UsedUp { used: u64 },
}

/// Charges `operations` to the account's current month, unless that exceeds `cap` (0: none).
pub async fn charge(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    work: ChargedWork<'_>,
    operations: u64,
    cap: u64,
    now_ms: i64,
) -> Result<Charge, Error> {
    let used = used(tx, account_id, now_ms).await?;
    if cap > 0 && used.operations.saturating_add(operations) > cap {
        return Ok(Charge::UsedUp {
            used: used.operations,
        });
    }
    query(
        "INSERT INTO operation_months (account_id, month, operations) VALUES ($1, $2, $3)
         ON CONFLICT (account_id, month) DO UPDATE SET operations = operation_months.operations + excluded.operations",
    )
    .bind(account_id)
    .bind(used.month)
    .bind(signed(operations))
    .execute(tx)
    .await?;
    add_to_day(tx, account_id, work, operations).await?;
    Ok(Charge::Charged(used.month))
}

async fn add_to_day(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    work: ChargedWork<'_>,
    operations: u64,
) -> Result<(), Error> {
    query(
        "INSERT INTO operation_days (account_id, day, kind, operations) VALUES ($1, $2, $3, $4)
         ON CONFLICT (account_id, day, kind) DO UPDATE SET operations = operation_days.operations + excluded.operations",
    )
    .bind(account_id)
    .bind(Day::of(work.asked_at))
    .bind(work.kind)
    .bind(signed(operations))
    .execute(tx)
    .await?;
    Ok(())
}

/// Refunds operations to the month and the day that they were charged to; never below 0.
pub async fn refund(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    month: Month,
    work: ChargedWork<'_>,
    operations: u64,
) -> Result<(), Error> {
    query(
        "UPDATE operation_months SET operations = max(operations - $3, 0) WHERE account_id = $1 AND month = $2",
    )
    .bind(account_id)
    .bind(month)
    .bind(signed(operations))
    .execute(tx)
    .await?;
    query(
        "UPDATE operation_days SET operations = max(operations - $4, 0) WHERE account_id = $1 AND day = $2 AND kind = $3",
    )
    .bind(account_id)
    .bind(Day::of(work.asked_at))
    .bind(work.kind)
    .bind(signed(operations))
    .execute(tx)
    .await?;
    Ok(())
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the operations that the account has used of its current month.
pub async fn used(db: &mut impl Connection, account_id: Uuid, now_ms: i64) -> Result<Used, Error> {
    let newest: Option<(Month, i64)> = query_as(
        "SELECT month, operations FROM operation_months WHERE account_id = $1 ORDER BY month DESC LIMIT 1",
    )
    .bind(account_id)
    .fetch_optional(db)
    .await?;
    let month = Month::of(now_ms);
    Ok(match newest {
        Some((newest, operations)) if newest >= month => Used {
            month: newest,
            operations: u64::try_from(operations).unwrap_or(0),
        },
        _ => Used {
            month,
            operations: 0,
        },
    })
}
