//! Fields of workflow runs, their log and outputs in answers: `status`, `gate`, `log`, `outputs`, `downloadUrl`.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use sluice_store::{
    Reader,
    files::File,
    now_ms,
    workflows::{self, Run, Step},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Timestamp,
    context::WorkflowContext,
    downloads::{DownloadGrant, Downloadable, download_url},
    error::ApiError,
    reached::Reached,
    signing::Signer,
};

/// A run of a workflow on one file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    pub id: Uuid,
    pub workflow_id: Uuid,
    /// Name of the workflow when the run was made.
    pub workflow_name: String,
    /// The version that it runs, whatever is saved meanwhile.
    pub workflow_version: i64,
    /// 1 for the workflow's first run.
    pub number: i64,
    /// `queued`, `processing`, `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// True when the upload met the definition's gate; null without a gate, and for a run that has not completed.
    pub gate: Option<bool>,
    /// `api`, `file` (a stored file was named), `folder` (an upload into a bound folder) or `mcp`.
    pub trigger: &'static str,
    /// Value of `upload_source` in conditions.
    pub upload_source: String,
    pub input_filename: String,
    pub input_size: i64,
    pub input_mime_type: String,
    /// True while the input is kept, so that the run can be run again.
    pub is_input_kept: bool,
    /// The stored file that it works on; null for an upload, and when the file was deleted.
    pub source_file_id: Option<Uuid>,
    /// The run that this one repeats; null for others.
    pub rerun_of: Option<Uuid>,
    /// The steps that have ended, in the order of the path; once the run has ended also those that it did not come to.
    pub log: Vec<LogEntry>,
    /// Files that storage steps stored and that were not deleted since; when none ran, the final file as a download,
    /// once the run has completed.
    pub outputs: Vec<OutputRecord>,
    /// Reason why the run failed; names the step.
    pub error: Option<String>,
    /// Stable, such as `undecodable`, `impossible`, `storage_used_up`; with `error` only.
    pub error_code: Option<String>,
    /// The node whose step failed.
    pub error_node_id: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
}

/// The result of a node in a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub node_id: String,
    pub kind: String,
    pub title: String,
    /// `completed`, `skipped` (on a path not taken, or the run ended before it) or `failed`.
    pub status: &'static str,
    /// The edge that a branch took; null for other kinds.
    pub branch: Option<bool>,
    /// Action of the node, or the reason why it took none.
    pub message: String,
    /// The reason of a skipped step: `gate` (the upload did not meet it), `otherPath` (a branch took the other one), `failure` (a step
    /// before it failed), `stopped` (the run was ended before it) or `noPath` (no path leads to it); null for runs of earlier versions.
    pub skip_reason: Option<&'static str>,
    /// The branch whose other path the skipped step lies on, or the step whose failure kept the run from it.
    pub skipped_by: Option<String>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub bytes_in: Option<i64>,
    pub bytes_out: Option<i64>,
    /// Facts that an `inspect` step found, or those that decided a branch, by the names of conditions; null where several runs are
    /// listed.
    #[schema(value_type = Option<Object>)]
    pub facts: Option<Value>,
    /// The file that a storage step made.
    pub stored_file_id: Option<Uuid>,
}

/// A file that came out of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputRecord {
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: i64,
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Null for a final file that no step stored.
    pub stored_file_id: Option<Uuid>,
    /// Works without a credential: 5 minutes for a stored file (`uploads.link_lifetime`; ask again for another), 7 days
    /// for another one (`workflows.keep_results`). Null once that is over.
    pub download_url: Option<String>,
}

/// A run, and the two of its fields that every client needs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunAnswer {
    pub run: RunRecord,
    pub run_id: Uuid,
    /// `queued`, `processing`, `completed`, `failed` or `cancelled`.
    pub status: &'static str,
}

