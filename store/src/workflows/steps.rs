//! Journal of a workflow run: the result at each node of its path, for the next owner and for the log.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    Connection, Error, Tx,
    blob::{BlobHash, Scratched},
    rows::{self, hex, json},
    rows::{JsonText, Narrow},
    statement::{query, query_as},
    work::{self, Lease},
};

text_enum! {
    pub enum StepStatus {
        Completed = "completed",
        /// On another path, or after the end of the run.
        Skipped = "skipped",
        Failed = "failed",
    }
}

text_enum! {
    /// Reason why a step was skipped.
    pub enum SkipReason {
        /// The upload did not meet the gate.
        Gate = "gate",
        /// On a path that a branch did not take.
        OtherPath = "otherPath",
        /// Behind a step that failed.
        Failure = "failure",
        /// The run was ended before it.
        Stopped = "stopped",
        /// No path leads to it.
        NoPath = "noPath",
    }
}

#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Step {
    /// Position on the path, from 0; skipped steps come after it.
    #[sqlx(try_from = "i64")]
    pub position: u32,
    pub node_id: String,
    /// Kind of the node, as in the API.
    pub kind: String,
    pub title: String,
    pub status: StepStatus,
    /// Branch that was taken.
    pub branch: Option<bool>,
    pub message: String,
    /// `None` for one that was not skipped, or that an earlier version of the service skipped.
    pub skip_reason: Option<SkipReason>,
    /// Id of the branch whose other path it lies on, or of the step whose failure kept the run from it.
    pub skipped_by: Option<String>,
    /// Facts that an inspection found, or those that a branch was decided by.
    #[sqlx(try_from = "JsonText")]
    pub facts: Option<Value>,
    pub started_at: Option<i64>,
    pub finished_at: Option<i64>,
    pub bytes_in: Option<i64>,
    pub bytes_out: Option<i64>,
    /// Buffer that it made; `None` for one that passes its input on.
    #[sqlx(flatten, try_from = "OutputColumns")]
    pub output: Option<StepOutput>,
    /// `None` also when that is deleted.
    pub stored_file_id: Option<Uuid>,
}

/// Buffer as it was when the step finished. Its bytes may be missing by now; opening it at its place checks that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutput {
    pub place: BufferLocation,
    pub sha256: [u8; 32],
    pub length: i64,
    pub filename: String,
    pub mime: String,
    pub width: Option<u32>,
    pub height: Option<u32>,
}

impl StepOutput {
    /// Returns the buffer as [`crate::blob::Blobs::open_scratch`] compares it.
    pub fn scratched(&self) -> Scratched {
        Scratched {
            length: self.length.unsigned_abs(),
            sha256: self.sha256,
        }
    }

    /// The blob with these bytes, if there is one.
    pub fn blob(&self) -> BlobHash {
        BlobHash::from_bytes(self.sha256)
    }
}

text_enum! {
    /// Place of a step's buffer.
    pub enum BufferLocation {
        /// In the run's scratch folder, at the step's position.
        Scratch = "scratch",
        /// Blob with the hash. The run does not keep the blob: the stored file names it.
        Blob = "blob",
    }
}

/// The columns of a step's output, which are all null for a step without one.
#[derive(FromRow)]
struct OutputColumns {
    output_place: Option<BufferLocation>,
    output_sha256: Option<BlobHash>,
    output_length: Option<i64>,
    output_name: Option<String>,
    output_mime: Option<String>,
    #[sqlx(try_from = "Narrow")]
    output_width: Option<u32>,
    #[sqlx(try_from = "Narrow")]
    output_height: Option<u32>,
}

impl From<OutputColumns> for Option<StepOutput> {
    fn from(row: OutputColumns) -> Self {
        Some(StepOutput {
            place: row.output_place?,
            sha256: *row.output_sha256?.as_bytes(),
            length: row.output_length?,
            filename: row.output_name?,
            mime: row.output_mime?,
            width: row.output_width,
            height: row.output_height,
        })
    }
}

/// A step of one of several runs.
#[derive(FromRow)]
struct LogRow {
    run_id: Uuid,
    #[sqlx(flatten)]
    step: Step,
}

/// A step as the statement reads it, by name: twenty values by position would be hard to read.
#[derive(Serialize)]
struct Written<'a> {
    position: u32,
    node_id: String,
    kind: &'a str,
    title: String,
    status: &'static str,
    branch: Option<bool>,
    message: String,
    skip_reason: Option<&'static str>,
    skipped_by: Option<String>,
    facts: Option<String>,
    started_at: Option<i64>,
    finished_at: Option<i64>,
    bytes_in: Option<i64>,
    bytes_out: Option<i64>,
    place: Option<&'static str>,
    sha256: Option<String>,
    length: Option<i64>,
    name: Option<String>,
    mime: Option<&'a str>,
    width: Option<u32>,
    height: Option<u32>,
    stored: Option<String>,
}

