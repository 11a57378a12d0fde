//! Submission of workflow runs: by a request, or by a file that enters the trigger folder; generations, rejections.

use uuid::Uuid;

use super::{
    Run, RunInput, Trigger,
    admission::{self, AdmissionOutcome, RunLimits, Target},
};
use crate::{
    Error, Month, Tx,
    blob::Sealed,
    blobs,
    files::File,
    jobs::Allowance,
    rows::Json,
    statement::{query, query_as, query_scalar},
    work::Lane,
};

/// Operations that a run costs.
pub(super) const OPERATIONS: u64 = 1;

/// A run to be made.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub account_id: Uuid,
    pub workflow_id: Uuid,
    /// A version that is kept; `None`: the current one.
    pub version: Option<i64>,
    /// The run that it repeats.
    pub rerun_of: Option<Uuid>,
    pub trigger: Trigger,
    pub lane: Lane,
    /// Generation of the input.
    pub generation: u32,
    pub upload_source: String,
    pub input: RunInput,
    /// May be deleted by now.
    pub source_file_id: Option<Uuid>,
    pub allowance: Allowance,
}

/// The answer to [`submit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    New(Box<Run>),
    // Of the others, nothing was changed.
    /// The workflow is paused.
    Paused,
    /// The month's operations do not suffice.
    UsedUp {
        used: u64,
    },
    /// Too many runs wait.
    Full,
}

/// Charges the account, records the upload's blob and makes the run; admitted when there is room, else waiting. The input names
/// the upload, or a blob that something of the account names. `Error::NotFound` as for [`super::get`].
pub async fn submit(
    tx: &mut Tx<'_>,
    new: &NewRun,
    limits: RunLimits,
    upload: Option<&Sealed>,
    now_ms: i64,
) -> Result<Submitted, Error> {
    let target = admission::target(tx, new.account_id, new.workflow_id).await?;
    if !target.is_active {
        return Ok(Submitted::Paused);
    }
    let cap = new.allowance.operations;
    let (is_admitted, month) =
        match admission::enter(tx, new.account_id, &target, limits, cap, now_ms).await? {
            AdmissionOutcome::Paid { is_admitted, month } => (is_admitted, month),
            AdmissionOutcome::UsedUp { used } => return Ok(Submitted::UsedUp { used }),
            AdmissionOutcome::Full => return Ok(Submitted::Full),
        };
    if let Some(upload) = upload {
        blobs::record(tx, upload, now_ms).await?;
    }
    let begins = Begins::Queued { is_admitted };
    let run = insert(tx, new, &target, begins, month, now_ms).await?;
    if run.is_admitted {
        admission::enqueue(tx, &run, now_ms).await?;
    }
    Ok(Submitted::New(Box::new(run)))
}

/// State in which a run's row begins.
enum Begins {
    Queued {
        is_admitted: bool,
    },
    /// Rejected, and listed as failed in the history.
    Failed(Rejection),
}

struct Rejection {
    code: &'static str,
    message: String,
    /// Time at which its input is deleted.
    expires_at: i64,
}

async fn insert(
    tx: &mut Tx<'_>,
    new: &NewRun,
    target: &Target,
    begins: Begins,
    month: Month,
    now_ms: i64,
) -> Result<Run, Error> {
    let (is_admitted, rejection) = match begins {
        Begins::Queued { is_admitted } => (is_admitted, None),
        Begins::Failed(rejection) => (false, Some(rejection)),
    };
    query("UPDATE workflows SET run_count = run_count + 1, last_run_at = $2 WHERE id = $1")
        .bind(new.workflow_id)
        .bind(now_ms)
        .execute(tx)
        .await?;
    Ok(query_as(
        "INSERT INTO workflow_runs (id, account_id, workflow_id, workflow_name, workflow_version, number, status, \"trigger\",
             lane, is_admitted, generation, upload_source, input_blob, input_filename, input_size, input_mime,
             source_file_id, allowance, month, error, error_code, created_at, queued_at, completed_at, expires_at, rerun_of)
         VALUES ($1, $2, $3, $4, $5, $6, iif($19 IS NULL, 'queued', 'failed'), $7, $8, $9, $10, $11, $12, $13, $14, $15,
             (SELECT id FROM files WHERE id = $16), $17, $18, $19, $20, $21, $21, iif($19 IS NULL, NULL, $21), $22, $23)
         RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(new.account_id)
    .bind(new.workflow_id)
    .bind(&target.name)
    .bind(new.version.unwrap_or(target.version))
    .bind(target.run_count + 1)
    .bind(new.trigger)
    .bind(new.lane)
    .bind(is_admitted)
    .bind(new.generation)
    .bind(&new.upload_source)
    .bind(new.input.blob)
    .bind(&new.input.filename)
    .bind(new.input.size)
    .bind(&new.input.mime_type)
    .bind(new.source_file_id)
    .bind(Json(new.allowance))
    .bind(month)
    .bind(rejection.as_ref().map(|rejection| &rejection.message))
    .bind(rejection.as_ref().map(|rejection| rejection.code))
    .bind(now_ms)
    .bind(rejection.as_ref().map(|rejection| rejection.expires_at))
    .bind(new.rerun_of)
    .fetch_one(tx)
    .await?)
}

