//! Progress of a job: begin, results of items, failures, members of archives. Every write checks the owner's lease
//! first, so that an owner that was replaced changes nothing and nothing is doubled.

use uuid::Uuid;

use super::{Item, ItemState, Job, NewItem, get, insert_item, item};
use crate::{
    Error, Tx,
    blob::BlobHash,
    operations::{self, Charge},
    rows::Json,
    statement::{query, query_as},
    work::{self, Lease},
};

/// Result of an item. Its blob is recorded, and its file made, by the caller in the same transaction.
#[derive(Clone, Debug, Default)]
pub struct NewResult {
    /// `None` for an operation that only returns facts.
    pub blob: Option<BlobHash>,
    pub filename: String,
    pub mime_type: String,
    pub size: u64,
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub duration_ms: Option<u64>,
    pub applied_quality: Option<u8>,
    pub facts: Option<serde_json::Value>,
    pub stored_file_id: Option<Uuid>,
    pub attachment: Option<NewAttachment>,
}

/// A second file of a result, as its blob and file are recorded.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    pub blob: BlobHash,
    pub filename: String,
    pub mime_type: String,
    pub size: u64,
    pub stored_file_id: Option<Uuid>,
}

/// Marks the job as running, in the transaction that claims it. Returns the job the first time; after an interruption
/// it changes nothing.
pub async fn begin(tx: &mut Tx<'_>, job_id: Uuid, now_ms: i64) -> Result<Option<Job>, Error> {
    Ok(query_as(
        "UPDATE jobs SET state = 'processing', started_at = $2 WHERE id = $1 AND state = 'pending' RETURNING *",
    )
    .bind(job_id)
    .bind(now_ms)
    .fetch_optional(tx)
    .await?)
}

/// Puts the members of an archive in the place of the item that named it, and charges the difference.
///
/// `Error::Conflict` when the lease is lost, or when the item is not pending any more. An archive without members, or one
/// that the account has no operations left for, is the caller's to fail.
pub async fn expand(
    tx: &mut Tx<'_>,
    lease: &Lease,
    archive: &Item,
    members: &[NewItem],
    now_ms: i64,
) -> Result<Charge, Error> {
    work::progressed(tx, lease).await?;
    let job = get(tx, lease.account_id, lease.id).await?;
    let cost: u64 = members.iter().map(|member| member.operations).sum();
    let charged = u64::try_from(archive.operations).unwrap_or(0);
    let charge = operations::charge(
        tx,
        job.account_id,
        job.charged_work(),
        cost.saturating_sub(charged),
        job.allowance.operations,
        now_ms,
    )
    .await?;
    if let Charge::UsedUp { .. } = charge {
        return Ok(charge);
    }
    let deleted = query("DELETE FROM job_files WHERE id = $1 AND state = 'pending'")
        .bind(archive.id)
        .execute(tx)
        .await?;
    if deleted.rows_affected() == 0 {
        return Err(Error::Conflict("the archive was taken apart before".into()));
    }
    for (number, member) in members.iter().enumerate() {
        let position = archive.position + i64::try_from(number).unwrap_or(0);
        insert_item(tx, job.id, position, member).await?;
    }
    query("UPDATE jobs SET total_files = total_files - 1 + $2 WHERE id = $1")
        .bind(job.id)
        .bind(i64::try_from(members.len()).unwrap_or(i64::MAX))
        .execute(tx)
        .await?;
    Ok(charge)
}

/// Records an item's result; returns the job as it is then. `Error::Conflict` when the lease is lost or the item has
/// ended.
pub async fn complete_item(
    tx: &mut Tx<'_>,
    lease: &Lease,
    item_id: Uuid,
    result: NewResult,
) -> Result<Job, Error> {
    work::progressed(tx, lease).await?;
    let completed = query(
        "UPDATE job_files SET state = 'completed', result_blob = $3, result_name = $4, mime_type = $5, result_size = $6,
             width = $7, height = $8, applied_quality = $9, facts = $10, stored_file_id = $11, duration_ms = $12
         WHERE id = $1 AND job_id = $2 AND state = 'pending'",
    )
    .bind(item_id)
    .bind(lease.id)
    .bind(result.blob)
    .bind(&result.filename)
    .bind(&result.mime_type)
    .bind(signed(result.size))
    .bind(result.width)
    .bind(result.height)
    .bind(result.applied_quality)
    .bind(result.facts.map(Json))
    .bind(result.stored_file_id)
    .bind(result.duration_ms.map(signed))
    .execute(tx)
    .await?;
    check_pending(completed.rows_affected())?;
    if let Some(attachment) = &result.attachment {
        attach(tx, item_id, attachment).await?;
    }
    Ok(
        query_as("UPDATE jobs SET completed_files = completed_files + 1 WHERE id = $1 RETURNING *")
            .bind(lease.id)
            .fetch_one(tx)
            .await?,
    )
}

async fn attach(tx: &mut Tx<'_>, item_id: Uuid, attachment: &NewAttachment) -> Result<(), Error> {
    query(
        "UPDATE job_files SET attachment_blob = $2, attachment_name = $3, attachment_mime = $4, attachment_size = $5,
             attachment_file_id = $6
         WHERE id = $1",
    )
    .bind(item_id)
    .bind(attachment.blob)
    .bind(&attachment.filename)
    .bind(&attachment.mime_type)
    .bind(signed(attachment.size))
    .bind(attachment.stored_file_id)
    .execute(tx)
    .await?;
    Ok(())
}

/// Records why an item failed, and refunds what it cost; returns the job as it is then. Errors as [`complete_item`].
pub async fn fail_item(
    tx: &mut Tx<'_>,
    lease: &Lease,
    item_id: Uuid,
    code: &str,
    message: &str,
) -> Result<Job, Error> {
    work::progressed(tx, lease).await?;
    let failed = query(
        "UPDATE job_files SET state = 'failed', error = $3, error_code = $4 WHERE id = $1 AND job_id = $2 AND state = 'pending'",
    )
    .bind(item_id)
    .bind(lease.id)
    .bind(message)
    .bind(code)
    .execute(tx)
    .await?;
    check_pending(failed.rows_affected())?;
    let item = item(tx, item_id).await?;
    debug_assert_eq!(item.state, ItemState::Failed);
    let job: Job =
        query_as("UPDATE jobs SET failed_files = failed_files + 1 WHERE id = $1 RETURNING *")
            .bind(lease.id)
            .fetch_one(tx)
            .await?;
    operations::refund(
        tx,
        job.account_id,
        job.month,
        job.charged_work(),
        u64::try_from(item.operations).unwrap_or(0),
    )
    .await?;
    Ok(job)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn check_pending(rows: u64) -> Result<(), Error> {
    match rows {
        0 => Err(Error::Conflict(
            "the file's result was recorded before".into(),
        )),
        _ => Ok(()),
    }
}
