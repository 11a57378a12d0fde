//! `WorkflowRun`: one workflow run from its first unfinished step to its end: steps, log messages, `workflows.step_timeout`,
//! facts in the log.
//!
//! Nothing survives a restart but the row and its journal ([`crate::durable::owner`] holds the task). The work of a step is
//! written in one transaction under the run's lease, so that a kill at any moment neither loses nor doubles a file, a
//! charge or an event:
//!
//! ```text
//!  upload ─ branch ─ resize ─ rename ─ convert ─ storage ─ webhook
//!  └──── one commit ───────┘ └─────────── one commit ───────────┘
//! ```
//!
//! - A step that only reads or names (upload, branch, rename, inspect, webhook) is written with the next change.
//! - A step that makes a buffer is a change. The buffer is a file of the run's scratch folder, which is not flushed: a
//!   resumed run takes the newest one that is as journalled and makes missing ones again.
//! - A buffer that is kept next, as a file or as the run's output, is made as a blob at once and written with that step.
//! - The end is written with the last change.

pub(super) mod ending;
pub(super) mod naming;
mod resume;
mod streaming;
mod writing;

use std::{future::Future, sync::Arc};

use sluice_media::{
    operation::Operation,
    task::{Failure, FailureCode},
    workflow::{Definition, Facts as ConditionFacts, Group, Kind, Node},
};
use sluice_store::{
    Error as StoreError, Store,
    blob::{BlobHash, Sealed},
    files::{Facts, NewFile, Role},
    now_ms,
    work::Lease,
    workflows::{Run, Step, StepStatus},
};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    WorkflowServices,
    buffer::{Buffer, Place},
    change::{NewVideoStream, StoredFile, made_by},
    operation::{self, Destination},
    path::{Path, count},
    progress::Active,
};
use crate::durable::{
    owner::{RowOwner, RowServices, RowTask, begin},
    shutdown::WorkGuard,
    step_error::{OwnerError, RowError, StepError},
};

/// Most bytes of JSON that the inspections of a run may add to its log, together; the rest is left out.
const MOST_FACTS: usize = 256 << 10;

/// The actor of one run.
pub(crate) type WorkflowRun = RowOwner<WorkflowServices>;

impl RowServices for WorkflowServices {
    fn store(&self) -> &Store {
        &self.store
    }

    async fn work(task: &RowTask<Self>) -> Result<(), OwnerError> {
        let _active = Active::begin(&task.services.counters);
        let _attended = task.services.followers.attend(task.lease.id);
        let mut traversal = RunTraversal::open(task).await?;
        match traversal.traverse().await {
            Ok(()) => Ok(()),
            Err(RowError::Failed(failure)) => traversal.fail(failure).await,
            Err(RowError::Stop(stop)) => Err(stop),
        }
    }
}

/// A run in progress.
struct RunTraversal<'s> {
    services: &'s WorkflowServices,
    lease: &'s Lease,
    guard: &'s WorkGuard,
    run: Arc<Run>,
    definition: Arc<Definition>,
    path: Path,
    buffer: Buffer,
    /// Start of the present step.
    began_at: i64,
    /// Bytes of facts that still fit into the log.
    facts_left: usize,
    unwritten: PendingChange,
}

/// Content of the next change.
#[derive(Default)]
struct PendingChange {
    steps: Vec<Step>,
    /// A blob that is to be recorded.
    sealed: Option<Arc<Sealed>>,
    /// At most one of both: a file that is kept, or a stream that is made.
    keep: Option<StoredFile>,
    cast: Option<NewVideoStream>,
}

/// Log entry of a finished step.
#[derive(Default)]
struct StepNote {
    message: String,
    branch: Option<bool>,
    facts: Option<serde_json::Value>,
}

impl From<String> for StepNote {
    fn from(message: String) -> Self {
        Self {
            message,
            ..Self::default()
        }
    }
}