/// Bounds of the runs that a file triggers.
#[derive(Clone, Copy, Debug)]
pub struct TriggerLimits {
    pub allowance: Allowance,
    pub runs: RunLimits,
    /// Files of a later generation make none.
    pub max_generation: u32,
    /// Time for which the input of a run that failed at once is kept.
    pub keep_ms: i64,
}

/// Makes the runs of a file that has just entered its folder, in the transaction that made it. One that is larger than
/// the plan's operations take, that cannot be charged, or that would be one waiting run too many, is recorded as
/// failed with that reason: the file is kept.
pub async fn triggered(
    tx: &mut Tx<'_>,
    file: &File,
    limits: &TriggerLimits,
    now_ms: i64,
) -> Result<Vec<Run>, Error> {
    if file.folder_id.is_none() || file.generation > limits.max_generation {
        return Ok(Vec::new());
    }
    let workflows: Vec<Uuid> = query_scalar(
        "SELECT id FROM workflows WHERE trigger_folder_id = $1 AND account_id = $2 AND is_active = 1
             AND deleted_at IS NULL ORDER BY created_at, id",
    )
    .bind(file.folder_id)
    .bind(file.account_id)
    .fetch_all(tx)
    .await?;
    let mut runs = Vec::with_capacity(workflows.len());
    for workflow_id in workflows {
        let new = of_file(workflow_id, file, limits);
        let (code, message) = match too_large(file, limits) {
            Some(rejection) => rejection,
            None => match submit(tx, &new, limits.runs, None, now_ms).await? {
                Submitted::New(run) => {
                    runs.push(*run);
                    continue;
                }
                Submitted::Paused => continue,
                Submitted::UsedUp { used } => used_up(used),
                Submitted::Full => full(limits),
            },
        };
        let rejection = Rejection {
            code,
            message,
            expires_at: now_ms.saturating_add(limits.keep_ms),
        };
        let target = admission::target(tx, new.account_id, workflow_id).await?;
        let (begins, month) = (Begins::Failed(rejection), Month::of(now_ms));
        runs.push(insert(tx, &new, &target, begins, month, now_ms).await?);
    }
    Ok(runs)
}

fn of_file(workflow_id: Uuid, file: &File, limits: &TriggerLimits) -> NewRun {
    NewRun {
        account_id: file.account_id,
        workflow_id,
        version: None,
        rerun_of: None,
        trigger: Trigger::Folder,
        lane: Lane::Batch,
        generation: file.generation,
        upload_source: Trigger::Folder.as_str().to_owned(),
        input: RunInput {
            blob: file.blob,
            filename: file.filename.clone(),
            size: file.size_bytes,
            mime_type: file.mime_type.clone(),
        },
        source_file_id: Some(file.id),
        allowance: limits.allowance,
    }
}

fn too_large(file: &File, limits: &TriggerLimits) -> Option<(&'static str, String)> {
    let (bytes, most) = (file.size_bytes.unsigned_abs(), limits.allowance.file_bytes);
    let message = || {
        format!(
            "{} has {bytes} bytes, more than the {most} that the plan takes of a file of its type",
            file.filename
        )
    };
    (most > 0 && bytes > most).then(|| ("too_large", message()))
}

fn used_up(used: u64) -> (&'static str, String) {
    let message = format!(
        "the {used} media operations of the month are used up: retry the run next month, or with a larger plan"
    );
    ("operations_used_up", message)
}

fn full(limits: &TriggerLimits) -> (&'static str, String) {
    let message = format!(
        "{} runs are waiting, which is as many as may (workflows.max_queued): retry the run later",
        limits.runs.max_queued
    );
    ("too_many_runs", message)
}
