//! Port to the worker processes, which tests replace; durable work is tried again while all workers are busy.

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use sluice_media::task::{Done, Failure, FailureCode, Limits, OutputFacts};
use sluice_store::work::Lane as Turn;

use super::{
    owner::Beginning,
    step_error::{OwnerError, StepError},
};
use crate::compute::{Assignment, Compute, Error, Finished, Lane};

/// Pause before the next try while all workers are busy.
const BUSY_PAUSE: Duration = Duration::from_millis(250);

/// Performs tasks. Dropping a future of [`Workers::run`] cancels its task.
pub trait Workers: Send + Sync {
    fn run(&self, lane: Lane, assignment: Assignment) -> BoxFuture<'_, Result<Finished, Error>>;

    /// Returns the limits of a task.
    fn limits(&self) -> Limits;

    /// Returns the number of tasks that a job may run at a time.
    fn width(&self) -> usize;

    /// Returns the number of rows whose tasks run here soon when they are claimed now.
    fn startable(&self) -> usize {
        self.width() + 1
    }

    /// Returns the signs of progress since the start: tasks that have ended in any way, and reports of others. A task
    /// that waits for its turn sees by it that others make progress.
    fn signs(&self) -> u64;

    /// Returns the reason why nothing is performed at present, for the operator.
    fn refused(&self) -> Option<String>;
}

impl Workers for Compute {
    fn run(&self, lane: Lane, assignment: Assignment) -> BoxFuture<'_, Result<Finished, Error>> {
        self.run(lane, assignment).boxed()
    }

    fn limits(&self) -> Limits {
        self.limits()
    }

    /// Returns one more than there are workers: while a result is hashed and flushed, its worker has the next task.
    fn width(&self) -> usize {
        self.status().workers.max(1) + 1
    }

    fn signs(&self) -> u64 {
        let status = self.status();
        status.ended + status.video.ended + status.video.reports
    }

    fn refused(&self) -> Option<String> {
        let status = self.status();
        status.refused.filter(|_| status.workers == 0)
    }
}

/// Runs a task in a worker; while the queue is full it is tried again. Once a worker has it, and before it runs,
/// the begin of the row that it belongs to is committed ([`Beginning`]).
pub(crate) async fn run(
    workers: &dyn Workers,
    turn: Turn,
    mut assignment: Assignment,
) -> Result<Done, StepError> {
    let lane = match turn {
        Turn::Interactive => Lane::Interactive,
        Turn::Batch => Lane::Batch,
    };
    if let Some(beginning) = Beginning::current() {
        assignment.follow = assignment.follow.beginning(beginning.on_thread());
    }
    loop {
        match workers.run(lane, assignment.clone()).await {
            Ok(finished) => return Ok(finished.done),
            Err(Error::Failed(failure)) if failure.code == FailureCode::NoSpace => {
                return Err(StepError::Stop(OwnerError::Later(failure.message)));
            }
            Err(Error::Failed(failure)) => return Err(failure.into()),
            Err(Error::Busy) => tokio::time::sleep(BUSY_PAUSE).await,
            Err(Error::Unavailable(reason)) => {
                return Err(StepError::Stop(OwnerError::Later(reason)));
            }
        }
    }
}

/// Returns the facts of the first file that a task made.
pub(crate) fn first_output(done: Done) -> Result<OutputFacts, Failure> {
    let none = || Failure::internal("a task that makes a file made none");
    done.outputs.into_iter().next().ok_or_else(none)
}
