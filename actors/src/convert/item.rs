//! One file of a job: its inputs as descriptors, its operation as a worker's task, its result as a sealed blob.

use std::{fs::File, os::unix::fs::FileExt as _, sync::Arc, time::Duration};

use sluice_media::{
    format::Format,
    operation::{Operation, Source},
    task::{Failure, FailureCode, OutputFacts, Task},
};
use sluice_store::{
    Error as StoreError, Tx,
    blob::{HEAD_BYTES, Sealed, Spool},
    blobs,
    files::{self, NewFile, Role},
    folders,
    jobs::{self, Input, Item, Job, NewResult},
    lineage::{self, Derived, DerivedKind, Lineage},
    storage,
    work::{Lane as Turn, Lease},
};

use super::{Services, archive, batch::Stop};
use crate::compute::{self, Assignment, Lane, Output};

/// While all workers are busy the next try comes after this.
const BUSY_PAUSE: Duration = Duration::from_millis(250);

/// What became of a file.
#[derive(Debug)]
pub(super) enum Outcome {
    Made {
        result: Sealed,
        filename: String,
        format: Format,
        facts: OutputFacts,
    },
    /// There is no result but what was found out.
    Told(serde_json::Value),
    Failed {
        code: String,
        message: String,
    },
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Failed {
            code: code_of(failure.code),
            message: failure.message,
        }
    }
}

/// The stable word of a failure, as it is serialised.
fn code_of(code: FailureCode) -> String {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "internal".to_owned(),
    }
}

/// Why a file was not done.
pub(super) enum Setback {
    /// It cannot be done; trying again gives the same.
    Failed(Failure),
    /// The job cannot go on now.
    Stop(Stop),
}

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<StoreError> for Setback {
    /// Bytes that are gone do not come back, and spoil their own file only.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(what) => Self::Failed(Failure::new(
                FailureCode::Internal,
                format!("the {what} of this file is gone"),
            )),
            other => Self::Stop(other.into()),
        }
    }
}

/// Does an item's operation, whatever comes of it.
pub(super) async fn perform(services: &Services, job: &Job, item: &Item) -> Result<Outcome, Stop> {
    match made(services, job, item).await {
        Ok(outcome) => Ok(outcome),
        Err(Setback::Failed(failure)) => Ok(failure.into()),
        Err(Setback::Stop(stop)) => Err(stop),
    }
}

async fn made(services: &Services, job: &Job, item: &Item) -> Result<Outcome, Setback> {
    let operation = operation_of(item)?;
    let inputs = inputs_of(services, item).await?;
    if operation.is_packing() {
        return Ok(archive::of_inputs(services, &inputs).await?);
    }
    let mut opened = Vec::new();
    for input in &inputs {
        opened.push(Opened::open(services, job, input).await?);
    }
    let sources: Vec<Source> = opened.iter().map(|input| input.source.clone()).collect();
    let task = operation.task(&sources)?;
    let files = opened.iter().map(|input| input.file.clone()).collect();
    if let Task::Inspect { .. } = task {
        let done = run(services, job, task, files, None).await?;
        return Ok(Outcome::Told(serde_json::json!(done.image)));
    }
    let mut spool = services.store.blobs().spool().await?;
    let done = run(services, job, task, files, Some(&mut spool)).await?;
    let facts =
        done.outputs.into_iter().next().ok_or_else(|| {
            Failure::new(FailureCode::Internal, "a task that makes a file made none")
        })?;
    let (filename, format) = operation.output(&sources[0]);
    Ok(Outcome::Made {
        result: spool.seal().await?,
        filename,
        format,
        facts,
    })
}

/// The operation of an item's row.
pub(super) fn operation_of(item: &Item) -> Result<Operation, Failure> {
    serde_json::from_value(item.operation.clone()).map_err(|_| {
        Failure::new(
            FailureCode::Internal,
            "the operation was written by another version of the service",
        )
    })
}

/// What an item reads.
pub(super) async fn inputs_of(services: &Services, item: &Item) -> Result<Vec<Input>, StoreError> {
    jobs::inputs(&mut services.store.read().await?, item.id).await
}

/// An input with its format by its bytes.
struct Opened {
    source: Source,
    file: Arc<File>,
    /// The unpacked member of an archive, which is gone with this.
    _member: Option<Spool>,
}

impl Opened {
    async fn open(services: &Services, job: &Job, input: &Input) -> Result<Self, Setback> {
        let blob = Arc::new(services.store.blobs().open(&input.blob).await?);
        let (file, member) = match input.member {
            None => (blob, None),
            Some(index) => {
                let mut spool = services.store.blobs().spool().await?;
                let task = Task::ExtractMember { index };
                run(services, job, task, vec![blob], Some(&mut spool)).await?;
                (Arc::new(spool.reader().await?), Some(spool))
            }
        };
        let format = sniff(&file, &input.filename)?.ok_or_else(|| {
            Failure::new(
                FailureCode::UnsupportedType,
                format!("{} is of no type that is known", shown(&input.filename)),
            )
        })?;
        Ok(Self {
            source: Source::new(format, input.filename.clone()),
            file,
            _member: member,
        })
    }
}

