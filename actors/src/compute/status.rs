//! What `/readyz`, `/metrics` and `sluice doctor` say of the pool.

use sluice_worker::protocol::Layers;

/// The pool at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Processes that are up.
    pub workers: usize,
    /// Tasks that run.
    pub busy: usize,
    /// Tasks that wait for a worker, over both lanes.
    pub waiting: usize,
    /// Processes that were started in place of another since the service started.
    pub replaced: u64,
    /// Processes that were killed for a deadline or because nobody waited any more.
    pub killed: u64,
    /// The sandbox of the workers; nothing before the first is up.
    pub layers: Layers,
    /// Why no work is done, or why it keeps failing, in words for the operator.
    pub refused: Option<String>,
}
