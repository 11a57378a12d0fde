//! From a request to a job: `files_per_batch`, plan's operations, sizes and types, `saveToStorage`, `folderId`, `Idempotency-Key`.
//! Everything is read and checked before anything is charged or stored.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sluice_media::operation::{self, Operation, Params, Row};
use sluice_store::{
    blob::Sealed,
    folders,
    idempotency::Idempotency,
    jobs::{Job, JobType, NewItem, NewJob, Submitted},
    now_ms, operations as meter,
    work::Lane,
};
use uuid::Uuid;

use crate::{
    application::{
        caller::{Caller, Write},
        context::JobContext,
        error::ApiError,
        files::request::id_or_top,
        jobs::material::{Material, Settled, is_many, judge},
        part::SizeLimits,
        reached::Reached,
        source_url,
    },
    config::Plan,
};

/// `Retry-After` while no worker runs.
const WORKERS_RETRY_AFTER_S: u64 = 10;

/// The caller and its plan.
pub(crate) struct Submitter<'a> {
    pub(crate) context: &'a JobContext,
    reached: &'a Reached,
    account_id: Uuid,
    pub(crate) plan: Plan,
    /// Default of `saveToStorage`.
    saves: bool,
}

/// A checked request for a job.
pub(crate) struct JobRequest {
    pub row: &'static Row,
    pub job_type: JobType,
    pub params: Params,
    pub files: Vec<Material>,
    /// Addresses of further files, which come after `files`.
    pub sources: Vec<String>,
    /// A watermark's own image.
    pub watermark: Option<Material>,
    /// True when the caller waits for the answer.
    pub is_waited_for: bool,
    /// `createArchive`.
    pub archives: bool,
    pub idempotency_key: Option<String>,
    /// Overrides `saveToStorage` and `folderId`.
    pub beside: Option<Option<Uuid>>,
}

impl<'a> Submitter<'a> {
    pub(crate) fn new(
        context: &'a JobContext,
        caller: &Caller<Write>,
        reached: &'a Reached,
    ) -> Self {
        Self {
            context,
            reached,
            account_id: caller.account_id(),
            plan: caller.plan(context),
            saves: caller.is_session(),
        }
    }

    /// Rejects a request that would wait for workers that do not run. A job waits for them as a row.
    fn check_workers(&self, wanted: &JobRequest) -> Result<(), ApiError> {
        match self.context.conversions.refused() {
            Some(reason) if wanted.is_waited_for => {
                tracing::warn!(reason, "a conversion is rejected: workers do not run");
                Err(ApiError::Unavailable {
                    what: "media processing",
                    retry_after_s: WORKERS_RETRY_AFTER_S,
                })
            }
            _ => Ok(()),
        }
    }

    /// Judges the request, charges it and commits its job; `true` with a job that an earlier request made.
    pub(crate) async fn submit(&self, mut wanted: JobRequest) -> Result<(Job, bool), ApiError> {
        let operations = self.operations(&wanted)?;
        if !wanted.sources.is_empty() {
            // Checks that need no files come before the fetch.
            self.check_workers(&wanted)?;
            self.storing(&wanted).await?;
            self.check_operations_left(&wanted).await?;
            self.fetch(&mut wanted).await?;
        }
        self.check_files(&wanted, &operations)?;
        self.check_workers(&wanted)?;
        let (saves, folder_id) = self.storing(&wanted).await?;
        let key = wanted.idempotency_key.clone();
        let tool = wanted.row.tool;
        let mut new = NewJob {
            account_id: self.account_id,
            job_type: wanted.job_type,
            tool: tool.to_owned(),
            lane: lane_of(&wanted, &operations),
            saves,
            folder_id,
            archives: wanted.archives,
            allowance: self.plan.allowance(),
            items: Vec::new(),
            idempotency: None,
        };
        let (items, uploads) = settle(wanted, operations).await?;
        new.items = items;
        new.idempotency = key.map(|key| Idempotency {
            key,
            fingerprint: fingerprint(&new),
        });
        match self.context.conversions.submit(new, uploads).await? {
            Submitted::New(job) => Ok((job, false)),
            Submitted::Known(job) => Ok((job, true)),
            Submitted::UsedUp { used } => Err(self.used_up(used)),
        }
    }

