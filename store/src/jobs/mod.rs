//! Rows of conversion jobs: types, states, items, inputs; submit, list, filter and count. Actors work from the row.
//!
//! A job has items: one operation each, with its inputs and its one result. Its owner writes through a lease of the
//! kind [`KIND`] ([`progress`](self::begin)); results can be downloaded until the job's expiry, inputs are deleted
//! when it ends.

mod ending;
mod expiry;
mod progress;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Connection, Error, Month, Page, Tx,
    blob::{BlobHash, Sealed},
    blobs,
    idempotency::{self, Idempotency, IdempotentResult},
    operations,
    rows::Json,
    rows::{JsonText, Narrow},
    statement::{Builder, query, query_as, query_scalar},
    work::{self, Lane},
};

pub use ending::{cancel, finish, give_up};
pub(crate) use expiry::{delete_ended_before, expire_results};
pub use progress::{NewAttachment, NewResult, begin, complete_item, expand, fail_item};

/// Kind of a job's row in [`work`].
pub const KIND: &str = "job";

/// Free positions after each item of a request, which the members of an archive take in its place.
const POSITIONS_BETWEEN: i64 = 1 << 20;

text_enum! {
    pub enum JobType {
        Convert = "convert",
        Compress = "compress",
        /// Call of one of the media tools.
        Tool = "tool",
    }
}

text_enum! {
    pub enum JobState {
        Pending = "pending",
        Processing = "processing",
        /// The job has at least one result file.
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl JobState {
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Processing)
    }
}

text_enum! {
    pub enum ItemState {
        Pending = "pending",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

/// Bounds of the account's plan when the job was made; 0 means no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    /// Files of the job, the members of archives among them.
    pub files: u64,
    /// Operations a month.
    pub operations: u64,
    /// Bytes of one input.
    pub file_bytes: u64,
    /// Bytes that the account may store.
    pub storage_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Job {
    pub id: Uuid,
    pub account_id: Uuid,
    pub job_type: JobType,
    /// The row of the operation table.
    pub tool: String,
    pub state: JobState,
    pub lane: Lane,
    /// Results become files, in the folder `folder_id`.
    pub saves: bool,
    pub folder_id: Option<Uuid>,
    /// Results are packed into one archive.
    pub archives: bool,
    #[sqlx(try_from = "JsonText")]
    pub allowance: Allowance,
    /// The month that was charged.
    pub month: Month,
    #[sqlx(try_from = "i64")]
    pub total_files: u32,
    #[sqlx(try_from = "i64")]
    pub completed_files: u32,
    #[sqlx(try_from = "i64")]
    pub failed_files: u32,
    pub archive_blob: Option<BlobHash>,
    pub archive_size: Option<i64>,
    pub error: Option<String>,
    pub error_code: Option<String>,
    /// Name of its first file, as requested.
    pub filename: String,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub completed_at: Option<i64>,
    /// Time until which results can be downloaded; `None` until the job ends, and once they are deleted.
    pub expires_at: Option<i64>,
}

/// Operation of a job with its result.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Item {
    pub id: Uuid,
    pub job_id: Uuid,
    pub position: i64,
    #[sqlx(try_from = "JsonText")]
    pub operation: serde_json::Value,
    /// Operations charged for the item.
    pub operations: i64,
    pub state: ItemState,
    pub original_name: String,
    pub original_size: i64,
    /// The stored file it is made from.
    pub source_file_id: Option<Uuid>,
    pub result_blob: Option<BlobHash>,
    pub result_name: Option<String>,
    pub result_size: Option<i64>,
    pub mime_type: Option<String>,
    #[sqlx(try_from = "Narrow")]
    pub width: Option<u32>,
    #[sqlx(try_from = "Narrow")]
    pub height: Option<u32>,
    pub duration_ms: Option<i64>,
    #[sqlx(try_from = "Narrow")]
    pub applied_quality: Option<u8>,
    /// Facts that an inspection found.
    #[sqlx(try_from = "JsonText")]
    pub facts: Option<serde_json::Value>,
    pub stored_file_id: Option<Uuid>,
    /// A second file of the result: [`Item::attachment`].
    pub attachment_blob: Option<BlobHash>,
    pub attachment_name: Option<String>,
    pub attachment_mime: Option<String>,
    pub attachment_size: Option<i64>,
    /// File as which the result was stored.
    pub attachment_file_id: Option<Uuid>,
    pub error: Option<String>,
    pub error_code: Option<String>,
}

/// The second file of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// `None` once downloads have expired.
    pub blob: Option<BlobHash>,
    pub filename: String,
    pub mime_type: String,
    pub size: i64,
    pub stored_file_id: Option<Uuid>,
}

