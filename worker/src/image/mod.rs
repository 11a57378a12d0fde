//! Image work: one [`Studio`] per worker process performs tasks with reused codecs and buffers.

use sluice_media::task::{Done, Failure, FailureCode, Limits, Task};

pub mod planar;
pub mod vips;

/// The codecs of one process.
pub struct Studio {}

impl Studio {
    /// Starts libvips and loads everything that a sandboxed process can no longer open.
    pub fn new() -> Self {
        Self {}
    }

    /// Performs a task on inputs in memory; the bytes of each output come beside the facts.
    pub fn perform(
        &mut self,
        _task: &Task,
        _inputs: &[&[u8]],
        _limits: &Limits,
    ) -> Result<(Done, Vec<Vec<u8>>), Failure> {
        Err(Failure::new(FailureCode::Internal, "not built yet"))
    }
}
