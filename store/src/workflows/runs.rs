//! Rows of workflow runs as they are read: status, trigger, input, output, stored files, counts.

use std::collections::HashMap;

use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    Connection, Error, Month,
    blob::BlobHash,
    files::File,
    jobs::Allowance,
    rows,
    rows::{JsonText, Narrow},
    statement::query_as,
    work::Lane,
};

text_enum! {
    pub enum RunStatus {
        Queued = "queued",
        Processing = "processing",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl RunStatus {
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Queued | Self::Processing)
    }
}

text_enum! {
    /// Trigger of a run.
    pub enum Trigger {
        /// A request with the file.
        Api = "api",
        /// A request that names a stored file.
        File = "file",
        /// A file that was stored in the workflow's folder.
        Folder = "folder",
        /// An agent.
        Mcp = "mcp",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Run {
    pub id: Uuid,
    pub account_id: Uuid,
    pub workflow_id: Uuid,
    /// Name as it was when the run was made.
    pub workflow_name: String,
    pub workflow_version: i64,
    /// Number among the workflow's runs, from 1.
    pub number: i64,
    pub status: RunStatus,
    /// True when the gate accepted the upload; `None` without a gate, and before its result.
    pub gate: Option<bool>,
    pub trigger: Trigger,
    pub lane: Lane,
    /// True when the run is in [`crate::work`].
    pub is_admitted: bool,
    /// Times it was queued again.
    #[sqlx(try_from = "i64")]
    pub retries: u32,
    /// The run that it repeats, which may be deleted by now.
    pub rerun_of: Option<Uuid>,
    /// Generation of its input; what it stores has one more.
    #[sqlx(try_from = "i64")]
    pub generation: u32,
    pub upload_source: String,
    /// `None` once it has expired.
    pub input_blob: Option<BlobHash>,
    pub input_filename: String,
    pub input_size: i64,
    pub input_mime: String,
    /// The stored file that it works on; `None` also when that is deleted.
    pub source_file_id: Option<Uuid>,
    #[sqlx(try_from = "JsonText")]
    pub allowance: Allowance,
    /// The month that was charged.
    pub month: Month,
    /// The last buffer, of a run that stored none; `None` once it has expired.
    pub output_blob: Option<BlobHash>,
    pub output_name: Option<String>,
    pub output_mime: Option<String>,
    pub output_size: Option<i64>,
    #[sqlx(try_from = "Narrow")]
    pub width: Option<u32>,
    #[sqlx(try_from = "Narrow")]
    pub height: Option<u32>,
    pub error: Option<String>,
    pub error_node: Option<String>,
    pub error_code: Option<String>,
    pub created_at: i64,
    /// Time at which it was queued last.
    pub queued_at: i64,
    pub started_at: Option<i64>,
    pub completed_at: Option<i64>,
    /// Time until which its input and output are kept; `None` until it ends, and once they are deleted.
    pub expires_at: Option<i64>,
}

/// Input of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInput {
    pub blob: BlobHash,
    pub filename: String,
    pub size: i64,
    pub mime_type: String,
}

impl Run {
    /// Returns its input; `None` once that has expired.
    pub fn input(&self) -> Option<RunInput> {
        self.input_blob.map(|blob| RunInput {
            blob,
            filename: self.input_filename.clone(),
            size: self.input_size,
            mime_type: self.input_mime.clone(),
        })
    }

    /// Returns its last buffer; `None` when it stored files, has not completed, or the buffer has expired.
    pub fn output(&self) -> Option<Output> {
        Some(Output {
            blob: self.output_blob?,
            filename: self.output_name.clone()?,
            mime_type: self.output_mime.clone()?,
            size: self.output_size?,
            width: self.width,
            height: self.height,
        })
    }
}

/// The last buffer of a run that stored none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub blob: BlobHash,
    pub filename: String,
    pub mime_type: String,
    pub size: i64,
    pub width: Option<u32>,
    pub height: Option<u32>,
}

/// Returns a run. `Error::NotFound` for an unknown id, another account's, and one whose workflow is deleted.
pub async fn get_run(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Run, Error> {
    query_as(
        "SELECT * FROM workflow_runs r WHERE id = $1 AND account_id = $2
             AND EXISTS (SELECT 1 FROM workflows w WHERE w.id = r.workflow_id AND w.deleted_at IS NULL)",
    )
    .bind(id)
    .bind(account_id)
    .fetch_optional(db)
    .await?
    .ok_or(Error::NotFound("run"))
}

/// Returns a run of any account, also of a deleted workflow, for actors.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Run, Error> {
    query_as("SELECT * FROM workflow_runs WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("run"))
}

/// Returns the output of a run of any account, for a download. `Error::NotFound` when there is none, or its workflow
/// is deleted.
pub async fn output(db: &mut impl Connection, id: Uuid) -> Result<Output, Error> {
    let run: Option<Run> = query_as(
        "SELECT * FROM workflow_runs r WHERE id = $1
             AND EXISTS (SELECT 1 FROM workflows w WHERE w.id = r.workflow_id AND w.deleted_at IS NULL)",
    )
    .bind(id)
    .fetch_optional(db)
    .await?;
    run.and_then(|run| run.output())
        .ok_or(Error::NotFound("output"))
}

/// A workflow's runs, newest first, at most `limit`.
pub async fn list_runs(
    db: &mut impl Connection,
    account_id: Uuid,
    workflow_id: Uuid,
    limit: u32,
) -> Result<Vec<Run>, Error> {
    Ok(query_as(
        "SELECT * FROM workflow_runs WHERE workflow_id = $1 AND account_id = $2
         ORDER BY created_at DESC, id DESC LIMIT $3",
    )
    .bind(workflow_id)
    .bind(account_id)
    .bind(limit)
    .fetch_all(db)
    .await?)
}

#[derive(FromRow)]
struct StoredRow {
    run_id: Uuid,
    #[sqlx(flatten)]
    file: File,
}

/// The files that each of these runs stored and that are not deleted, in the order of its steps.
pub async fn stored_files(
    db: &mut impl Connection,
    runs: &[Uuid],
) -> Result<HashMap<Uuid, Vec<File>>, Error> {
    let rows: Vec<StoredRow> = query_as(
        "SELECT s.run_id, f.* FROM json_each($1) r CROSS JOIN workflow_steps s ON s.run_id = unhex(r.value)
         CROSS JOIN files f ON f.id = s.stored_file_id ORDER BY s.run_id, s.position",
    )
    .bind(rows::ids(runs)?)
    .fetch_all(db)
    .await?;
    let mut stored: HashMap<Uuid, Vec<File>> = HashMap::new();
    for row in rows {
        stored.entry(row.run_id).or_default().push(row.file);
    }
    Ok(stored)
}

/// Unfinished runs of all accounts, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct RunCounts {
    /// Runs that wait for another run of their workflow to end.
    pub waiting: i64,
    /// Runs in [`crate::work`] that have not begun.
    pub queued: i64,
    pub processing: i64,
}

/// Counts along the indexes of unfinished runs.
pub async fn count_by_status(db: &mut impl Connection) -> Result<RunCounts, Error> {
    Ok(query_as(
        "SELECT (SELECT count(*) FROM workflow_runs WHERE status = 'queued' AND is_admitted = 0) AS waiting,
             count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status = 'processing') AS processing
         FROM workflow_runs INDEXED BY workflow_runs_admitted WHERE is_admitted = 1",
    )
    .fetch_one(db)
    .await?)
}