impl Job {
    /// Work of the job, as the account's history shows it.
    fn charged_work(&self) -> operations::ChargedWork<'_> {
        operations::ChargedWork {
            kind: &self.tool,
            asked_at: self.created_at,
        }
    }
}

impl Item {
    /// Returns the attachment of the result, if there is one.
    pub fn attachment(&self) -> Option<Attachment> {
        Some(Attachment {
            blob: self.attachment_blob,
            filename: self.attachment_name.clone()?,
            mime_type: self.attachment_mime.clone()?,
            size: self.attachment_size?,
            stored_file_id: self.attachment_file_id,
        })
    }
}

/// Input of an operation.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Input {
    pub blob: BlobHash,
    pub filename: String,
    pub size: i64,
    /// The member of that number of the archive in `blob`.
    #[sqlx(try_from = "Narrow")]
    pub member: Option<u32>,
}

/// A job to be made.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub account_id: Uuid,
    pub job_type: JobType,
    pub tool: String,
    pub lane: Lane,
    pub saves: bool,
    pub folder_id: Option<Uuid>,
    pub archives: bool,
    pub allowance: Allowance,
    /// Items in the order of the answer; at least one.
    pub items: Vec<NewItem>,
    pub idempotency: Option<Idempotency>,
}

/// Operation to be done.
#[derive(Clone, Debug)]
pub struct NewItem {
    pub operation: serde_json::Value,
    /// Operations that it costs.
    pub operations: u64,
    pub source_file_id: Option<Uuid>,
    /// The first one gives the item its name.
    pub inputs: Vec<Input>,
}

/// The answer to [`submit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    New(Job),
    /// An earlier request had the same key and parameters; nothing was charged.
    Known(Job),
    /// The month's operations are used up; nothing was changed.
    UsedUp {
        used: u64,
    },
}

/// Charges the account, records the blobs of its uploads and makes the job, with its row of [`work`]. Inputs name one
/// of `uploads` or a blob that a file of the account names; that file, and the folder, may be deleted by now.
/// `Error::Conflict` when the idempotency key was used for other parameters.
pub async fn submit(
    tx: &mut Tx<'_>,
    new: &NewJob,
    uploads: &[Sealed],
    now_ms: i64,
) -> Result<Submitted, Error> {
    if let Some(wanted) = &new.idempotency
        && let Some(job_id) =
            idempotency::find(tx, new.account_id, wanted, IdempotentResult::job, now_ms).await?
    {
        return Ok(Submitted::Known(get(tx, new.account_id, job_id).await?));
    }
    let cost = new.items.iter().map(|item| item.operations).sum();
    let work = operations::ChargedWork {
        kind: &new.tool,
        asked_at: now_ms,
    };
    let cap = new.allowance.operations;
    let charge = operations::charge(tx, new.account_id, work, cost, cap, now_ms).await?;
    let month = match charge {
        operations::Charge::Charged(month) => month,
        operations::Charge::UsedUp { used } => return Ok(Submitted::UsedUp { used }),
    };
    for upload in uploads {
        blobs::record(tx, upload, now_ms).await?;
    }
    let job = insert(tx, new, month, now_ms).await?;
    for (number, item) in new.items.iter().enumerate() {
        let position = i64::try_from(number).unwrap_or(0) * POSITIONS_BETWEEN;
        insert_item(tx, job.id, position, item).await?;
    }
    work::enqueue(tx, KIND, job.id, job.account_id, job.lane, now_ms).await?;
    if let Some(wanted) = &new.idempotency {
        idempotency::remember(
            tx,
            new.account_id,
            wanted,
            IdempotentResult::Job(job.id),
            now_ms,
        )
        .await?;
    }
    Ok(Submitted::New(job))
}

