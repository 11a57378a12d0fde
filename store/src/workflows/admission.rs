//! Admission of a workflow's runs: which are worked on, which wait, and which are rejected (`max_active`,
//! `max_queued`); their charge.
//!
//! Admitted runs have a row in [`crate::work`], in the transaction that admits them. The number of them is counted
//! there too, along an index that holds nothing else, so that two runs that end at once admit two.

use sqlx::FromRow;
use uuid::Uuid;

use super::{KIND, Run, submission::OPERATIONS};
use crate::{
    Connection, Error, Month, Store, Tx,
    operations::{self, Charge, ChargedWork},
    statement::{query_as, query_scalar},
    turns::{SweepResult, turns},
    work,
};

/// Fences of the leases of one time that a run is queued; those of the next time begin above.
const FENCES_BITS: u32 = 32;

/// Fields of a workflow that a new run needs.
#[derive(Debug, FromRow)]
pub(super) struct Target {
    pub name: String,
    pub version: i64,
    pub is_active: bool,
    pub run_count: i64,
    /// Admitted runs.
    active: i64,
}

/// Returns the workflow of a new run. `Error::NotFound` as for [`super::get`].
pub(super) async fn target(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    workflow_id: Uuid,
) -> Result<Target, Error> {
    query_as(
        "SELECT name, version, is_active, run_count,
             (SELECT count(*) FROM workflow_runs r WHERE r.workflow_id = w.id AND r.is_admitted = 1) AS active
         FROM workflows w WHERE id = $1 AND account_id = $2 AND deleted_at IS NULL",
    )
    .bind(workflow_id)
    .bind(account_id)
    .fetch_optional(tx)
    .await?
    .ok_or(Error::NotFound("workflow"))
}

/// Bounds that a run needs to be queued.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// Admitted runs of the workflow.
    pub max_active: usize,
    /// Waiting runs of the account.
    pub max_queued: usize,
}

/// Outcome for a run that is to be queued. Nothing was changed unless it is paid for.
#[derive(Clone, Copy, Debug)]
pub(super) enum AdmissionOutcome {
    Paid {
        is_admitted: bool,
        /// The month that was charged.
        month: Month,
    },
    /// The month's operations do not suffice.
    UsedUp { used: u64 },
    /// Too many of the account wait.
    Full,
}

/// Finds a place for a run of the workflow, new or tried again, and charges the account for it; `cap` is the operations
/// of a month, 0 means no bound.
pub(super) async fn enter(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    target: &Target,
    limits: RunLimits,
    cap: u64,
    now_ms: i64,
) -> Result<AdmissionOutcome, Error> {
    let is_admitted = match admit(tx, account_id, target, limits).await? {
        RunAdmission::Admitted => true,
        RunAdmission::Waits => false,
        RunAdmission::Full => return Ok(AdmissionOutcome::Full),
    };
    let work = charged_work(now_ms);
    let charge = operations::charge(tx, account_id, work, OPERATIONS, cap, now_ms).await?;
    Ok(match charge {
        Charge::Charged(month) => AdmissionOutcome::Paid { is_admitted, month },
        Charge::UsedUp { used } => AdmissionOutcome::UsedUp { used },
    })
}

/// Work of a run, as the account's history shows it.
pub(super) fn charged_work(queued_at: i64) -> ChargedWork<'static> {
    ChargedWork {
        kind: "workflow",
        asked_at: queued_at,
    }
}

enum RunAdmission {
    Admitted,
    Waits,
    /// Too many of the account wait.
    Full,
}

async fn admit(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    target: &Target,
    limits: RunLimits,
) -> Result<RunAdmission, Error> {
    if target.active < signed(limits.max_active) {
        return Ok(RunAdmission::Admitted);
    }
    // Counted only as far as it matters.
    let waiting: i64 = query_scalar(
        "SELECT count(*) FROM (SELECT 1 FROM workflow_runs
             WHERE account_id = $1 AND status = 'queued' AND is_admitted = 0 LIMIT $2) some_rows",
    )
    .bind(account_id)
    .bind(signed(limits.max_queued))
    .fetch_one(tx)
    .await?;
    Ok(match waiting < signed(limits.max_queued) {
        true => RunAdmission::Waits,
        false => RunAdmission::Full,
    })
}

/// Puts an admitted run into [`work`].
pub(super) async fn enqueue(tx: &mut Tx<'_>, run: &Run, now_ms: i64) -> Result<(), Error> {
    let fence = i64::from(run.retries) << FENCES_BITS;
    work::enqueue_again(tx, KIND, run.id, run.account_id, run.lane, fence, now_ms).await
}

pub(super) const ADMIT: &str = "UPDATE workflow_runs SET is_admitted = 1
     WHERE id = (SELECT id FROM workflow_runs WHERE workflow_id = $1 AND status = 'queued' AND is_admitted = 0
             ORDER BY lane, queued_at, id LIMIT 1)
         AND (SELECT count(*) FROM workflow_runs WHERE workflow_id = $1 AND is_admitted = 1) < $2
         AND EXISTS (SELECT 1 FROM workflows WHERE id = $1 AND deleted_at IS NULL)
     RETURNING *";

/// Admits the next run of a workflow, if there is room; returns whether one was admitted. Interactive ones are first,
/// then by the time they were queued. None of a deleted workflow is.
pub(super) async fn admit_next(
    tx: &mut Tx<'_>,
    workflow_id: Uuid,
    max_active: usize,
    now_ms: i64,
) -> Result<bool, Error> {
    let admitted: Option<Run> = query_as(ADMIT)
        .bind(workflow_id)
        .bind(signed(max_active))
        .fetch_optional(tx)
        .await?;
    match admitted {
        Some(run) => {
            enqueue(tx, &run, now_ms).await?;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// Seeks from workflow to workflow along the index of waiting runs.
pub(super) const WAITING: &str = "WITH RECURSIVE waiting (id) AS (
         SELECT min(workflow_id) FROM workflow_runs WHERE status = 'queued' AND is_admitted = 0
         UNION ALL
         SELECT (SELECT min(workflow_id) FROM workflow_runs
             WHERE workflow_id > waiting.id AND status = 'queued' AND is_admitted = 0)
         FROM waiting WHERE waiting.id IS NOT NULL)
     SELECT id FROM waiting WHERE id IS NOT NULL
         AND (SELECT count(*) FROM workflow_runs r WHERE r.workflow_id = waiting.id AND r.is_admitted = 1) < $1";

/// Admits runs that could have been admitted and were not: the setting was raised. Returns how many.
pub(super) async fn refill(store: &Store, max_active: usize, now_ms: i64) -> Result<u64, Error> {
    let workflows: Vec<Uuid> = with_room(&mut store.read().await?, max_active).await?;
    let mut total = 0;
    for workflow_id in workflows {
        total += turns(store, move |tx, most| {
            Box::pin(async move {
                let mut rows = 0;
                while rows < u64::from(most) {
                    if !admit_next(tx, workflow_id, max_active, now_ms).await? {
                        return Ok(SweepResult {
                            rows,
                            is_last: true,
                        });
                    }
                    rows += 1;
                }
                Ok(SweepResult {
                    rows,
                    is_last: false,
                })
            })
        })
        .await?;
    }
    Ok(total)
}

async fn with_room(db: &mut impl Connection, max_active: usize) -> Result<Vec<Uuid>, Error> {
    Ok(query_scalar(WAITING)
        .bind(signed(max_active))
        .fetch_all(db)
        .await?)
}

pub(super) fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
