//! One file of a conversion job: its inputs, its operation as a worker's task, its result as a blob, its storing in the
//! account (`storage_used_up`).

use std::{fs::File, slice, sync::Arc};

use sluice_media::{
    format::Format,
    operation::{Operation, OperationInput},
    task::{Done, Failure, OutputFacts, Task},
};
use sluice_store::{
    Error as StoreError, Tx,
    blob::{Sealed, Spool},
    blobs,
    files::{self, NewFile, Role},
    jobs::{self, Input, Item, Job, NewAttachment, NewResult},
    lineage::{Derived, DerivedKind},
    work::Lease,
};

use super::{ConversionServices, archive};
use crate::{
    compute::{Assignment, Follow, Output, count_outputs},
    durable::{
        input::known_format,
        step_error::{OwnerError, StepError, code_of},
        stored::{UnstoredResult, keep, note_lineage},
        workers::{self, first_output},
    },
};

/// Result of a file.
#[derive(Debug)]
pub(super) enum ItemOutcome {
    Made {
        result: Sealed,
        filename: String,
        format: Format,
        facts: OutputFacts,
        attachment: Option<Box<Attached>>,
    },
    /// There is no result but what was found out.
    Facts(serde_json::Value),
    Failed {
        code: String,
        message: String,
    },
}

/// A second file of a result.
#[derive(Debug)]
pub(super) struct Attached {
    result: Sealed,
    filename: String,
    mime_type: &'static str,
}

impl From<Failure> for ItemOutcome {
    fn from(failure: Failure) -> Self {
        Self::Failed {
            code: code_of(failure.code),
            message: failure.message,
        }
    }
}

/// Does an item's operation; its failure is an outcome, too.
pub(super) async fn perform(
    services: &ConversionServices,
    job: &Job,
    item: &Item,
) -> Result<ItemOutcome, OwnerError> {
    match made(services, job, item).await {
        Ok(outcome) => Ok(outcome),
        Err(StepError::Failed(failure)) => Ok(failure.into()),
        Err(StepError::Stop(stop)) => Err(stop),
    }
}

async fn made(
    services: &ConversionServices,
    job: &Job,
    item: &Item,
) -> Result<ItemOutcome, StepError> {
    let operation = operation_of(item)?;
    let inputs = inputs_of(services, item).await?;
    if operation.is_packing() {
        return Ok(archive::of_inputs(services, &inputs).await?);
    }
    let mut opened = Vec::new();
    for input in &inputs {
        opened.push(Opened::open(services, job, input).await?);
    }
    let sources: Vec<OperationInput> = opened.iter().map(|input| input.source.clone()).collect();
    let task = operation.task(&sources)?;
    let inputs = opened.iter().map(|input| input.file.clone()).collect();
    let mut spools = Vec::new();
    for _ in 0..count_outputs(&task) {
        spools.push(services.store.blobs().spool().await?);
    }
    let pixels = pixels_of(services, job, item).await?;
    let (_task, follow) = services.followers.task(job.id, item.id);
    let done = run(services, job, task, inputs, &mut spools, (follow, pixels)).await?;
    let mut spools = spools.into_iter();
    let Some(spool) = spools.next() else {
        return Ok(ItemOutcome::Facts(done.facts()));
    };
    let facts = first_output(done)?;
    let (filename, format) = operation.output(&sources[0]);
    let attachment = match operation.text_output(&sources[0]).zip(spools.next()) {
        Some((text, spool)) => Some(Box::new(Attached {
            result: spool.seal().await?,
            filename: text.filename,
            mime_type: text.mime,
        })),
        None => None,
    };
    Ok(ItemOutcome::Made {
        result: spool.seal().await?,
        filename,
        format,
        facts,
        attachment,
    })
}

/// Returns the pixels of a frame of a stored source, as its row has them.
async fn pixels_of(
    services: &ConversionServices,
    job: &Job,
    item: &Item,
) -> Result<Option<u64>, StoreError> {
    let Some(id) = item.source_file_id else {
        return Ok(None);
    };
    let mut reader = services.store.read().await?;
    Ok(match files::get(&mut reader, job.account_id, id).await {
        Ok(file) => file
            .width
            .zip(file.height)
            .map(|(width, height)| u64::from(width) * u64::from(height)),
        Err(StoreError::NotFound(_)) => None,
        Err(error) => return Err(error),
    })
}

/// Reads the operation of an item's row.
pub(super) fn operation_of(item: &Item) -> Result<Operation, Failure> {
    serde_json::from_value(item.operation.clone()).map_err(|_| {
        Failure::internal("the operation was written by another version of the service")
    })
}

/// Reads the inputs of an item.
pub(super) async fn inputs_of(
    services: &ConversionServices,
    item: &Item,
) -> Result<Vec<Input>, StoreError> {
    jobs::inputs(&mut services.store.read().await?, item.id).await
}

/// An input with its format by its bytes.
struct Opened {
    source: OperationInput,
    file: Arc<File>,
    /// The unpacked member of an archive, which is gone with this.
    _member: Option<Spool>,
}

