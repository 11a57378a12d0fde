//! End of a workflow run: completed, turned away by its condition, or failed at a step; skipped steps, addresses of webhook
//! steps.

use sluice_media::workflow::{Definition, Kind};
use sluice_store::workflows::{NewOutput, Step, StepStatus};

use super::{
    super::{
        change::{RunEnding, made_by},
        path::{Path, PathEnd},
    },
    RunTraversal, count, step,
};
use crate::durable::step_error::{CodedFailure, OwnerError, RowError, StepError};

impl RunTraversal<'_> {
    /// Ends the run, whose upload does not meet the gate.
    pub(super) async fn turn_away(&mut self) -> Result<(), RowError> {
        let left_out = self.left_out(PathEnd::TurnedAway, 0);
        self.write(Some(RunEnding::Completed {
            gate: Some(false),
            output: None,
            left_out,
            addresses: None,
        }))
        .await
    }

    pub(super) async fn complete(&mut self) -> Result<(), RowError> {
        let output = match self.has_stored() {
            true => None,
            false => Some((self.output().await?, made_by(&self.run, self.operations()))),
        };
        let left_out = self.left_out(PathEnd::Reached, self.path.len());
        self.write(Some(RunEnding::Completed {
            gate: self.gate(),
            output,
            left_out,
            addresses: self.addresses(),
        }))
        .await
    }

    /// Returns the result of the gate, of a run that came to its nodes: `None` without a gate.
    fn gate(&self) -> Option<bool> {
        self.definition.gate.as_ref().map(|_| true)
    }

    /// Returns the last buffer, for a run that stored none.
    async fn output(&mut self) -> Result<NewOutput, StepError> {
        let (filename, blob) = (self.output_name().await?, self.sealed().await?);
        Ok(NewOutput {
            blob,
            filename,
            mime_type: self.buffer.mime.clone(),
            size: self.buffer.size,
            width: self.buffer.width,
            height: self.buffer.height,
        })
    }

    /// Returns the addresses to which its webhook steps send the event besides; `None` when it passed none.
    fn addresses(&self) -> Option<Vec<String>> {
        let definition = &self.definition;
        let mut addresses: Option<Vec<String>> = None;
        for node in self.path.nodes(definition) {
            let Kind::Webhook { url } = &node.kind else {
                continue;
            };
            let addresses = addresses.get_or_insert_default();
            if let Some(url) = url.as_ref().or(definition.webhook_url.as_ref())
                && !addresses.contains(url)
            {
                addresses.push(url.clone());
            }
        }
        addresses
    }

    /// Ends the run because of the node that comes next.
    pub(super) async fn fail(&mut self, failure: CodedFailure) -> Result<(), OwnerError> {
        let definition = self.definition.clone();
        let Some(node) = self.path.next(&definition) else {
            return Err(OwnerError::Broken(failure.message));
        };
        let failed = Step {
            started_at: Some(self.began_at),
            bytes_in: Some(self.buffer.length()),
            ..step(
                self.position(),
                node,
                StepStatus::Failed,
                failure.message.clone(),
            )
        };
        let mut rest = vec![failed];
        rest.extend(self.left_out(PathEnd::Failed(node), self.path.len() + 1));
        let ending = RunEnding::Failed {
            gate: self.gate(),
            node: node.id.clone(),
            code: failure.code,
            message: format!("step `{}` ({}): {}", node.title, node.id, failure.message),
            rest,
        };
        self.write(Some(ending)).await.map_err(|error| match error {
            RowError::Stop(stop) => stop,
            RowError::Failed(failure) => OwnerError::Broken(failure.message),
        })
    }

    fn left_out(&self, end: PathEnd<'_>, from: usize) -> Vec<Step> {
        left_out(&self.path, &self.definition, end, from)
    }
}

/// Returns the nodes that a run does not come to, as steps from that position on.
pub(in crate::workflow) fn left_out(
    path: &Path,
    definition: &Definition,
    end: PathEnd<'_>,
    from: usize,
) -> Vec<Step> {
    path.left_out(definition, end)
        .into_iter()
        .zip(from..)
        .map(|(left_out, position)| Step {
            started_at: None,
            finished_at: None,
            skip_reason: Some(left_out.reason),
            skipped_by: left_out.by.map(str::to_owned),
            ..step(
                count(position),
                left_out.node,
                StepStatus::Skipped,
                left_out.message,
            )
        })
        .collect()
}