async fn insert(tx: &mut Tx<'_>, new: &NewJob, month: Month, now_ms: i64) -> Result<Job, Error> {
    Ok(query_as(
        "INSERT INTO jobs (id, account_id, job_type, tool, state, lane, saves, folder_id, archives, allowance, month,
             total_files, filename, created_at)
         VALUES ($1, $2, $3, $4, 'pending', $5, $6, (SELECT id FROM folders WHERE id = $7), $8, $9, $10, $11, $12, $13)
         RETURNING *",
    )
    .bind(Uuid::now_v7())
    .bind(new.account_id)
    .bind(new.job_type)
    .bind(&new.tool)
    .bind(new.lane)
    .bind(new.saves)
    .bind(new.folder_id)
    .bind(new.archives)
    .bind(Json(new.allowance))
    .bind(month)
    .bind(i64::try_from(new.items.len()).unwrap_or(i64::MAX))
    .bind(first_name(new))
    .bind(now_ms)
    .fetch_one(tx)
    .await?)
}

fn first_name(new: &NewJob) -> &str {
    let first = new.items.first().and_then(|item| item.inputs.first());
    first.map_or("", |input| &input.filename)
}

async fn insert_item(
    tx: &mut Tx<'_>,
    job_id: Uuid,
    position: i64,
    item: &NewItem,
) -> Result<(), Error> {
    let first = item
        .inputs
        .first()
        .ok_or_else(|| Error::Internal("an item of a job needs at least one input".into()))?;
    let id = Uuid::now_v7();
    query(
        "INSERT INTO job_files (id, job_id, position, operation, operations, state, original_name, original_size,
             source_file_id)
         VALUES ($1, $2, $3, $4, $5, 'pending', $6, $7, (SELECT id FROM files WHERE id = $8))",
    )
    .bind(id)
    .bind(job_id)
    .bind(position)
    .bind(Json(&item.operation))
    .bind(i64::try_from(item.operations).unwrap_or(i64::MAX))
    .bind(&first.filename)
    .bind(item.inputs.iter().map(|input| input.size).sum::<i64>())
    .bind(item.source_file_id)
    .execute(tx)
    .await?;
    for (number, input) in item.inputs.iter().enumerate() {
        query("INSERT INTO job_inputs (job_file_id, number, blob, filename, size, member) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(id)
            .bind(i64::try_from(number).unwrap_or(i64::MAX))
            .bind(input.blob)
            .bind(&input.filename)
            .bind(input.size)
            .bind(input.member)
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// Returns a job; `Error::NotFound` for an unknown id and for another account's.
pub async fn get(db: &mut impl Connection, account_id: Uuid, id: Uuid) -> Result<Job, Error> {
    query_as("SELECT * FROM jobs WHERE id = $1 AND account_id = $2")
        .bind(id)
        .bind(account_id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("job"))
}

/// Returns a job of any account, for actors.
pub async fn by_id(db: &mut impl Connection, id: Uuid) -> Result<Job, Error> {
    query_as("SELECT * FROM jobs WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("job"))
}

/// The job's items in the order of the request.
pub async fn items(db: &mut impl Connection, job_id: Uuid) -> Result<Vec<Item>, Error> {
    Ok(
        query_as("SELECT * FROM job_files WHERE job_id = $1 ORDER BY position")
            .bind(job_id)
            .fetch_all(db)
            .await?,
    )
}

/// The job's first items of that state in the order of the request, at most `limit`.
pub async fn items_of_state(
    db: &mut impl Connection,
    job_id: Uuid,
    state: ItemState,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    Ok(query_as(
        "SELECT * FROM job_files WHERE job_id = $1 AND state = $2 ORDER BY position LIMIT $3",
    )
    .bind(job_id)
    .bind(state)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all(db)
    .await?)
}

/// Counts the items of its job before this one. Stays the same once the job's archives are opened.
pub async fn index_of(db: &mut impl Connection, item: &Item) -> Result<u64, Error> {
    let before: i64 =
        query_scalar("SELECT count(*) FROM job_files WHERE job_id = $1 AND position < $2")
            .bind(item.job_id)
            .bind(item.position)
            .fetch_one(db)
            .await?;
    Ok(u64::try_from(before).unwrap_or(0))
}

/// Returns an item, for a download of its result. `Error::NotFound` when there is none.
pub async fn item(db: &mut impl Connection, id: Uuid) -> Result<Item, Error> {
    query_as("SELECT * FROM job_files WHERE id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Error::NotFound("result"))
}

/// Returns the inputs of an item, in the order of its operation; empty once the job has ended.
pub async fn inputs(db: &mut impl Connection, item_id: Uuid) -> Result<Vec<Input>, Error> {
    Ok(query_as(
        "SELECT blob, filename, size, member FROM job_inputs WHERE job_file_id = $1 ORDER BY number",
    )
    .bind(item_id)
    .fetch_all(db)
    .await?)
}

/// Filter of jobs; `None`: any.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    pub state: Option<JobState>,
    pub job_type: Option<JobType>,
    /// The row of the operation table.
    pub tool: Option<String>,
    /// Made at this time or later.
    pub since: Option<i64>,
}

/// The account's jobs that pass the filter, newest first, `offset` rows after the page's start.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &JobFilter,
    page: Page,
    offset: u32,
) -> Result<Vec<Job>, Error> {
    let mut list = Builder::new("SELECT * FROM jobs");
    push_filter(&mut list, account_id, filter);
    let (created_at, id) = page.before();
    list.push(" AND (created_at, id) < (")
        .push_bind(created_at)
        .push(", ")
        .push_bind(id)
        .push(") ORDER BY created_at DESC, id DESC LIMIT ")
        .push_bind(page.limit)
        .push(" OFFSET ")
        .push_bind(offset);
    Ok(list.build_query_as().fetch_all(db).await?)
}

/// The type names the index where there is one, else the state.
fn push_filter(list: &mut Builder, account_id: Uuid, filter: &JobFilter) {
    list.push(" WHERE account_id = ").push_bind(account_id);
    if let Some(job_type) = filter.job_type {
        list.push(" AND job_type = ").push_bind(job_type);
    }
    if let Some(state) = filter.state {
        let is_second = filter.job_type.is_some();
        list.push(if is_second {
            " AND +state = "
        } else {
            " AND state = "
        })
        .push_bind(state);
    }
    if let Some(tool) = &filter.tool {
        list.push(" AND tool = ").push_bind(tool.clone());
    }
    if let Some(since) = filter.since {
        list.push(" AND created_at >= ").push_bind(since);
    }
}

/// Counts the account's jobs that pass the filter.
pub async fn count(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &JobFilter,
) -> Result<u64, Error> {
    let mut counting = Builder::new("SELECT count(*) FROM jobs");
    push_filter(&mut counting, account_id, filter);
    let count: i64 = counting.build_query_scalar().fetch_one(db).await?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Jobs of all accounts by state, for metrics; a state without jobs is missing.
pub async fn count_by_state(db: &mut impl Connection) -> Result<Vec<(JobState, i64)>, Error> {
    Ok(query_as("SELECT state, count(*) FROM jobs GROUP BY state")
        .fetch_all(db)
        .await?)
}
