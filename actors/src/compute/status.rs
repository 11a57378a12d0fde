//! What `/readyz`, `/metrics` and `sluice doctor` say of the rings.

use sluice_worker::protocol::Layers;

/// The rings at one moment; but for `video`, it is of the ring of images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Processes that are up.
    pub workers: usize,
    /// Tasks that run.
    pub busy: usize,
    /// Tasks that wait for a worker, over both lanes.
    pub waiting: usize,
    /// Tasks that have ended since the service started, in any way.
    pub ended: u64,
    /// Processes that were started in place of another since the service started.
    pub replaced: u64,
    /// Processes that were killed for a deadline or because no caller waited any more.
    pub killed: u64,
    /// The sandbox of the workers; nothing before the first is up.
    pub layers: Layers,
    /// Why no work is done, or why it keeps failing, in words for the operator.
    pub refused: Option<String>,
    pub video: VideoStatus,
}

/// The ring of video and audio at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VideoStatus {
    pub short: QueueStatus,
    pub long: QueueStatus,
    /// Tasks that have ended since the service started, in any way.
    pub ended: u64,
    /// Reports of tasks since the service started.
    pub told: u64,
    /// Tasks that were tried again after their process died.
    pub retried: u64,
    /// Processes that were killed for a deadline, a silence or because no caller waited any more.
    pub killed: u64,
    /// The sandbox of the processes; nothing before the first was up.
    pub layers: Layers,
    /// Why no work is done, or why it keeps failing, in words for the operator.
    pub refused: Option<String>,
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    pub running: usize,
    pub waiting: usize,
}
