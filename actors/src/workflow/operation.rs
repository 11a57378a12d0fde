//! Media operation of a workflow run: buffer to worker's task to next buffer; `inspect`, a watermark's own image
//! (`watermarkFile`).

use std::{fs::File, sync::Arc};

use serde_json::Value;
use sluice_media::{
    operation::{Inspect, Operation, OperationInput},
    task::{Done, Failure, FailureCode, Task},
    workflow::Node,
};
use sluice_store::{Error as StoreError, files, workflows::Run};
use uuid::Uuid;

use super::{
    WorkflowServices,
    buffer::{Buffer, Place},
};
use crate::{
    compute::{Assignment, Output, count_outputs},
    durable::{
        input::known_format,
        step_error::StepError,
        workers::{self, first_output},
    },
};

/// The field of a watermark's own image: the id of a stored file.
const WATERMARK_FILE: &str = "watermarkFile";

/// Destination of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// The run's scratch folder, at that position of the path.
    Scratch(u32),
    /// A blob: it is kept next.
    Blob,
}

/// Does the operation on the buffer, and returns the next buffer.
pub(super) async fn perform(
    services: &WorkflowServices,
    run: &Run,
    node: &Node,
    operation: &Operation,
    buffer: &mut Buffer,
    destination: Destination,
) -> Result<Buffer, StepError> {
    let (source, file) = buffer.source(services).await?;
    let (filename, format) = operation.output(&source);
    let (mut sources, mut files) = (vec![source], vec![file]);
    if let Some((watermark, file)) = watermark_of(services, run, node, operation).await? {
        sources.push(watermark);
        files.push(file);
    }
    let task = operation.task(&sources)?;
    let pixels = buffer.pixels();
    let (place, file, facts) = match destination {
        Destination::Scratch(position) => {
            let scratch = services.store.blobs().scratch(run.id, position).await?;
            let output = scratch.file()?;
            let done = task_done(services, run, task, files, Some(output), pixels).await?;
            let (scratched, file) = scratch.seal().await?;
            (Place::Scratch(scratched), Some(file), first_output(done)?)
        }
        Destination::Blob => {
            let mut spool = services.store.blobs().spool().await?;
            let output = spool.file()?;
            let done = task_done(services, run, task, files, Some(output), pixels).await?;
            let facts = first_output(done)?;
            (Place::Sealed(Arc::new(spool.seal().await?)), None, facts)
        }
    };
    Ok(Buffer::made(filename, format, &facts, place, file))
}

/// Returns the facts of the buffer as `inspect` shows them, and those that conditions use.
pub(super) async fn inspect(
    services: &WorkflowServices,
    run: &Run,
    buffer: &mut Buffer,
) -> Result<(Value, files::Facts), StepError> {
    let (source, file) = buffer.source(services).await?;
    let task = Operation::Inspect(Inspect).task(&[source])?;
    let done = task_done(services, run, task, vec![file], None, None).await?;
    let (width, height) = done.shown_size().unzip();
    let facts = files::Facts {
        width,
        height,
        duration_ms: done.duration_ms().and_then(|ms| i64::try_from(ms).ok()),
    };
    Ok((done.facts(), facts))
}

/// Runs a task, of whose results the first is taken: a node passes on one file.
async fn task_done(
    services: &WorkflowServices,
    run: &Run,
    task: Task,
    inputs: Vec<Arc<File>>,
    output: Option<File>,
    pixels: Option<u64>,
) -> Result<Done, StepError> {
    let (_task, follow) = services.followers.task(run.id, run.id);
    let (mut outputs, mut beside) = (Vec::from_iter(output), Vec::new());
    for _ in outputs.len()..count_outputs(&task) {
        let mut spool = services.store.blobs().spool().await?;
        outputs.push(spool.file()?);
        beside.push(spool);
    }
    let assignment = Assignment {
        account_id: run.account_id,
        task,
        inputs,
        output: Output::Files(outputs.into()),
        limits: services.workers.limits(),
        follow,
        pixels,
    };
    workers::run(&*services.workers, run.lane, assignment).await
}

/// Opens a watermark's own image, a stored file of the account.
async fn watermark_of(
    services: &WorkflowServices,
    run: &Run,
    node: &Node,
    operation: &Operation,
) -> Result<Option<(OperationInput, Arc<File>)>, StepError> {
    if operation.row().field(WATERMARK_FILE).is_none() {
        return Ok(None);
    }
    let Some((_, id)) = node
        .stored_files()
        .find(|(field, _)| *field == WATERMARK_FILE)
    else {
        return Ok(None);
    };
    let stored = files::get(&mut services.store.read().await?, run.account_id, id).await;
    let stored = match stored {
        Ok(stored) => stored,
        Err(StoreError::NotFound(_)) => return Err(no_watermark(id).into()),
        Err(error) => return Err(error.into()),
    };
    let file = Arc::new(services.store.blobs().open(&stored.blob).await?);
    let format = known_format(&file, &stored.filename)?;
    Ok(Some((OperationInput::new(format, stored.filename), file)))
}

fn no_watermark(id: Uuid) -> Failure {
    Failure::new(
        FailureCode::Impossible,
        format!(
            "{WATERMARK_FILE} names {id}, which is no stored file: upload the image and give its id"
        ),
    )
}