impl RunTraversal<'_> {
    /// Does node after node, to the end.
    async fn traverse(&mut self) -> Result<(), RowError> {
        let definition = self.definition.clone();
        if let Some(gate) = &definition.gate
            && self.path.is_empty()
            && !self.is_met(gate).await?
        {
            return self.turn_away().await;
        }
        while let Some(node) = self.path.next(&definition) {
            self.visit(node).await?;
        }
        self.complete().await
    }

    /// Does a step and notes it; writes it when it made a buffer that only the journal finds again.
    async fn visit(&mut self, node: &Node) -> Result<(), RowError> {
        self.prepare(node).await?;
        if !matches!(node.kind, Kind::Operation(_)) {
            begin().await.map_err(OwnerError::from)?;
        }
        self.began_at = now_ms();
        let bytes_in = self.buffer.length();
        let note = self.perform(node).await?;
        let makes_buffer = matches!(&node.kind, Kind::Operation(it) if makes_buffer(it));
        let step = Step {
            branch: note.branch,
            facts: note.facts,
            started_at: Some(self.began_at),
            bytes_in: Some(bytes_in),
            bytes_out: Some(self.buffer.length()),
            output: makes_buffer.then(|| self.buffer.journal()).flatten(),
            ..step(self.position(), node, StepStatus::Completed, note.message)
        };
        self.unwritten.steps.push(step);
        self.path.visit(node, note.branch);
        if makes_buffer && matches!(self.buffer.place, Place::Scratch(_)) {
            self.write(None).await?;
        }
        Ok(())
    }

    /// Prepares a step that may be long: a stored file is written to the database first, the run stops when the service does,
    /// and followers get the run's position.
    async fn prepare(&mut self, node: &Node) -> Result<(), RowError> {
        let measures = |needs: bool| needs && self.buffer.is_unmeasured();
        let (is_long, is_operation) = match &node.kind {
            Kind::Operation(_) => (true, true),
            Kind::Storage { .. } | Kind::Hls { .. } => (true, false),
            Kind::Branch(group) => (measures(group.needs_dimensions()), false),
            Kind::Rename(pattern) => (measures(pattern.needs_dimensions()), false),
            Kind::Upload | Kind::Webhook { .. } => (false, false),
        };
        if is_long && (self.unwritten.keep.is_some() || self.unwritten.cast.is_some()) {
            self.write(None).await?;
        }
        if is_operation {
            self.stop_if_draining()?;
            self.publish();
        }
        Ok(())
    }

    async fn perform(&mut self, node: &Node) -> Result<StepNote, StepError> {
        Ok(match &node.kind {
            Kind::Upload => format!("took in {}", self.buffer.filename).into(),
            Kind::Branch(group) => {
                let is_met = self.is_met(group).await?;
                let facts = self.buffer.facts(&self.run);
                StepNote {
                    message: took(is_met, group, &facts),
                    branch: Some(is_met),
                    facts: Some(facts.of(group)),
                }
            }
            Kind::Rename(pattern) => {
                self.rename(pattern).await?;
                format!("named it {}", self.buffer.filename).into()
            }
            Kind::Operation(Operation::Inspect(_)) => {
                let facts = self.inspect().await?;
                self.inspection_note(facts)
            }
            Kind::Operation(operation) => {
                let destination = self.destination(node);
                self.operate(node, operation, destination).await?;
                format!("made {}", self.buffer.filename).into()
            }
            Kind::Storage { folder_id } => {
                let filename = self.keep(*folder_id).await?;
                format!("stored {filename}").into()
            }
            Kind::Webhook { .. } => "goes out when the run has completed".to_owned().into(),
            Kind::Hls { profile } => {
                self.cast(profile).await?;
                "made a video stream".to_owned().into()
            }
        })
    }

    /// Does an operation on the buffer.
    async fn operate(
        &mut self,
        node: &Node,
        operation: &Operation,
        destination: Destination,
    ) -> Result<(), StepError> {
        let (services, run) = (self.services, self.run.clone());
        let buffer = &mut self.buffer;
        let made = operation::perform(services, &run, node, operation, buffer, destination);
        self.buffer = in_time(services, made).await?;
        if let Place::Sealed(sealed) = &self.buffer.place {
            self.unwritten.sealed = Some(sealed.clone());
        }
        Ok(())
    }

    /// Has the next change store the buffer, and returns the file's name.
    async fn keep(&mut self, folder_id: Option<Uuid>) -> Result<String, StepError> {
        let (filename, blob) = (self.output_name().await?, self.sealed().await?);
        let file = NewFile {
            folder_id,
            filename: filename.clone(),
            mime_type: self.buffer.mime.clone(),
            size_bytes: self.buffer.size,
            blob,
            role: Role::Converted,
            width: self.buffer.width,
            height: self.buffer.height,
            duration_ms: self.buffer.duration_ms,
            generation: self.run.generation.saturating_add(1),
        };
        self.unwritten.keep = Some(StoredFile {
            step: self.unwritten.steps.len(),
            file,
            made_by: made_by(&self.run, self.operations()),
        });
        Ok(filename)
    }

    async fn inspect(&mut self) -> Result<serde_json::Value, StepError> {
        let (services, run) = (self.services, self.run.clone());
        let report = operation::inspect(services, &run, &mut self.buffer);
        let (report, facts) = in_time(services, report).await?;
        self.buffer.measured(facts);
        Ok(report)
    }

    /// Returns the log entry of an inspection.
    fn inspection_note(&mut self, facts: serde_json::Value) -> StepNote {
        match self.facts_left.checked_sub(facts.to_string().len()) {
            Some(left) => {
                self.facts_left = left;
                StepNote {
                    facts: Some(facts),
                    ..StepNote::from("found the facts of the file".to_owned())
                }
            }
            None => format!(
                "looked at the file; the facts are left out, since the log of a run holds {MOST_FACTS} bytes of them"
            )
            .into(),
        }
    }

    /// Finds width, height and duration, if a worker can and was not asked before.
    async fn measure(&mut self) -> Result<(), StepError> {
        if !self.buffer.is_unmeasured() {
            return Ok(());
        }
        match self.inspect().await {
            Err(StepError::Failed(_)) => self.buffer.measured(Facts::default()),
            Err(stop) => return Err(stop),
            Ok(_) => {}
        }
        Ok(())
    }

    async fn is_met(&mut self, group: &Group) -> Result<bool, StepError> {
        if group.needs_dimensions() {
            self.measure().await?;
        }
        Ok(group.is_met(&self.buffer.facts(&self.run)))
    }

    /// Returns the destination of an operation's result: whether it is kept next, with nothing but names and webhooks
    /// between.
    fn destination(&self, node: &Node) -> Destination {
        let definition = &self.definition;
        let mut at = definition.next(&node.id, None);
        while let Some(next) = at
            && matches!(next.kind, Kind::Rename(_) | Kind::Webhook { .. })
        {
            at = definition.next(&next.id, None);
        }
        let is_kept = match at {
            Some(next) => matches!(next.kind, Kind::Storage { .. } | Kind::Hls { .. }),
            None => !self.has_stored(),
        };
        match is_kept {
            true => Destination::Blob,
            false => Destination::Scratch(self.position()),
        }
    }

    /// Makes the buffer a blob.
    async fn sealed(&mut self) -> Result<BlobHash, StepError> {
        if let Place::Scratch(expected) = &self.buffer.place {
            let expected = *expected;
            let file = self.buffer.file(self.services).await?;
            let blobs = self.services.store.blobs();
            let sealed = blobs.seal_scratch(&file, &expected).await?;
            let sealed = sealed.ok_or_else(|| {
                // The next owner finds that it differs, and makes it again.
                StepError::Stop(OwnerError::Later(
                    "a buffer is not what was journalled".into(),
                ))
            })?;
            let sealed = Arc::new(sealed);
            self.buffer.place = Place::Sealed(sealed.clone());
            self.unwritten.sealed = Some(sealed);
        }
        let blob = self.buffer.blob();
        Ok(blob.ok_or_else(|| StoreError::Internal("a sealed buffer is a blob".into()))?)
    }

    fn has_stored(&self) -> bool {
        let is_storage = |kind: &Kind| matches!(kind, Kind::Storage { .. });
        self.path.has(&self.definition, is_storage)
    }

    /// Returns the operations that were done, as they are serialised.
    fn operations(&self) -> Vec<serde_json::Value> {
        let nodes = self.path.nodes(&self.definition);
        nodes
            .filter_map(|node| match &node.kind {
                Kind::Operation(operation) => serde_json::to_value(operation).ok(),
                _ => None,
            })
            .collect()
    }

    fn stop_if_draining(&self) -> Result<(), OwnerError> {
        match self.guard.is_draining() {
            true => Err(OwnerError::Drained),
            false => Ok(()),
        }
    }

    /// Returns the position of the next node.
    fn position(&self) -> u32 {
        count(self.path.len())
    }
}