    /// Rejects a request when the month's operations are used up. One with an idempotency key may be a repeat, which
    /// costs nothing.
    async fn check_operations_left(&self, wanted: &JobRequest) -> Result<(), ApiError> {
        let most = self.plan.operations_per_month;
        if most == 0 || wanted.idempotency_key.is_some() {
            return Ok(());
        }
        let mut db = self.context.store.read().await?;
        let used = meter::used(&mut db, self.account_id, now_ms()).await?;
        match used.operations < most {
            true => Ok(()),
            false => Err(self.used_up(used.operations)),
        }
    }

    fn used_up(&self, used: u64) -> ApiError {
        ApiError::OperationsUsedUp {
            used,
            limit: self.plan.operations_per_month,
            upgrade_url: Some(self.reached.upgrade_url(self.context)),
        }
    }

    /// Returns one operation for each file, or one for all files that it joins.
    fn operations(&self, wanted: &JobRequest) -> Result<Vec<Operation>, ApiError> {
        let count = wanted.files.len() + wanted.sources.len();
        let most = self.plan.files_per_batch as usize;
        if count == 0 {
            return Err(invalid!(
                "a file is missing: send it as the form's field `file`, several as `files`, or name \
                 its address in `sourceUrl`"
            ));
        }
        if count > most {
            return Err(invalid!(
                "at most {most} files may be sent at once (files_per_batch of the plan), got {count}"
            ));
        }
        let operations = operation::parse_each(wanted.row.tool, &wanted.params, count)
            .map_err(|error| ApiError::Invalid(error.message))?;
        let operations = joined(operations);
        check_count(wanted.row, &operations, count)?;
        Ok(operations)
    }

    /// Fetches the files at the request's addresses and adds them after those that came with it.
    async fn fetch(&self, wanted: &mut JobRequest) -> Result<(), ApiError> {
        let sources = std::mem::take(&mut wanted.sources);
        let fetched = source_url::fetch(
            &self.context.files,
            source_url::ONE,
            &sources,
            SizeLimits::of(&self.plan),
        )
        .await?;
        wanted
            .files
            .extend(fetched.into_iter().map(Material::Uploaded));
        Ok(())
    }

    /// Checks sizes and types.
    fn check_files(&self, wanted: &JobRequest, operations: &[Operation]) -> Result<(), ApiError> {
        for file in wanted.files.iter().chain(&wanted.watermark) {
            let format = file.source().ok().map(|source| source.format);
            let limit = SizeLimits::of(&self.plan).of_format(format);
            limit.check(file.filename(), file.size_bytes())?;
        }
        check_types(wanted, operations)
    }

    async fn storing(&self, wanted: &JobRequest) -> Result<(bool, Option<Uuid>), ApiError> {
        if let Some(folder_id) = wanted.beside {
            return Ok((true, folder_id));
        }
        let saves = flag(&wanted.params, "saveToStorage")?.unwrap_or(self.saves);
        let folder_id = match text(&wanted.params, "folderId") {
            Some(folder) => id_or_top("folderId", folder)?,
            None => None,
        };
        if let Some(folder_id) = folder_id {
            folders::get(
                &mut self.context.store.read().await?,
                self.account_id,
                folder_id,
            )
            .await?;
        }
        Ok((saves, folder_id))
    }
}

/// Keeps one operation where it makes one file of all inputs.
fn joined(mut operations: Vec<Operation>) -> Vec<Operation> {
    if operations.iter().all(Operation::joins) {
        operations.truncate(1);
    }
    operations
}

/// Rejects too few or too many files for an operation that joins them. An archive takes any.
fn check_count(row: &Row, operations: &[Operation], count: usize) -> Result<(), ApiError> {
    let joins = |operation: &Operation| operation.joins() && !operation.is_packing();
    let (least, most) = (row.min_files, row.max_files);
    match operations.iter().any(joins) && !(least..=most).contains(&count) {
        false => Ok(()),
        true => Err(invalid!(
            "{} takes {least} to {most} files, got {count}: send them as `files`, in order",
            row.tool
        )),
    }
}

