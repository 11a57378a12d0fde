//! The port to the compute pool, so that batches can be tested without worker processes.

use futures_util::future::{BoxFuture, FutureExt as _};
use sluice_media::task::Limits;

use crate::compute::{Assignment, Compute, Error, Finished, Lane};

/// Who performs tasks. Dropping a future of [`Workers::run`] cancels its task.
pub trait Workers: Send + Sync {
    fn run(&self, lane: Lane, assignment: Assignment) -> BoxFuture<'_, Result<Finished, Error>>;

    /// What a task may take.
    fn limits(&self) -> Limits;

    /// Tasks that make sense at a time.
    fn width(&self) -> usize;

    /// Why nothing is performed at present, in words for the operator.
    fn refused(&self) -> Option<String>;
}

impl Workers for Compute {
    fn run(&self, lane: Lane, assignment: Assignment) -> BoxFuture<'_, Result<Finished, Error>> {
        self.run(lane, assignment).boxed()
    }

    fn limits(&self) -> Limits {
        self.limits()
    }

    /// One more than there are workers: while a result is hashed and flushed, its worker has the next task.
    fn width(&self) -> usize {
        self.status().workers.max(1) + 1
    }

    fn refused(&self) -> Option<String> {
        let status = self.status();
        status.refused.filter(|_| status.workers == 0)
    }
}
