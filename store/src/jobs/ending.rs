//! End of a job: finished, cancelled, or given up after crashes; refunds the operations of items without a result.

use uuid::Uuid;

use super::{Job, JobState, KIND, by_id, get};
use crate::{
    Error, Tx,
    blob::BlobHash,
    operations,
    statement::{query, query_as, query_scalar},
    work::{self, Lease},
};

/// Error code of a job, and of its unfinished files, whose owner crashed too often.
const CRASHED: &str = "crashed";

/// Ends a job none of whose items is pending: completed when it has a result file, else failed with the first file's
/// error. `keep_ms`: how long the results can be downloaded. `Error::Conflict` when the lease is lost.
pub async fn finish(
    tx: &mut Tx<'_>,
    lease: &Lease,
    archive: Option<(BlobHash, u64)>,
    keep_ms: i64,
    now_ms: i64,
) -> Result<Job, Error> {
    work::finish(tx, lease).await?;
    let job = by_id(tx, lease.id).await?;
    let (blob, size) = archive.unzip();
    query("UPDATE jobs SET archive_blob = $2, archive_size = $3 WHERE id = $1")
        .bind(job.id)
        .bind(blob)
        .bind(size.map(|size| i64::try_from(size).unwrap_or(i64::MAX)))
        .execute(tx)
        .await?;
    if job.completed_files > 0 {
        return end(tx, job.id, JobState::Completed, None, keep_ms, now_ms).await;
    }
    let first: Option<(String, String)> = query_as(
        "SELECT error, error_code FROM job_files WHERE job_id = $1 AND state = 'failed' ORDER BY position LIMIT 1",
    )
    .bind(job.id)
    .fetch_optional(tx)
    .await?;
    end(tx, job.id, JobState::Failed, first, keep_ms, now_ms).await
}

/// Cancels a job that is pending or running; existing results are kept. `Error::Conflict` when it has ended,
/// `Error::NotFound` when it is unknown or another account's.
pub async fn cancel(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    id: Uuid,
    keep_ms: i64,
    now_ms: i64,
) -> Result<Job, Error> {
    let job = get(tx, account_id, id).await?;
    if job.state.has_ended() {
        return Err(Error::Conflict(format!(
            "the job has ended already: it is {}",
            job.state.as_str()
        )));
    }
    work::withdraw(tx, KIND, id).await?;
    refund_pending(tx, &job).await?;
    query("UPDATE job_files SET state = 'cancelled' WHERE job_id = $1 AND state = 'pending'")
        .bind(id)
        .execute(tx)
        .await?;
    end(tx, id, JobState::Cancelled, None, keep_ms, now_ms).await
}

/// Ends a job whose row of [`work`] was given up; returns the job as it is then. `None` for one that has ended
/// meanwhile, or was deleted: it is left as it is.
pub async fn give_up(
    tx: &mut Tx<'_>,
    id: Uuid,
    keep_ms: i64,
    now_ms: i64,
) -> Result<Option<Job>, Error> {
    let job = match by_id(tx, id).await {
        Ok(job) if !job.state.has_ended() => job,
        Ok(_) | Err(Error::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let why = "the work on it was cut short three times".to_owned();
    refund_pending(tx, &job).await?;
    let failed = query(
        "UPDATE job_files SET state = 'failed', error = $2, error_code = $3 WHERE job_id = $1 AND state = 'pending'",
    )
    .bind(id)
    .bind(&why)
    .bind(CRASHED)
    .execute(tx)
    .await?;
    query("UPDATE jobs SET failed_files = failed_files + $2 WHERE id = $1")
        .bind(id)
        .bind(i64::try_from(failed.rows_affected()).unwrap_or(i64::MAX))
        .execute(tx)
        .await?;
    let cause = Some((why, CRASHED.to_owned()));
    let job = end(tx, id, JobState::Failed, cause, keep_ms, now_ms).await?;
    Ok(Some(job))
}

async fn refund_pending(tx: &mut Tx<'_>, job: &Job) -> Result<(), Error> {
    let unused: i64 = query_scalar(
        "SELECT CAST(coalesce(sum(operations), 0) AS INTEGER) FROM job_files WHERE job_id = $1 AND state = 'pending'",
    )
    .bind(job.id)
    .fetch_one(tx)
    .await?;
    let unused = u64::try_from(unused).unwrap_or(0);
    operations::refund(tx, job.account_id, job.month, job.charged_work(), unused).await
}

async fn end(
    tx: &mut Tx<'_>,
    id: Uuid,
    state: JobState,
    cause: Option<(String, String)>,
    keep_ms: i64,
    now_ms: i64,
) -> Result<Job, Error> {
    query(
        "DELETE FROM job_inputs WHERE job_file_id IN (SELECT id FROM job_files WHERE job_id = $1)",
    )
    .bind(id)
    .execute(tx)
    .await?;
    let (error, code) = cause.unzip();
    Ok(query_as(
        "UPDATE jobs SET state = $2, error = $3, error_code = $4, completed_at = $5, expires_at = $6
         WHERE id = $1 RETURNING *",
    )
    .bind(id)
    .bind(state)
    .bind(error)
    .bind(code)
    .bind(now_ms)
    .bind(now_ms.saturating_add(keep_ms))
    .fetch_one(tx)
    .await?)
}
