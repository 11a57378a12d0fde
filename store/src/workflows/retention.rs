//! Retention of workflow runs (`workflows.keep_runs`): deletes inputs and outputs, then runs, deleted workflows and
//! scratch files.

use std::{collections::BTreeSet, time::Duration};

use uuid::Uuid;

use super::{EndingTerms, admission, ending};
use crate::{
    Connection, Error, Store, Tx, duration_ms,
    lineage::{self, Derived, DerivedKind},
    rows,
    statement::{query, query_as, query_scalar},
    turns::{SweepResult, in_turns, turns},
};

/// Scratch folders that are looked up at a time.
const PAGE: usize = 200;
/// Deleted workflows that one sweep removes.
const MOST_DELETED: i64 = 1_000;

// Without an order PostgreSQL expects a run at the first look, and reads all of them when there is none.
const ENDED_BEFORE: &str =
    "SELECT id FROM workflow_runs WHERE completed_at < $1 ORDER BY completed_at LIMIT 1";

/// The settings `workflows.keep_runs` and `workflows.max_active_per_workflow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub keep_runs: Duration,
    pub max_active: usize,
}

/// Deletes expired inputs and outputs, removes deleted workflows, and admits runs that could have been admitted;
/// returns how many rows.
pub(crate) async fn sweep(store: &Store, retention: &Retention, now_ms: i64) -> Result<u64, Error> {
    let expired = in_turns(store, move |tx, most| Box::pin(expire(tx, now_ms, most))).await?;
    let keep_ms = duration_ms(retention.keep_runs);
    let before = now_ms.saturating_sub(keep_ms);
    let old = in_turns(store, move |tx, most| {
        Box::pin(delete_ended_before(tx, before, most))
    })
    .await?;
    let deleted = sweep_deleted(store, now_ms).await?;
    let admitted = admission::refill(store, retention.max_active, now_ms).await?;
    Ok(expired + old + deleted + admitted)
}

/// Deletes the inputs and outputs of at most `most` expired runs; returns how many runs. Their blobs are swept, once
/// nothing else names them.
async fn expire(tx: &mut Tx<'_>, now_ms: i64, most: u32) -> Result<u64, Error> {
    let expired: Vec<(Uuid, bool)> = query_as(
        "SELECT id, output_blob IS NOT NULL FROM workflow_runs WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2",
    )
    .bind(now_ms)
    .bind(most)
    .fetch_all(tx)
    .await?;
    if expired.is_empty() {
        return Ok(0);
    }
    query(
        "UPDATE workflow_runs SET input_blob = NULL, output_blob = NULL, expires_at = NULL
         WHERE id IN (SELECT unhex(value) FROM json_each($1))",
    )
    .bind(rows::ids(expired.iter().map(|(id, _)| id))?)
    .execute(tx)
    .await?;
    for (id, _) in expired.iter().filter(|(_, has_output)| *has_output) {
        forget_output(tx, *id).await?;
    }
    Ok(expired.len() as u64)
}

async fn forget_output(tx: &mut Tx<'_>, run_id: Uuid) -> Result<(), Error> {
    let output = Derived {
        kind: DerivedKind::RunOutput,
        id: run_id.to_string(),
    };
    lineage::forget(tx, &output).await
}

/// Deletes runs that ended before a time, at most `most` rows of steps and runs together; returns how many.
pub(super) async fn delete_ended_before(
    tx: &mut Tx<'_>,
    before: i64,
    most: u32,
) -> Result<u64, Error> {
    let mut left = u64::from(most);
    while left > 0 {
        let old: Option<Uuid> = query_scalar(ENDED_BEFORE)
            .bind(before)
            .fetch_optional(tx)
            .await?;
        let Some(id) = old else {
            break;
        };
        left -= delete_run(tx, id, left).await?;
    }
    Ok(u64::from(most) - left)
}

/// A run and its steps, or as many steps as fit; returns how many rows.
async fn delete_run(tx: &mut Tx<'_>, id: Uuid, most: u64) -> Result<u64, Error> {
    let steps = query(
        "DELETE FROM workflow_steps WHERE (run_id, position) IN (
             SELECT run_id, position FROM workflow_steps WHERE run_id = $1 LIMIT $2)",
    )
    .bind(id)
    .bind(i64::try_from(most).unwrap_or(i64::MAX))
    .execute(tx)
    .await?
    .rows_affected();
    if steps == most {
        return Ok(steps);
    }
    let output: Option<bool> =
        query_scalar("DELETE FROM workflow_runs WHERE id = $1 RETURNING output_name IS NOT NULL")
            .bind(id)
            .fetch_optional(tx)
            .await?;
    if output == Some(true) {
        forget_output(tx, id).await?;
    }
    Ok(steps + 1)
}

/// Deletes the rows of deleted workflows. Their unfinished runs are ended here: the process died before it had ended
/// all.
async fn sweep_deleted(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let deleted = deleted(&mut store.read().await?).await?;
    let mut total = 0;
    for id in deleted {
        total += turns(store, move |tx, most| {
            Box::pin(remove_some(tx, id, most, now_ms))
        })
        .await?;
    }
    Ok(total)
}

async fn deleted(db: &mut impl Connection) -> Result<Vec<Uuid>, Error> {
    Ok(query_scalar(
        "SELECT id FROM workflows WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT $1",
    )
    .bind(MOST_DELETED)
    .fetch_all(db)
    .await?)
}

/// Removes a part of a deleted workflow.
async fn remove_some(
    tx: &mut Tx<'_>,
    id: Uuid,
    most: u32,
    now_ms: i64,
) -> Result<SweepResult, Error> {
    let terms = EndingTerms {
        keep_ms: 0,
        max_active: 0,
    };
    let cancelled = ending::cancel_deleted(tx, id, most, terms, now_ms).await?;
    let mut left = u64::from(most).saturating_sub(cancelled.len() as u64);
    while left > 0 {
        let run: Option<Uuid> =
            query_scalar("SELECT id FROM workflow_runs WHERE workflow_id = $1 LIMIT 1")
                .bind(id)
                .fetch_optional(tx)
                .await?;
        let Some(run) = run else {
            query("DELETE FROM workflows WHERE id = $1")
                .bind(id)
                .execute(tx)
                .await?;
            return Ok(SweepResult {
                rows: u64::from(most) - left + 1,
                is_last: true,
            });
        };
        left -= delete_run(tx, run, left).await?;
    }
    Ok(SweepResult {
        rows: u64::from(most),
        is_last: false,
    })
}

/// Removes the scratch of runs that need it no more: those that completed, and those whose input has expired, so that
/// they cannot be retried; returns how many. Each node has scratch of its own, also of runs that another one continued.
pub(crate) async fn sweep_scratch(store: &Store) -> Result<u64, Error> {
    let folders = store.blobs().scratch_folders().await?;
    let mut removed = 0;
    for page in folders.chunks(PAGE) {
        let needed = needs_scratch(&mut store.read().await?, page).await?;
        for id in page.iter().filter(|id| !needed.contains(id)) {
            store.blobs().remove_scratch(*id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns those of the runs that may still continue.
async fn needs_scratch(db: &mut impl Connection, runs: &[Uuid]) -> Result<BTreeSet<Uuid>, Error> {
    let needed: Vec<Uuid> = query_scalar(
        "SELECT r.id FROM json_each($1) j CROSS JOIN workflow_runs r ON r.id = unhex(j.value)
         WHERE r.status <> 'completed' AND r.input_blob IS NOT NULL",
    )
    .bind(rows::ids(runs)?)
    .fetch_all(db)
    .await?;
    Ok(needed.into_iter().collect())
}
