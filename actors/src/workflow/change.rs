//! Transaction of a workflow run's owner: steps, stored file, video stream, triggered runs, end (`storage_used_up`,
//! `operations_used_up`).

use std::sync::Arc;

use serde_json::{Value, json};
use sluice_store::{
    Error, Tx,
    blob::Sealed,
    blobs,
    files::NewFile,
    lineage::{Derived, DerivedKind},
    now_ms,
    video::{self, NewStream, Submitted},
    work::{self, Lease},
    workflows::{self, Completion, EndingTerms, Failure, NewOutput, Run, Step, TriggerLimits},
};

use super::{events, trigger};
use crate::durable::stored::{self, UnstoredResult, note_lineage};

/// See the module documentation.
pub(super) struct Change {
    pub(super) lease: Lease,
    pub(super) run: Arc<Run>,
    pub(super) terms: EndingTerms,
    pub(super) triggers: TriggerLimits,
    pub(super) steps: Vec<Step>,
    /// A blob that is to be recorded.
    pub(super) sealed: Option<Arc<Sealed>>,
    pub(super) keep: Option<StoredFile>,
    pub(super) cast: Option<NewVideoStream>,
    pub(super) ending: Option<RunEnding>,
}

/// A file that a storage step makes.
#[derive(Clone, Debug)]
pub(super) struct StoredFile {
    /// Index of the change's step that stores it.
    pub(super) step: usize,
    pub(super) file: NewFile,
    /// Operation that made it, for its lineage.
    pub(super) made_by: Value,
}

/// A video stream that a step makes.
#[derive(Clone, Debug)]
pub(super) struct NewVideoStream {
    /// Index of the change's step that makes it.
    pub(super) step: usize,
    pub(super) stream: NewStream,
}

/// End of a run.
#[derive(Clone)]
pub(super) enum RunEnding {
    Completed {
        gate: Option<bool>,
        /// Its last buffer, of a run that stored none, and the operations that made it.
        output: Option<(NewOutput, Value)>,
        left_out: Vec<Step>,
        /// Addresses to which webhook steps send the event besides; `None`: the run passed no webhook step.
        addresses: Option<Vec<String>>,
    },
    Failed {
        gate: Option<bool>,
        node: String,
        code: String,
        message: String,
        /// The step that failed, and those after it.
        rest: Vec<Step>,
    },
}

/// Result of a change.
pub(super) struct Changed {
    /// The run, when it has ended.
    pub(super) ended: Option<Run>,
    /// Runs were made of a file that was stored.
    pub(super) has_triggered: bool,
    /// A video stream was made.
    pub(super) has_cast: bool,
}

impl Change {
    /// Makes the change. `Error::Conflict` when the lease is lost, `Error::OverQuota` when there is no room for the file
    /// that is kept, `Error::Invalid` when no video stream can be paid for.
    pub(super) async fn make(&self, tx: &mut Tx<'_>) -> Result<Changed, Error> {
        let now = now_ms();
        work::hold(tx, &self.lease).await?;
        if let Some(sealed) = &self.sealed {
            blobs::record(tx, sealed, now).await?;
        }
        let mut steps = self.steps.clone();
        let mut has_triggered = false;
        if let Some(keep) = &self.keep {
            let file = stored::keep(tx, self.keeping(keep), now).await?;
            has_triggered = !trigger(tx, &file, &self.triggers, now).await?.is_empty();
            let step = &mut steps[keep.step];
            step.stored_file_id = Some(file.id);
            if file.folder_id != keep.file.folder_id {
                step.message.push_str(" at the top: its folder is gone");
            }
        }
        if let Some(cast) = &self.cast {
            let stream = match video::create(tx, &cast.stream, now).await? {
                Submitted::New(stream) | Submitted::Known(stream) => stream,
                Submitted::UsedUp { used } => return Err(used_up(used)),
            };
            let step = &mut steps[cast.step];
            step.message = format!("made the video stream {}", stream.id);
            step.facts = Some(json!({
                "streamId": stream.id,
                "playbackId": stream.playback_id,
                "profile": stream.profile,
            }));
        }
        let ended = match self.ending.clone() {
            None => {
                workflows::record_steps(tx, &self.lease, &steps).await?;
                None
            }
            Some(ending) => Some(self.end(tx, ending, steps, now).await?),
        };
        Ok(Changed {
            ended,
            has_triggered,
            has_cast: self.cast.is_some(),
        })
    }

    fn keeping(&self, keep: &StoredFile) -> UnstoredResult {
        UnstoredResult {
            account_id: self.run.account_id,
            file: keep.file.clone(),
            limit_bytes: self.run.allowance.storage_bytes,
            source_file_id: self.run.source_file_id,
            operation: keep.made_by.clone(),
        }
    }

    async fn end(
        &self,
        tx: &mut Tx<'_>,
        ending: RunEnding,
        mut steps: Vec<Step>,
        now: i64,
    ) -> Result<Run, Error> {
        match ending {
            RunEnding::Completed {
                gate,
                output,
                left_out,
                addresses,
            } => {
                steps.extend(left_out);
                let (output, made_by) = output.unzip();
                if let Some(made_by) = made_by {
                    self.note_output(tx, made_by, now).await?;
                }
                let completion = Completion {
                    gate,
                    output,
                    steps,
                };
                let run = workflows::complete(tx, &self.lease, completion, self.terms, now).await?;
                if let Some(addresses) = addresses {
                    events::completed(tx, &run, &addresses, now).await?;
                }
                Ok(run)
            }
            RunEnding::Failed {
                gate,
                node,
                code,
                message,
                rest,
            } => {
                steps.extend(rest);
                let failure = Failure {
                    gate,
                    node: Some(node),
                    code,
                    message,
                    steps,
                };
                let run = workflows::fail(tx, &self.lease, failure, self.terms, now).await?;
                events::failed(tx, &run, now).await?;
                Ok(run)
            }
        }
    }

    async fn note_output(&self, tx: &mut Tx<'_>, made_by: Value, now: i64) -> Result<(), Error> {
        let derived = Derived {
            kind: DerivedKind::RunOutput,
            id: self.run.id.to_string(),
        };
        note_lineage(tx, derived, self.run.source_file_id, made_by, now).await
    }
}

fn used_up(used: u64) -> Error {
    Error::Invalid(format!(
        "a video stream costs one media operation, and the {used} of the month are used up: retry the run next month, or with \
         a larger plan"
    ))
}

/// Returns the origin of a file that a run made, for its lineage: the run, and the operations that were done.
pub(super) fn made_by(run: &Run, operations: Vec<Value>) -> Value {
    json!({
        "tool": "workflow",
        "workflowId": run.workflow_id,
        "workflowVersion": run.workflow_version,
        "runId": run.id,
        "operations": operations,
    })
}