impl RunAnswer {
    pub(crate) fn of(run: RunRecord) -> Self {
        Self {
            run_id: run.id,
            status: run.status,
            run,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.run.completed_at.is_some()
    }
}

impl From<Step> for LogEntry {
    fn from(step: Step) -> Self {
        Self {
            node_id: step.node_id,
            kind: step.kind,
            title: step.title,
            status: step.status.as_str(),
            branch: step.branch,
            message: step.message,
            skip_reason: step.skip_reason.map(|reason| reason.as_str()),
            skipped_by: step.skipped_by,
            started_at: step.started_at.map(Timestamp),
            finished_at: step.finished_at.map(Timestamp),
            bytes_in: step.bytes_in,
            bytes_out: step.bytes_out,
            facts: step.facts,
            stored_file_id: step.stored_file_id,
        }
    }
}

/// The records of runs, with their outputs and their logs but for facts, in the order of the runs.
pub(crate) async fn records(
    context: &WorkflowContext,
    reached: &Reached,
    runs: Vec<Run>,
) -> Result<Vec<RunRecord>, ApiError> {
    let ids: Vec<Uuid> = runs.iter().map(|run| run.id).collect();
    let mut db = context.store.read().await?;
    let logs = workflows::logs(&mut db, &ids).await?;
    with_logs(context, reached, db, runs, logs).await
}

/// The whole record of one run.
pub(crate) async fn answer(
    context: &WorkflowContext,
    reached: &Reached,
    run: Run,
) -> Result<RunAnswer, ApiError> {
    let mut db = context.store.read().await?;
    let log = workflows::steps(&mut db, run.id).await?;
    let logs = HashMap::from([(run.id, log)]);
    let one = with_logs(context, reached, db, vec![run], logs)
        .await?
        .pop();
    Ok(RunAnswer::of(one.expect("each run has a record")))
}

async fn with_logs(
    context: &WorkflowContext,
    reached: &Reached,
    mut db: Reader,
    runs: Vec<Run>,
    mut logs: HashMap<Uuid, Vec<Step>>,
) -> Result<Vec<RunRecord>, ApiError> {
    let ids: Vec<Uuid> = runs.iter().map(|run| run.id).collect();
    let mut stored = workflows::stored_files(&mut db, &ids).await?;
    let links = Links {
        context,
        base: &reached.address.base,
        signer: Signer::of(&mut db).await?,
    };
    drop(db);
    Ok(runs
        .into_iter()
        .map(|run| {
            let log = logs.remove(&run.id).unwrap_or_default();
            let stored = stored.remove(&run.id).unwrap_or_default();
            record(&links, run, log, stored)
        })
        .collect())
}

fn record(links: &Links<'_>, run: Run, log: Vec<Step>, stored: Vec<File>) -> RunRecord {
    let stored = stored.into_iter().map(|file| links.to_file(file));
    RunRecord {
        outputs: stored.chain(links.to_output(&run)).collect(),
        log: log.into_iter().map(LogEntry::from).collect(),
        id: run.id,
        workflow_id: run.workflow_id,
        workflow_name: run.workflow_name,
        workflow_version: run.workflow_version,
        number: run.number,
        status: run.status.as_str(),
        gate: run.gate,
        trigger: run.trigger.as_str(),
        upload_source: run.upload_source,
        input_filename: run.input_filename,
        input_size: run.input_size,
        input_mime_type: run.input_mime,
        is_input_kept: run.input_blob.is_some(),
        source_file_id: run.source_file_id,
        rerun_of: run.rerun_of,
        error: run.error,
        error_code: run.error_code,
        error_node_id: run.error_node,
        created_at: Timestamp(run.created_at),
        started_at: run.started_at.map(Timestamp),
        completed_at: run.completed_at.map(Timestamp),
    }
}

/// Makes the download addresses of outputs.
struct Links<'a> {
    context: &'a WorkflowContext,
    base: &'a str,
    signer: Signer,
}

impl Links<'_> {
    fn to_file(&self, file: File) -> OutputRecord {
        let grant = DownloadGrant::for_file(file.id, self.context);
        OutputRecord {
            download_url: Some(download_url(&self.signer, self.base, grant)),
            stored_file_id: Some(file.id),
            filename: file.filename,
            mime_type: file.mime_type,
            size_bytes: file.size_bytes,
            width: file.width,
            height: file.height,
        }
    }

    fn to_output(&self, run: &Run) -> Option<OutputRecord> {
        let output = run.output()?;
        let works_until = run.expires_at.filter(|expires_at| now_ms() < *expires_at);
        let url = works_until.map(|expires_at| {
            let what = Downloadable::Output(run.id);
            download_url(&self.signer, self.base, DownloadGrant { what, expires_at })
        });
        Some(OutputRecord {
            download_url: url,
            stored_file_id: None,
            filename: output.filename,
            mime_type: output.mime_type,
            size_bytes: output.size,
            width: output.width,
            height: output.height,
        })
    }
}