/// Runs a step under a watchdog: a step that hangs fails. As long as tasks end in the workers, or report progress, it may be
/// waiting for a worker; once it has one, the workers bound its time.
async fn in_time<T>(
    services: &WorkflowServices,
    step: impl Future<Output = Result<T, StepError>>,
) -> Result<T, StepError> {
    let limit = services.settings.step_timeout;
    let mut step = std::pin::pin!(step);
    loop {
        let signs = services.workers.signs();
        if let Ok(done) = timeout(limit, &mut step).await {
            return done;
        }
        if services.workers.signs() == signs {
            return Err(StepError::Failed(Failure::new(
                FailureCode::TimedOut,
                format!("it made no progress for {limit:?} (workflows.step_timeout)"),
            )));
        }
    }
}

/// Returns the message of a branch: the path that it took, and the facts that it was decided by.
fn took(is_met: bool, group: &Group, facts: &ConditionFacts) -> String {
    let values: Vec<String> = group
        .fields()
        .into_iter()
        .map(|field| facts.in_words(field))
        .collect();
    match values.is_empty() {
        true => format!("took the `{is_met}` path"),
        false => format!("took the `{is_met}` path: {}", values.join(", ")),
    }
}

/// Makes the journal's entry of a step that finishes now.
fn step(position: u32, node: &Node, status: StepStatus, message: String) -> Step {
    let now = now_ms();
    Step {
        position,
        node_id: node.id.clone(),
        kind: node.kind.name().to_owned(),
        title: node.title.clone(),
        status,
        branch: None,
        message,
        skip_reason: None,
        skipped_by: None,
        facts: None,
        started_at: Some(now),
        finished_at: Some(now),
        bytes_in: None,
        bytes_out: None,
        output: None,
        stored_file_id: None,
    }
}

/// Returns whether an operation makes a buffer; an inspection passes the file on.
fn makes_buffer(operation: &Operation) -> bool {
    !matches!(operation, Operation::Inspect(_))
}