impl Opened {
    async fn open(
        services: &ConversionServices,
        job: &Job,
        input: &Input,
    ) -> Result<Self, StepError> {
        let blob = Arc::new(services.store.blobs().open(&input.blob).await?);
        let (file, member) = match input.member {
            None => (blob, None),
            Some(index) => {
                let mut spool = services.store.blobs().spool().await?;
                let task = Task::ExtractMember { index };
                let spools = slice::from_mut(&mut spool);
                run(services, job, task, vec![blob], spools, Default::default()).await?;
                (Arc::new(spool.reader().await?), Some(spool))
            }
        };
        let format = known_format(&file, &input.filename)?;
        Ok(Self {
            source: OperationInput::new(format, input.filename.clone()),
            file,
            _member: member,
        })
    }
}

/// Runs a task of a job in a worker, which writes to the spools.
pub(super) async fn run(
    services: &ConversionServices,
    job: &Job,
    task: Task,
    inputs: Vec<Arc<File>>,
    spools: &mut [Spool],
    (follow, pixels): (Follow, Option<u64>),
) -> Result<Done, StepError> {
    let outputs = spools.iter_mut().map(Spool::file);
    let assignment = Assignment {
        account_id: job.account_id,
        task,
        inputs,
        output: Output::Files(outputs.collect::<Result<_, _>>()?),
        limits: services.workers.limits(),
        follow,
        pixels,
    };
    workers::run(&*services.workers, job.lane, assignment).await
}

impl ItemOutcome {
    /// Returns the error code of a failure.
    pub(super) fn code(&self) -> Option<String> {
        match self {
            Self::Failed { code, .. } => Some(code.clone()),
            _ => None,
        }
    }

    /// Returns the message of a failure.
    pub(super) fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Records it under the lease, and returns the job as it is then. `Error::OverQuota` when the result was to be stored
    /// and the account's storage is full.
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
            Self::Facts(facts) => {
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
                attachment,
            } => {
                blobs::record(tx, result, now_ms).await?;
                let mut new = NewResult {
                    blob: Some(result.blob().hash),
                    filename: filename.clone(),
                    mime_type: format.mime().to_owned(),
                    size: result.blob().size,
                    width: facts.width,
                    height: facts.height,
                    duration_ms: facts.duration_ms,
                    applied_quality: facts.applied_quality,
                    facts: None,
                    stored_file_id: None,
                    attachment: None,
                };
                if let Some(attached) = attachment {
                    new.attachment = Some(attached.record(tx, now_ms).await?);
                }
                let derived = Derived {
                    kind: DerivedKind::Conversion,
                    id: item.id.to_string(),
                };
                let operation = item.operation.clone();
                note_lineage(tx, derived, item.source_file_id, operation, now_ms).await?;
                if job.saves {
                    store(tx, job, item, &mut new, now_ms).await?;
                }
                jobs::complete_item(tx, lease, item.id, new).await
            }
        }
    }
}

impl Attached {
    async fn record(&self, tx: &mut Tx<'_>, now_ms: i64) -> Result<NewAttachment, StoreError> {
        blobs::record(tx, &self.result, now_ms).await?;
        let blob = self.result.blob();
        Ok(NewAttachment {
            blob: blob.hash,
            filename: self.filename.clone(),
            mime_type: self.mime_type.to_owned(),
            size: blob.size,
            stored_file_id: None,
        })
    }
}

/// Makes a file of the result, and of its attachment.
async fn store(
    tx: &mut Tx<'_>,
    job: &Job,
    item: &Item,
    result: &mut NewResult,
    now_ms: i64,
) -> Result<(), StoreError> {
    let duration_ms = result.duration_ms.map(i64::try_from);
    let file = NewFile {
        folder_id: job.folder_id,
        filename: result.filename.clone(),
        mime_type: result.mime_type.clone(),
        size_bytes: result.size,
        blob: result
            .blob
            .ok_or_else(|| StoreError::Internal("only a result with bytes is stored".into()))?,
        role: Role::Converted,
        width: result.width,
        height: result.height,
        duration_ms: duration_ms.and_then(Result::ok),
        generation: 0,
    };
    let beside = result.attachment.as_ref().map(|attachment| NewFile {
        filename: attachment.filename.clone(),
        mime_type: attachment.mime_type.clone(),
        size_bytes: attachment.size,
        blob: attachment.blob,
        width: None,
        height: None,
        duration_ms: None,
        ..file.clone()
    });
    let keeping = |file| UnstoredResult {
        account_id: job.account_id,
        file,
        limit_bytes: job.allowance.storage_bytes,
        source_file_id: item.source_file_id,
        operation: item.operation.clone(),
    };
    result.stored_file_id = Some(keep(tx, keeping(file), now_ms).await?.id);
    if let Some((attachment, file)) = result.attachment.as_mut().zip(beside) {
        attachment.stored_file_id = Some(keep(tx, keeping(file), now_ms).await?.id);
    }
    Ok(())
}
