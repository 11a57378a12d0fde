//! Begin and end of a workflow run: completed, failed, cancelled, or given up after crashes; refunds.
//!
//! Every end is one transaction: the journal's last rows, the refund, the row's new state, and the next run's
//! admission. Nudge the registry after it, since another run may be due.

use uuid::Uuid;

use super::{KIND, Run, RunStatus, Step, admission, get_run, runs, steps, submission::OPERATIONS};
use crate::{
    Error, Tx,
    blob::BlobHash,
    operations,
    statement::{query_as, query_scalar},
    work::{self, Lease},
};

/// Error code of a run whose owner crashed too often.
const CRASHED: &str = "crashed";

/// Bounds that apply at the end of a run.
#[derive(Clone, Copy, Debug)]
pub struct EndingTerms {
    /// Time for which its input and output are kept.
    pub keep_ms: i64,
    /// Admitted runs of a workflow.
    pub max_active: usize,
}

/// The last buffer of a run that stored none. Its blob is recorded by the caller in the same transaction.
#[derive(Clone, Debug)]
pub struct NewOutput {
    pub blob: BlobHash,
    pub filename: String,
    pub mime_type: String,
    pub size: u64,
    pub width: Option<u32>,
    pub height: Option<u32>,
}

/// Result of a completed run.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// True when the gate accepted the upload; `None` without a gate.
    pub gate: Option<bool>,
    pub output: Option<NewOutput>,
    /// Steps that are not journalled yet: its last ones, and the nodes that it did not reach.
    pub steps: Vec<Step>,
}

/// Reason of a run's failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Result of the gate, as of [`Completion`].
    pub gate: Option<bool>,
    /// `None`: before its first node.
    pub node: Option<String>,
    /// Stable code.
    pub code: String,
    /// Message for people; names the step.
    pub message: String,
    /// Steps as of [`Completion`], the failed step among them.
    pub steps: Vec<Step>,
}

