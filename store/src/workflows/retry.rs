//! Retry of a workflow run that failed or was cancelled: which steps are kept, which version is used.

use uuid::Uuid;

use super::{
    Run, RunStatus,
    admission::{self, AdmissionOutcome, RunLimits},
    definition_of, get_run,
};
use crate::{
    Error, Tx,
    jobs::Allowance,
    rows::Json,
    statement::{query, query_as},
    work::Lane,
};

/// Terms on which a run is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// The version to do; `None`: the one it did.
    pub version: Option<i64>,
    /// Steps before this position are kept, if they are completed.
    pub kept_positions: u32,
    pub lane: Lane,
    pub allowance: Allowance,
    pub limits: RunLimits,
}

/// Answer to [`retry`]. Nothing was changed unless the run is queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retried {
    Queued(Box<Run>),
    UsedUp { used: u64 },
    Full,
}

/// Queues the same run again and charges it again. `Error::Conflict` when it has not failed or been cancelled, when
/// its input is deleted, and when the workflow is paused; `Error::NotFound` as for [`get_run`], and for a version that
/// is not kept.
pub async fn retry(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    wanted: &Retry,
    now_ms: i64,
) -> Result<Retried, Error> {
    let run = get_run(tx, account_id, id).await?;
    check(&run)?;
    let target = admission::target(tx, account_id, run.workflow_id).await?;
    if !target.is_active {
        return Err(Error::Conflict(
            "the workflow is paused: make it active first".into(),
        ));
    }
    let version = wanted.version.unwrap_or(run.workflow_version);
    definition_of(tx, run.workflow_id, version).await?;
    let (limits, cap) = (wanted.limits, wanted.allowance.operations);
    let (is_admitted, month) =
        match admission::enter(tx, account_id, &target, limits, cap, now_ms).await? {
            AdmissionOutcome::Paid { is_admitted, month } => (is_admitted, month),
            AdmissionOutcome::UsedUp { used } => return Ok(Retried::UsedUp { used }),
            AdmissionOutcome::Full => return Ok(Retried::Full),
        };
    query("DELETE FROM workflow_steps WHERE run_id = $1 AND (position >= $2 OR status <> 'completed')")
        .bind(id)
        .bind(wanted.kept_positions)
        .execute(tx)
        .await?;
    let run: Run = query_as(
        "UPDATE workflow_runs SET status = 'queued', is_admitted = $2, retries = retries + 1, workflow_version = $3,
             lane = $4, allowance = $5, month = $6, gate = NULL, error = NULL, error_node = NULL, error_code = NULL,
             queued_at = $7, started_at = NULL, completed_at = NULL, expires_at = NULL
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(is_admitted)
    .bind(version)
    .bind(wanted.lane)
    .bind(Json(wanted.allowance))
    .bind(month)
    .bind(now_ms)
    .fetch_one(tx)
    .await?;
    if run.is_admitted {
        admission::enqueue(tx, &run, now_ms).await?;
    }
    Ok(Retried::Queued(Box::new(run)))
}

fn check(run: &Run) -> Result<(), Error> {
    if !matches!(run.status, RunStatus::Failed | RunStatus::Cancelled) {
        return Err(Error::Conflict(format!(
            "only a run that failed or was cancelled can be tried again: this one is {}",
            run.status.as_str()
        )));
    }
    if run.input_blob.is_none() {
        return Err(Error::Conflict(
            "the run's input is kept no more: run the workflow with the file again".into(),
        ));
    }
    Ok(())
}
