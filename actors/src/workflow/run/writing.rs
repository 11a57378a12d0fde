//! Writes of a workflow run: one transaction with its steps and results; a full account fails the step (`storage_used_up`,
//! `operations_used_up`).

use std::sync::Arc;

use sluice_store::{
    Error as StoreError,
    workflows::{Run, RunStatus},
};
use tracing::debug;

use super::{
    super::{
        buffer::Place,
        change::{Change, Changed, RunEnding},
        progress::RunProgress,
    },
    PendingChange, RunTraversal,
};
use crate::durable::step_error::{CodedFailure, OwnerError, RowError, with_patience};

impl RunTraversal<'_> {
    /// Writes the work since the last change, and publishes it.
    pub(super) async fn write(&mut self, ending: Option<RunEnding>) -> Result<(), RowError> {
        let unwritten = std::mem::take(&mut self.unwritten);
        let change = Arc::new(Change {
            lease: self.lease.clone(),
            run: self.run.clone(),
            terms: self.services.terms(),
            triggers: self.services.trigger_limits(self.run.allowance),
            steps: unwritten.steps,
            sealed: unwritten.sealed,
            keep: unwritten.keep,
            cast: unwritten.cast,
            ending,
        });
        let store = &self.services.store;
        let made = with_patience(|| {
            let change = change.clone();
            store.write_for(change.run.account_id, move |tx| {
                Box::pin(async move { change.make(tx).await })
            })
        });
        match made.await {
            Ok(changed) => self.written(changed).await,
            Err(error @ StoreError::OverQuota { .. }) => {
                return Err(self.rejected(&change, "storage_used_up", error.to_string()));
            }
            Err(StoreError::Invalid(message)) if change.cast.is_some() => {
                return Err(self.rejected(&change, "operations_used_up", message));
            }
            Err(error) => return Err(OwnerError::from(error).into()),
        }
        Ok(())
    }

    async fn written(&mut self, changed: Changed) {
        if let Place::Sealed(sealed) = &self.buffer.place {
            self.buffer.place = Place::Blob(sealed.blob().hash);
        }
        if changed.has_triggered {
            self.services.registry.nudge();
        }
        if changed.has_cast {
            self.services.streams.announce();
        }
        match changed.ended {
            None => self.publish(),
            Some(run) => {
                self.services.ended(&run, self.path.len());
                self.clear(&run).await;
            }
        }
    }

    /// Removes the intermediate files of a completed run; a failed one may be tried again.
    async fn clear(&self, run: &Run) {
        if run.status != RunStatus::Completed {
            return;
        }
        if let Err(error) = self.services.store.blobs().remove_scratch(run.id).await {
            debug!(run = %run.id, %error, "scratch is swept later");
        }
    }

    /// Fails the step whose file the account may not keep, or whose stream it may not make; later steps are undone.
    fn rejected(&mut self, change: &Change, code: &str, message: String) -> RowError {
        let mut steps = change.steps.clone();
        let keep = change.keep.as_ref().map(|keep| keep.step);
        if let Some(step) = keep.or(change.cast.as_ref().map(|cast| cast.step)) {
            let position = steps[step].position;
            steps.truncate(step);
            self.path.truncate(usize::try_from(position).unwrap_or(0));
        }
        self.unwritten = PendingChange {
            steps,
            sealed: change.sealed.clone(),
            keep: None,
            cast: None,
        };
        RowError::Failed(CodedFailure {
            code: code.to_owned(),
            message,
        })
    }

    pub(super) fn publish(&self) {
        let progress = RunProgress::in_flight(&self.definition, &self.path);
        self.services
            .followers
            .publish(self.run.account_id, self.run.id, progress);
    }
}