/// Marks the run as running, in the transaction that claims it. Returns the run the first time since it was queued;
/// after an interruption it changes nothing.
pub async fn begin(tx: &mut Tx<'_>, run_id: Uuid, now_ms: i64) -> Result<Option<Run>, Error> {
    Ok(query_as(
        "UPDATE workflow_runs SET status = 'processing', started_at = $2 WHERE id = $1 AND status = 'queued' AND is_admitted = 1
         RETURNING *",
    )
    .bind(run_id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?)
}

/// Completes a run. `Error::Conflict` when the lease is lost.
pub async fn complete(
    tx: &mut Tx<'_>,
    lease: &Lease,
    completion: Completion,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Run, Error> {
    work::finish(tx, lease).await?;
    steps::insert(tx, lease.id, &completion.steps).await?;
    let end = End {
        gate: completion.gate,
        output: completion.output,
        ..End::new(RunStatus::Completed)
    };
    finish(tx, lease.id, end, terms, now_ms).await
}

/// Fails a run and refunds what it cost; what it stored is kept. `Error::Conflict` when the lease is lost.
pub async fn fail(
    tx: &mut Tx<'_>,
    lease: &Lease,
    failure: Failure,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Run, Error> {
    work::finish(tx, lease).await?;
    steps::insert(tx, lease.id, &failure.steps).await?;
    let end = End {
        gate: failure.gate,
        node: failure.node,
        code: Some(failure.code),
        message: Some(failure.message),
        ..End::new(RunStatus::Failed)
    };
    let run = finish(tx, lease.id, end, terms, now_ms).await?;
    refund(tx, &run).await?;
    Ok(run)
}

/// Ends a run whose row of [`work`] was given up; returns the run as it is then. `None` for one that has ended
/// meanwhile, or was deleted: it is left as it is.
pub async fn give_up(
    tx: &mut Tx<'_>,
    id: Uuid,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Option<Run>, Error> {
    match runs::by_id(tx, id).await {
        Ok(run) if !run.status.has_ended() => {}
        Ok(_) | Err(Error::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    }
    let end = End {
        code: Some(CRASHED.to_owned()),
        message: Some("the work on it was cut short three times: retry the run".to_owned()),
        ..End::new(RunStatus::Failed)
    };
    let run = finish(tx, id, end, terms, now_ms).await?;
    refund(tx, &run).await?;
    Ok(Some(run))
}

/// Cancels a run that waits or is running, and refunds what it cost; what it stored is kept. `Error::Conflict` when it
/// has ended, `Error::NotFound` as for [`get_run`].
pub async fn cancel(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Run, Error> {
    let run = get_run(tx, account_id, id).await?;
    if run.status.has_ended() {
        return Err(Error::Conflict(format!(
            "the run has ended already: it is {}",
            run.status.as_str()
        )));
    }
    withdraw(tx, id, terms, now_ms).await
}

/// Runs of a workflow that have not ended, admitted ones first: a run that waits does nothing, while these would
/// continue with what their owner deleted.
pub(super) const UNFINISHED: &str = "SELECT id FROM workflow_runs WHERE workflow_id = $1 AND is_admitted = 1
     UNION ALL SELECT id FROM (
         SELECT r.id FROM workflow_runs r WHERE r.workflow_id = $1 AND r.status = 'queued' AND r.is_admitted = 0
             ORDER BY r.lane, r.queued_at, r.id LIMIT $2) queued
     LIMIT $2";

/// Cancels at most `rows` unfinished runs of a workflow that is deleted, and returns them; call it again while they
/// are `rows`. Their end admits no other run: none of a deleted workflow is.
pub async fn cancel_deleted(
    tx: &mut Tx<'_>,
    workflow_id: Uuid,
    rows: u32,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Vec<Run>, Error> {
    let unfinished: Vec<Uuid> = query_scalar(UNFINISHED)
        .bind(workflow_id)
        .bind(rows)
        .fetch_all(tx)
        .await?;
    let mut cancelled = Vec::with_capacity(unfinished.len());
    for id in unfinished {
        cancelled.push(withdraw(tx, id, terms, now_ms).await?);
    }
    Ok(cancelled)
}

async fn withdraw(
    tx: &mut Tx<'_>,
    id: Uuid,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Run, Error> {
    work::withdraw(tx, KIND, id).await?;
    let run = finish(tx, id, End::new(RunStatus::Cancelled), terms, now_ms).await?;
    refund(tx, &run).await?;
    Ok(run)
}

/// The last state of a run.
struct End {
    status: RunStatus,
    gate: Option<bool>,
    output: Option<NewOutput>,
    node: Option<String>,
    code: Option<String>,
    message: Option<String>,
}

impl End {
    fn new(status: RunStatus) -> Self {
        Self {
            status,
            gate: None,
            output: None,
            node: None,
            code: None,
            message: None,
        }
    }
}

/// Ends a run that is unfinished, and admits the one after it.
async fn finish(
    tx: &mut Tx<'_>,
    id: Uuid,
    end: End,
    terms: EndingTerms,
    now_ms: i64,
) -> Result<Run, Error> {
    let output = end.output.as_ref();
    let run: Option<Run> = query_as(
        "UPDATE workflow_runs SET status = $2, is_admitted = 0, gate = $3, output_blob = $4, output_name = $5,
             output_mime = $6, output_size = $7, width = $8, height = $9, error = $10, error_node = $11, error_code = $12,
             completed_at = $13, expires_at = $14
         WHERE id = $1 AND completed_at IS NULL RETURNING *",
    )
    .bind(id)
    .bind(end.status)
    .bind(end.gate)
    .bind(output.map(|output| output.blob))
    .bind(output.map(|output| &output.filename))
    .bind(output.map(|output| &output.mime_type))
    .bind(output.map(|output| i64::try_from(output.size).unwrap_or(i64::MAX)))
    .bind(output.and_then(|output| output.width))
    .bind(output.and_then(|output| output.height))
    .bind(end.message)
    .bind(end.node)
    .bind(end.code)
    .bind(now_ms)
    .bind(now_ms.saturating_add(terms.keep_ms))
    .fetch_optional(tx)
    .await?;
    let run = run.ok_or_else(|| Error::Conflict("the run has ended before".into()))?;
    admission::admit_next(tx, run.workflow_id, terms.max_active, now_ms).await?;
    Ok(run)
}

async fn refund(tx: &mut Tx<'_>, run: &Run) -> Result<(), Error> {
    let work = admission::charged_work(run.queued_at);
    operations::refund(tx, run.account_id, run.month, work, OPERATIONS).await
}
