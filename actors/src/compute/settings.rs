//! Settings of image workers (`[image_workers]`): number, sandbox, queue, time-outs, memory, most megapixels, frames and
//! members, recycling.

use std::{num::NonZeroUsize, thread, time::Duration};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::{
    setting::{duration, size},
    task::Limits,
};

/// Most workers: each is a thread and a process, and more than any machine has cores is a mistake.
const MAX_WORKERS: usize = 256;
/// Least number of workers by default: one is free for short work while drawings of two accounts run.
const FEWEST_WORKERS: usize = 3;

/// Settings of the decode ring; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComputeSettings {
    /// 0: one more than cores, and at least [`FEWEST_WORKERS`].
    pub workers: usize,
    pub sandbox: Sandbox,
    /// Tasks that may wait, over both lanes; one more is rejected as busy.
    pub queue: usize,
    /// Waiting tasks of one account.
    pub queue_per_account: usize,
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// Longest time of an SVG or PDF, whose few bytes can ask for endless drawing.
    #[serde(with = "duration")]
    pub document_timeout: Duration,
    pub recycle_after: u32,
    #[serde(with = "size")]
    pub recycle_above: ByteSize,
    #[serde(with = "size")]
    pub memory: ByteSize,
    pub max_megapixels: u32,
    pub max_frames: u32,
    pub max_total_megapixels: u32,
    #[serde(with = "size")]
    pub max_output: ByteSize,
    pub max_members: u32,
}

/// Policy for a kernel that lacks a layer of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Nothing is decoded.
    #[default]
    Required,
    /// Decodes with the layers that exist.
    BestEffort,
}

impl Default for ComputeSettings {
    fn default() -> Self {
        Self {
            workers: 0,
            sandbox: Sandbox::Required,
            queue: 512,
            queue_per_account: 256,
            timeout: Duration::from_secs(60),
            document_timeout: Duration::from_secs(15),
            recycle_after: 1_000,
            recycle_above: ByteSize::mib(400),
            memory: ByteSize::gib(3),
            max_megapixels: 120,
            max_frames: 2_000,
            max_total_megapixels: 400,
            max_output: ByteSize::gib(1),
            max_members: 1_000,
        }
    }
}

impl ComputeSettings {
    /// Returns the limits of a task.
    pub fn limits(&self) -> Limits {
        Limits {
            max_pixels: u64::from(self.max_megapixels) * 1_000_000,
            max_frames: self.max_frames,
            max_total_pixels: u64::from(self.max_total_megapixels) * 1_000_000,
            max_output_bytes: self.max_output.as_u64(),
            max_members: self.max_members,
            // Of clips; the ring that works on them puts in its own.
            max_duration_ms: u64::MAX,
            max_side: u32::MAX,
        }
    }

    /// Returns the configured number; else one more than the machine has cores, since one account never has all of
    /// them.
    pub fn worker_count(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        match self.workers {
            0 => (cores() + 1).max(FEWEST_WORKERS),
            workers => workers,
        }
    }

    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.workers > MAX_WORKERS {
            return Err(format!(
                "image_workers.workers must be at most {MAX_WORKERS}"
            ));
        }
        if self.recycle_after == 0 {
            return Err("image_workers.recycle_after must be at least 1".into());
        }
        if self.queue == 0 {
            return Err("image_workers.queue must be at least 1".into());
        }
        if self.queue_per_account == 0 {
            return Err("image_workers.queue_per_account must be at least 1".into());
        }
        if self.timeout < Duration::from_secs(1) {
            return Err("image_workers.timeout must be at least 1s".into());
        }
        if self.document_timeout < Duration::from_secs(1) {
            return Err("image_workers.document_timeout must be at least 1s".into());
        }
        if self.memory < ByteSize::mib(256) {
            return Err("image_workers.memory must be at least 256 MiB".into());
        }
        Ok(())
    }
}
