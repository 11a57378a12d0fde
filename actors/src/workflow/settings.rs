//! Settings of workflows (`[workflows]`): definitions, versions, longest wait, runs in progress and waiting, step time-out,
//! retention, followers.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::{duration, size};

/// Settings of workflows and their runs; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkflowSettings {
    /// Workflows of one account.
    pub max_workflows: usize,
    /// Bytes of one definition.
    #[serde(with = "size")]
    pub max_definition: ByteSize,
    /// Versions of a workflow that are kept besides those that runs name.
    pub keep_versions: usize,
    /// After this a waiting request is answered 202 and the run continues.
    #[serde(with = "duration")]
    pub inline_wait: Duration,
    /// Runs in progress, in all and of one workflow; others wait as rows.
    pub max_active: usize,
    pub max_active_per_workflow: usize,
    /// Runs of one account that wait.
    pub max_queued: usize,
    /// Time for which a lease lasts without a heartbeat.
    #[serde(with = "duration")]
    pub lease: Duration,
    /// A step that takes longer while nothing ends in the workers has failed.
    #[serde(with = "duration")]
    pub step_timeout: Duration,
    /// Newest generation of files that starts workflows: 0 is an upload, 1 a file of a run that an upload began, and so on.
    pub max_generation: u32,
    /// Time for which inputs and outputs are kept: outputs can be downloaded, and failed runs tried again.
    #[serde(with = "duration")]
    pub keep_results: Duration,
    /// Time for which ended runs stay in the history.
    #[serde(with = "duration")]
    pub keep_runs: Duration,
    /// Clients that may follow runs (SSE) at a time.
    pub max_followers: usize,
}

impl Default for WorkflowSettings {
    fn default() -> Self {
        Self {
            max_workflows: 1_000,
            max_definition: ByteSize::kib(256),
            keep_versions: 100,
            inline_wait: Duration::from_secs(10),
            max_active: 64,
            max_active_per_workflow: 8,
            max_queued: 10_000,
            lease: Duration::from_secs(15),
            step_timeout: Duration::from_secs(600),
            max_generation: 0,
            keep_results: Duration::from_secs(7 * 24 * 3_600),
            keep_runs: Duration::from_secs(90 * 24 * 3_600),
            max_followers: 1_000,
        }
    }
}

impl WorkflowSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        for (key, value) in [
            ("max_active", self.max_active),
            ("max_active_per_workflow", self.max_active_per_workflow),
            ("max_queued", self.max_queued),
        ] {
            if value == 0 {
                return Err(format!("workflows.{key} must be at least 1"));
            }
        }
        if self.lease < Duration::from_secs(3) {
            return Err("workflows.lease must be at least 3s".into());
        }
        if self.step_timeout.is_zero() {
            return Err("workflows.step_timeout must be more than 0s".into());
        }
        if self.keep_runs < self.keep_results {
            return Err("workflows.keep_runs must be at least workflows.keep_results".into());
        }
        Ok(())
    }
}
