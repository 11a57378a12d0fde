//! Settings of video and audio work (`[av_workers]`): tasks at a time, memory, queue, longest silence and time, longest
//! source, largest side.

use std::{num::NonZeroUsize, thread, time::Duration};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::{duration, size};

/// Settings of video and audio work; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VideoSettings {
    /// 0: one less than cores.
    pub jobs: usize,
    pub short_jobs: usize,
    /// Most memory that all tasks together may be expected to take.
    #[serde(with = "size")]
    pub memory_total: ByteSize,
    /// The address space of one process.
    #[serde(with = "size")]
    pub memory: ByteSize,
    /// The largest result.
    #[serde(with = "size")]
    pub max_output: ByteSize,
    /// Tasks that may wait, over both queues.
    pub queue: usize,
    /// Silence of a task after which it is ended.
    #[serde(with = "duration")]
    pub stall: Duration,
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// The longest source.
    #[serde(with = "duration")]
    pub max_duration: Duration,
    /// The longest side of a source's frames, in pixels.
    pub max_side: u32,
}

impl Default for VideoSettings {
    fn default() -> Self {
        Self {
            jobs: 0,
            short_jobs: 1,
            memory_total: ByteSize::b(0),
            memory: ByteSize::gib(4),
            max_output: ByteSize::gib(20),
            queue: 256,
            stall: Duration::from_secs(60),
            timeout: Duration::from_secs(12 * 3600),
            max_duration: Duration::from_secs(12 * 3600),
            max_side: 8_192,
        }
    }
}

impl VideoSettings {
    /// Returns the configured number, or one less than the machine has cores.
    pub fn job_count(&self) -> usize {
        match self.jobs {
            0 => thread::available_parallelism()
                .map_or(1, NonZeroUsize::get)
                .saturating_sub(1)
                .max(1),
            jobs => jobs,
        }
    }

    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.short_jobs == 0 {
            return Err("av_workers.short_jobs must be at least 1".into());
        }
        if self.queue == 0 {
            return Err("av_workers.queue must be at least 1".into());
        }
        if self.memory < ByteSize::gib(1) {
            return Err("av_workers.memory must be at least 1 GiB".into());
        }
        if self.stall < Duration::from_secs(5) {
            return Err("av_workers.stall must be at least 5s".into());
        }
        if self.timeout < self.stall {
            return Err("av_workers.timeout must be at least av_workers.stall".into());
        }
        Ok(())
    }
}