impl<'a> From<&'a Step> for Written<'a> {
    fn from(step: &'a Step) -> Self {
        let output = step.output.as_ref();
        Self {
            position: step.position,
            node_id: whole(&step.node_id),
            kind: &step.kind,
            title: whole(&step.title),
            status: step.status.as_str(),
            branch: step.branch,
            message: whole(&step.message),
            skip_reason: step.skip_reason.map(SkipReason::as_str),
            skipped_by: step.skipped_by.as_deref().map(whole),
            facts: step.facts.as_ref().map(Value::to_string),
            started_at: step.started_at,
            finished_at: step.finished_at,
            bytes_in: step.bytes_in,
            bytes_out: step.bytes_out,
            place: output.map(|output| output.place.as_str()),
            sha256: output.map(|output| output.blob().to_string()),
            length: output.map(|output| output.length),
            name: output.map(|output| whole(&output.filename)),
            mime: output.map(|output| output.mime.as_str()),
            width: output.and_then(|output| output.width),
            height: output.and_then(|output| output.height),
            stored: step.stored_file_id.map(hex),
        }
    }
}

/// A foreign text with all its characters that the database's JSON can carry.
fn whole(text: &str) -> String {
    rows::text(text, usize::MAX)
}

/// Journals finished steps, in one statement, and notes that the run made progress. One that is journalled already is
/// an internal error. `Error::Conflict` when the lease is lost.
pub async fn record_steps(tx: &mut Tx<'_>, lease: &Lease, steps: &[Step]) -> Result<(), Error> {
    work::progressed(tx, lease).await?;
    insert(tx, lease.id, steps).await
}

/// Records the steps that a run did not reach, in the transaction that ends it.
pub async fn record_skipped(tx: &mut Tx<'_>, run_id: Uuid, steps: &[Step]) -> Result<(), Error> {
    insert(tx, run_id, steps).await
}

pub(super) async fn insert(tx: &mut Tx<'_>, run_id: Uuid, steps: &[Step]) -> Result<(), Error> {
    if steps.is_empty() {
        return Ok(());
    }
    let written: Vec<Written> = steps.iter().map(Written::from).collect();
    query(
        "INSERT INTO workflow_steps (run_id, position, node_id, kind, title, status, branch, message, facts, started_at,
             finished_at, bytes_in, bytes_out, output_place, output_sha256, output_length, output_name, output_mime,
             output_width, output_height, stored_file_id, skip_reason, skipped_by)
         SELECT $1, CAST(value ->> 'position' AS INTEGER), value ->> 'node_id', value ->> 'kind', value ->> 'title',
             value ->> 'status', CAST(value ->> 'branch' AS BOOLEAN), value ->> 'message', value ->> 'facts',
             CAST(value ->> 'started_at' AS INTEGER), CAST(value ->> 'finished_at' AS INTEGER),
             CAST(value ->> 'bytes_in' AS INTEGER), CAST(value ->> 'bytes_out' AS INTEGER), value ->> 'place',
             unhex(value ->> 'sha256'), CAST(value ->> 'length' AS INTEGER), value ->> 'name', value ->> 'mime',
             CAST(value ->> 'width' AS INTEGER), CAST(value ->> 'height' AS INTEGER),
             unhex(value ->> 'stored'), value ->> 'skip_reason', value ->> 'skipped_by'
         FROM json_each($2)",
    )
    .bind(run_id)
    .bind(json(&written)?)
    .execute(tx)
    .await?;
    Ok(())
}

/// A run's journal, in the order of its path.
pub async fn steps(db: &mut impl Connection, run_id: Uuid) -> Result<Vec<Step>, Error> {
    Ok(
        query_as("SELECT * FROM workflow_steps WHERE run_id = $1 ORDER BY position")
            .bind(run_id)
            .fetch_all(db)
            .await?,
    )
}

/// [`steps`] of several runs, by their ids; one without steps is missing. Without facts: those of a run may be megabytes.
pub async fn logs(
    db: &mut impl Connection,
    runs: &[Uuid],
) -> Result<HashMap<Uuid, Vec<Step>>, Error> {
    let rows: Vec<LogRow> = query_as(
        "SELECT s.run_id, s.position, s.node_id, s.kind, s.title, s.status, s.branch, s.message, NULL AS facts,
             s.started_at, s.finished_at, s.bytes_in, s.bytes_out, s.output_place, s.output_sha256, s.output_length,
             s.output_name, s.output_mime, s.output_width, s.output_height, s.stored_file_id, s.skip_reason, s.skipped_by
         FROM json_each($1) r CROSS JOIN workflow_steps s ON s.run_id = unhex(r.value)
         ORDER BY s.run_id, s.position",
    )
    .bind(rows::ids(runs)?)
    .fetch_all(db)
    .await?;
    let mut logs: HashMap<Uuid, Vec<Step>> = HashMap::new();
    for row in rows {
        logs.entry(row.run_id).or_default().push(row.step);
    }
    Ok(logs)
}
