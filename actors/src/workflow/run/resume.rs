//! Resumption of a workflow run after a crash or stop: reads the journal, finds the newest buffer, makes missing ones again.

use std::sync::Arc;

use sluice_media::workflow::{Kind, Node};
use sluice_store::{
    now_ms,
    workflows::{self, Step},
};

use super::{
    super::{WorkflowServices, buffer::Buffer, definition, operation::Destination, path::Path},
    MOST_FACTS, PendingChange, RunTraversal, makes_buffer,
};
use crate::durable::{
    owner::RowTask,
    step_error::{OwnerError, StepError},
};

impl<'s> RunTraversal<'s> {
    /// Opens the run as far as its journal goes, with the buffer that it had.
    pub(super) async fn open(task: &'s RowTask<WorkflowServices>) -> Result<Self, OwnerError> {
        let (services, lease) = (&*task.services, &task.lease);
        let mut reader = services.store.read().await?;
        let run = workflows::by_id(&mut reader, lease.id).await?;
        let definition = definition::load(&mut reader, &run).await?;
        let steps = definition::done(workflows::steps(&mut reader, run.id).await?);
        drop(reader);
        let mut traversal = Self {
            buffer: Buffer::input(&run)?,
            services,
            lease,
            guard: &task.guard,
            run: Arc::new(run),
            definition,
            path: Path::default(),
            began_at: now_ms(),
            facts_left: MOST_FACTS.saturating_sub(bytes_of_facts(&steps)),
            unwritten: PendingChange::default(),
        };
        traversal.resume(steps).await?;
        traversal.publish();
        Ok(traversal)
    }

    /// Takes the newest buffer that is as journalled, and makes the later ones again.
    async fn resume(&mut self, steps: Vec<Step>) -> Result<(), OwnerError> {
        let definition = self.definition.clone();
        definition::journalled(&definition, &steps)?;
        let mut missing = 0;
        for (index, step) in steps.iter().enumerate().rev() {
            let Some(output) = &step.output else { continue };
            let found = Buffer::journalled(self.services, &self.run, step.position, output).await?;
            if let Some(buffer) = found {
                self.buffer = buffer;
                missing = index + 1;
                break;
            }
        }
        for (index, step) in steps.iter().enumerate() {
            let Some(node) = self.path.next(&definition) else {
                break;
            };
            if index >= missing {
                self.redo(node).await?;
            }
            self.path.visit(node, step.branch);
        }
        Ok(())
    }

    /// Makes the buffer of a journalled step again; nothing else of the step is done twice, and its row stays as it is.
    async fn redo(&mut self, node: &Node) -> Result<(), OwnerError> {
        let redone = match &node.kind {
            Kind::Rename(pattern) => self.rename(pattern).await,
            Kind::Operation(operation) if makes_buffer(operation) => {
                self.stop_if_draining()?;
                let destination = Destination::Scratch(self.position());
                self.operate(node, operation, destination).await
            }
            _ => Ok(()),
        };
        redone.map_err(|error| match error {
            StepError::Stop(stop) => stop,
            StepError::Failed(failure) => OwnerError::Broken(format!(
                "step `{}` was done before and cannot be done again: {}",
                node.id, failure.message
            )),
        })
    }
}

/// Sums the inspections in the log.
fn bytes_of_facts(steps: &[Step]) -> usize {
    let facts = steps.iter().filter_map(|step| step.facts.as_ref());
    facts.map(|facts| facts.to_string().len()).sum()
}
