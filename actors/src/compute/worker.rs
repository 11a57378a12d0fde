//! Thread of one image worker process: time-outs (`image_workers.timeout`, `document_timeout`), restart, recycling
//! (`recycle_after`, `recycle_above`).
//!
//! Nothing survives a restart of the thread's actor but the terms; the process ends with it. The mailbox is the arbiter's
//! own, without a bound: the [admission](super::admission) lets in one task for each worker.

use std::{
    os::fd::{AsFd, BorrowedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use actix::{Actor, Handler, Message, SyncContext};
use sluice_media::task::{Failure, FailureCode, Task};
use sluice_worker::process::{JobError, JobRequest, Launch, StartError, WorkerProcess};
use tokio::sync::oneshot;
use tracing::{debug, info, warn};

use super::{
    admission::Permit,
    assignment::{Assignment, Error, Finished},
    caller::Watch,
    output::Target,
    pool_state::PoolState,
    recovery::{self, ATTEMPTS, AfterFailure, ProcessUnavailable, rejection},
    settings::ComputeSettings,
};

/// Name of these processes in the log.
const RING: &str = "image";
/// Longest wait of a task for a worker that could not be started, while others of the pool are up.
const PATIENCE: Duration = Duration::from_secs(2);

/// State that all threads of a pool share.
#[derive(Debug)]
pub(super) struct ImageRing {
    pub(super) settings: ComputeSettings,
    pub(super) launch: Launch,
    pub(super) state: Arc<PoolState>,
}

impl ImageRing {
    /// Returns the setting that bounds the time of a task, and its value.
    fn timeout_of(&self, task: &Task) -> (&'static str, Duration) {
        let settings = &self.settings;
        match task.reads_document() && settings.document_timeout < settings.timeout {
            true => ("image_workers.document_timeout", settings.document_timeout),
            false => ("image_workers.timeout", settings.timeout),
        }
    }
}

/// A task and the callers that wait for it.
pub(super) struct Perform {
    pub(super) assignment: Assignment,
    pub(super) watch: Watch,
    pub(super) reply: oneshot::Sender<Result<Finished, Error>>,
    pub(super) permit: Permit,
}

impl Message for Perform {
    type Result = ();
}

/// Asks a thread to look whether its process is still there.
pub(super) struct LookAfter;

impl Message for LookAfter {
    type Result = ();
}

/// The actor of one thread.
pub(super) struct ImageWorker {
    terms: Arc<ImageRing>,
    process: Option<WorkerProcess>,
    /// Processes that this thread has had.
    had: u32,
    unavailable: Option<ProcessUnavailable>,
}

impl ImageWorker {
    pub(super) fn new(terms: Arc<ImageRing>) -> Self {
        Self {
            terms,
            process: None,
            had: 0,
            unavailable: None,
        }
    }
}

impl Actor for ImageWorker {
    type Context = SyncContext<Self>;

    fn started(&mut self, _: &mut Self::Context) {
        self.start_process();
    }
}

impl Handler<Perform> for ImageWorker {
    type Result = ();

    fn handle(&mut self, message: Perform, _: &mut Self::Context) {
        let Perform {
            assignment,
            watch,
            reply,
            permit,
        } = message;
        if reply.is_closed() {
            return;
        }
        // A panic that got out would end this thread for good.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.perform(&assignment, &watch)))
            .unwrap_or_else(|_| {
                self.kill_process();
                Err(Failure::internal("the task panicked in the service").into())
            });
        // A caller that left needs no answer.
        let _ = reply.send(outcome);
        drop(assignment);
        // The permit goes last: its next holder finds a worker that was checked or replaced.
        self.look_after();
        drop(permit);
    }
}

impl Handler<LookAfter> for ImageWorker {
    type Result = ();

    fn handle(&mut self, _: LookAfter, _: &mut Self::Context) {
        self.forget_dead();
        self.look_after();
    }
}

impl Drop for ImageWorker {
    fn drop(&mut self) {
        self.kill_process();
    }
}

impl ImageWorker {
    fn perform(&mut self, assignment: &Assignment, watch: &Watch) -> Result<Finished, Error> {
        let inputs: Vec<BorrowedFd<'_>> =
            assignment.inputs.iter().map(|file| file.as_fd()).collect();
        assignment.follow.begin()?;
        recovery::attempts(ATTEMPTS, |_| self.attempt(assignment, &inputs, watch))
    }

    fn attempt(
        &mut self,
        assignment: &Assignment,
        inputs: &[BorrowedFd<'_>],
        watch: &Watch,
    ) -> Result<Option<Finished>, Error> {
        let timeout = self.terms.timeout_of(&assignment.task).1;
        let target = Target::of(&assignment.output, &assignment.task)?;
        let outputs = target.descriptors();
        let outcome = self.ready(watch)?.run(
            &JobRequest {
                task: &assignment.task,
                limits: assignment.limits,
                inputs,
                outputs: &outputs,
                timeout,
                stall: None,
                cancelled: watch.as_fd(),
            },
            &mut |_| {},
        );
        match outcome {
            Ok(done) => {
                self.terms.state.finished();
                // A worker whose result cannot be read is not trusted any more.
                let bytes = target
                    .collect(assignment.limits.max_output_bytes)
                    .inspect_err(|_| self.kill_process())?;
                Ok(Some(Finished { done, bytes }))
            }
            Err(error) => match self.judge(error, &assignment.task) {
                AfterFailure::TryAgain => Ok(None),
                AfterFailure::Give(error) => Err(error),
            },
        }
    }

    fn judge(&mut self, error: JobError, task: &Task) -> AfterFailure {
        let is_healthy = match &error {
            JobError::Failed(failure)
                if failure.code == FailureCode::Undecodable && task.draws_text() =>
            {
                return self.doubt(failure.clone());
            }
            JobError::Failed(failure) => failure.code != FailureCode::Internal,
            _ => false,
        };
        if !is_healthy {
            self.kill_process();
        }
        let (setting, timeout) = self.terms.timeout_of(task);
        recovery::judge(error, &self.terms.state, RING, || {
            let seconds = timeout.as_secs_f32();
            format!("the task took longer than {seconds} s ({setting})")
        })
    }

    /// Judges a failure of text: an earlier document may have spoiled this process for text, which a fresh one shows.
    fn doubt(&mut self, failure: Failure) -> AfterFailure {
        let was_fresh = self.process.as_ref().is_some_and(|it| it.jobs() == 1);
        debug!(
            was_fresh,
            "a document did not decode; its worker is replaced"
        );
        self.kill_process();
        match was_fresh {
            true => {
                self.terms.state.finished();
                AfterFailure::Give(failure.into())
            }
            false => AfterFailure::TryAgain,
        }
    }

    /// The process, alive; waits for a new one where there is none.
    fn ready(&mut self, watch: &Watch) -> Result<&mut WorkerProcess, Error> {
        self.forget_dead();
        if self.process.is_none() {
            self.wait_for_retry(watch)?;
            self.start_process();
        }
        match (&mut self.process, &self.unavailable) {
            (Some(process), _) => Ok(process),
            (None, Some(unavailable)) => Err(unavailable.error()),
            (None, None) => Err(Error::Unavailable("there is no worker".into())),
        }
    }

    /// Drops a process that ended while it had no task.
    fn forget_dead(&mut self) {
        if let Some(process) = self.process.as_ref().filter(|it| !it.is_alive()) {
            warn!(
                process = process.id(),
                "an image worker ended while it had no task"
            );
            self.terms.state.died_idle();
            self.kill_process();
        }
    }

    /// Waits until the next start may be tried, [`PATIENCE`] at most; fails at once when no other worker is up.
    fn wait_for_retry(&self, watch: &Watch) -> Result<(), Error> {
        let Some(unavailable) = &self.unavailable else {
            return Ok(());
        };
        let left = unavailable.left().ok_or_else(|| unavailable.error())?;
        if left.is_zero() {
            return Ok(());
        }
        if self.terms.state.workers.load(Relaxed) == 0 || watch.has_left_within(left.min(PATIENCE))
        {
            return Err(unavailable.error());
        }
        Ok(())
    }

    /// Starts a process; when that fails, the reason is noted in its place.
    fn start_process(&mut self) {
        let started = Instant::now();
        match WorkerProcess::start(&self.terms.launch) {
            Ok(process) => self.accept(process, started),
            Err(error) => self.note_start_failure(&error),
        }
    }

    fn accept(&mut self, process: WorkerProcess, started: Instant) {
        let (state, layers) = (&self.terms.state, process.layers().clone());
        if let Some(reason) = rejection(self.terms.settings.sandbox, &layers) {
            warn!(reason, "images are not processed");
            state.refused(layers, reason.clone());
            self.unavailable = Some(ProcessUnavailable::for_good(reason));
            return;
        }
        debug!(
            process = process.id(),
            ready_after = ?started.elapsed(),
            "an image worker is ready"
        );
        state.started(layers);
        if self.had > 0 {
            state.replaced.fetch_add(1, Relaxed);
        }
        self.had += 1;
        self.unavailable = None;
        state.note_up(process.id());
        self.process = Some(process);
    }

    fn note_start_failure(&mut self, error: &StartError) {
        self.terms.state.not_started(error.to_string());
        self.unavailable = Some(ProcessUnavailable::after(
            self.unavailable.as_ref(),
            error,
            RING,
        ));
    }

    fn kill_process(&mut self) {
        if let Some(process) = self.process.take() {
            // First: it would count as one that ended by itself.
            self.terms.state.note_gone(process.id());
            drop(process);
            self.terms.state.ended();
        }
    }

    /// Replaces a process that is gone, has done many tasks or has grown large; between tasks, before the next may come.
    fn look_after(&mut self) {
        if let Some(process) = &self.process
            && self.is_worn_out(process)
        {
            info!(
                jobs = process.jobs(),
                resident = process.resident_bytes(),
                "an image worker is recycled"
            );
            self.kill_process();
        }
        if self.process.is_none() && self.unavailable.is_none() {
            self.start_process();
        }
    }

    fn is_worn_out(&self, process: &WorkerProcess) -> bool {
        let resident = process.resident_bytes().unwrap_or(0);
        let settings = &self.terms.settings;
        process.jobs() >= settings.recycle_after || resident > settings.recycle_above.as_u64()
    }
}