/// The files of each operation. There are as many operations as files, or one for all of them.
fn groups<'w>(wanted: &'w JobRequest, operations: &[Operation]) -> Vec<Vec<&'w Material>> {
    if operations.len() == 1 {
        return vec![wanted.files.iter().chain(&wanted.watermark).collect()];
    }
    let with_watermark = |file| std::iter::once(file).chain(&wanted.watermark).collect();
    wanted.files.iter().map(with_watermark).collect()
}

/// Rejects a request none of whose files fits; where some do, the others become errors of the answer.
fn check_types(wanted: &JobRequest, operations: &[Operation]) -> Result<(), ApiError> {
    let mut first = None;
    for (operation, files) in operations.iter().zip(groups(wanted, operations)) {
        match judge(operation, &files) {
            Ok(()) => return Ok(()),
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    first.map_or(Ok(()), |failure| Err(failure.into()))
}

/// Returns the lane: one file with a waiting caller is interactive work; everything else is batch work.
fn lane_of(wanted: &JobRequest, operations: &[Operation]) -> Lane {
    match (&wanted.files[..], operations) {
        ([file], [operation]) if wanted.is_waited_for && !is_many(operation, file) => {
            Lane::Interactive
        }
        _ => Lane::Batch,
    }
}

/// Flushes the uploads to the disk and makes the job's items.
async fn settle(
    wanted: JobRequest,
    operations: Vec<Operation>,
) -> Result<(Vec<NewItem>, Vec<Sealed>), ApiError> {
    let (mut items, mut uploads) = (Vec::new(), Vec::new());
    let mut settled = Vec::new();
    for file in wanted.files {
        settled.push(settle_one(file, &mut uploads).await?);
    }
    let watermark = match wanted.watermark {
        Some(file) => Some(settle_one(file, &mut uploads).await?.input),
        None => None,
    };
    let is_joined = operations.len() < settled.len();
    let mut files = settled.into_iter();
    for operation in operations {
        let own: Vec<Settled> = match is_joined {
            true => files.by_ref().collect(),
            false => files.by_ref().take(1).collect(),
        };
        items.push(NewItem {
            operation: serde_json::to_value(&operation).map_err(ApiError::internal)?,
            operations: own.len() as u64,
            source_file_id: own.iter().find_map(|file| file.source_file_id),
            inputs: own
                .into_iter()
                .map(|file| file.input)
                .chain(watermark.clone())
                .collect(),
        });
    }
    Ok((items, uploads))
}

async fn settle_one(file: Material, uploads: &mut Vec<Sealed>) -> Result<Settled, ApiError> {
    let mut settled = file.settle().await?;
    uploads.extend(settled.upload.take());
    Ok(settled)
}

/// Hashes everything that shapes the job and its results.
fn fingerprint(new: &NewJob) -> [u8; 32] {
    let items: Vec<Value> = new
        .items
        .iter()
        .map(|item| {
            let inputs: Vec<_> = item
                .inputs
                .iter()
                .map(|input| (input.blob.to_string(), &input.filename))
                .collect();
            serde_json::json!([item.operation, inputs])
        })
        .collect();
    let all = serde_json::json!([
        new.tool,
        new.job_type.as_str(),
        new.saves,
        new.folder_id,
        new.archives,
        items
    ]);
    Sha256::digest(all.to_string().as_bytes()).into()
}

/// Reads the words true and false, or a JSON boolean.
pub(crate) fn flag(params: &Params, name: &str) -> Result<Option<bool>, ApiError> {
    let rejection = || Err(invalid!("{name} must be true or false"));
    match params.get(name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(Value::String(word)) => match word.trim() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => rejection(),
        },
        Some(_) => rejection(),
    }
}

/// Reads a field that is text.
pub(crate) fn text<'p>(params: &'p Params, name: &str) -> Option<&'p str> {
    params.get(name).and_then(Value::as_str).map(str::trim)
}