/// The format of a file by its first bytes, which the page cache has: uploads were just written.
pub(super) fn sniff(file: &File, filename: &str) -> Result<Option<Format>, Failure> {
    let mut head = vec![0; HEAD_BYTES];
    let mut length = 0;
    while length < head.len() {
        match file.read_at(&mut head[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(_) => {
                return Err(Failure::new(
                    FailureCode::Internal,
                    "an upload cannot be read",
                ));
            }
        }
    }
    Ok(Format::recognise(&head[..length], filename))
}

/// A name in a message.
pub(super) fn shown(filename: &str) -> String {
    filename.chars().take(80).collect()
}

/// Runs a task in a worker, waiting for its turn while all are busy.
pub(super) async fn run(
    services: &Services,
    job: &Job,
    task: Task,
    inputs: Vec<Arc<File>>,
    mut output: Option<&mut Spool>,
) -> Result<sluice_media::task::Done, Setback> {
    let lane = match job.lane {
        Turn::Interactive => Lane::Interactive,
        Turn::Batch => Lane::Batch,
    };
    loop {
        let outputs = match &mut output {
            Some(spool) => vec![spool.file()?],
            None => Vec::new(),
        };
        let assignment = Assignment {
            task: task.clone(),
            inputs: inputs.clone(),
            output: Output::Files(outputs),
            limits: services.workers.limits(),
        };
        match services.workers.run(lane, assignment).await {
            Ok(finished) => return Ok(finished.done),
            Err(compute::Error::Failed(failure)) if failure.code == FailureCode::NoSpace => {
                return Err(Setback::Stop(Stop::Later(failure.message)));
            }
            Err(compute::Error::Failed(failure)) => return Err(failure.into()),
            Err(compute::Error::Busy) => tokio::time::sleep(BUSY_PAUSE).await,
            Err(compute::Error::Unavailable(reason)) => {
                return Err(Setback::Stop(Stop::Later(reason)));
            }
        }
    }
}

impl Outcome {
    /// The error code of a failure.
    pub(super) fn code(&self) -> Option<String> {
        match self {
            Self::Failed { code, .. } => Some(code.clone()),
            _ => None,
        }
    }

    /// Records it under the lease; the job as it is then. `Error::OverQuota` when the result was to be stored and the account's
    /// storage is full.
    pub(super) async fn record(
        &self,
        tx: &mut Tx<'_>,
        lease: &Lease,
        job: &Job,
        item: &Item,
        now_ms: i64,
    ) -> Result<Job, StoreError> {
        match self {
            Self::Failed { code, message } => {
                jobs::fail_item(tx, lease, item.id, code, message).await
            }
            Self::Told(facts) => {
                let result = NewResult {
                    filename: item.original_name.clone(),
                    mime_type: "application/json".to_owned(),
                    facts: Some(facts.clone()),
                    ..NewResult::default()
                };
                jobs::complete_item(tx, lease, item.id, result).await
            }
            Self::Made {
                result,
                filename,
                format,
                facts,
            } => {
                blobs::record(tx, result, now_ms).await?;
                let mut new = NewResult {
                    blob: Some(result.blob().hash),
                    filename: filename.clone(),
                    mime_type: format.mime().to_owned(),
                    size: result.blob().size,
                    width: facts.width,
                    height: facts.height,
                    applied_quality: facts.applied_quality,
                    facts: None,
                    stored_file_id: None,
                };
                note_lineage(tx, item, DerivedKind::Conversion, item.id, now_ms).await?;
                if job.saves {
                    new.stored_file_id = Some(store(tx, job, item, &new, now_ms).await?);
                }
                jobs::complete_item(tx, lease, item.id, new).await
            }
        }
    }
}

/// Makes a file of the result, in the folder asked for or, when that is gone, at the top.
async fn store(
    tx: &mut Tx<'_>,
    job: &Job,
    item: &Item,
    result: &NewResult,
    now_ms: i64,
) -> Result<uuid::Uuid, StoreError> {
    storage::check(tx, job.account_id, result.size, job.allowance.storage_bytes).await?;
    let folder_id = match job.folder_id {
        Some(folder_id) => match folders::get(tx, job.account_id, folder_id).await {
            Ok(folder) => Some(folder.id),
            Err(StoreError::NotFound(_)) => None,
            Err(error) => return Err(error),
        },
        None => None,
    };
    let new = NewFile {
        folder_id,
        filename: result.filename.clone(),
        mime_type: result.mime_type.clone(),
        size_bytes: result.size,
        blob: result
            .blob
            .ok_or_else(|| StoreError::Internal("only a result with bytes is stored".into()))?,
        role: Role::Converted,
        width: result.width,
        height: result.height,
        duration_ms: None,
    };
    let file = files::create(tx, job.account_id, new, now_ms).await?;
    note_lineage(tx, item, DerivedKind::File, file.id, now_ms).await?;
    Ok(file.id)
}

async fn note_lineage(
    tx: &mut Tx<'_>,
    item: &Item,
    kind: DerivedKind,
    id: uuid::Uuid,
    now_ms: i64,
) -> Result<(), StoreError> {
    let derived = Derived {
        kind,
        id: id.to_string(),
    };
    lineage::record(
        tx,
        Lineage {
            derived_kind: derived.kind,
            derived_id: derived.id,
            source_file_id: item.source_file_id,
            operation: item.operation.clone(),
            created_at: now_ms,
        },
    )
    .await
}
