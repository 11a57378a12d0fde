//! Work on video and audio (`av_workers.jobs`, `short_jobs`, `memory_total`): a worker process for each task, as many as
//! cores and memory allow.
//!
//! A task waits in the [process queue](process_queue), then has a thread and a process of its own. The thread lives as long
//! as the process, which the kernel ends with it. Dropping the future of a task ends both, or gives its place up. Nothing
//! runs when there is nothing to do.

mod attempt;
mod demand;
mod machine;
mod process_queue;
mod settings;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::Duration,
};

use sluice_media::task::Failure;
use sluice_worker::process::{self, Launch};
use tokio::sync::oneshot;

use super::{
    assignment::{Assignment, Error, Finished, Lane},
    caller::Caller,
    settings::Sandbox,
    status::VideoStatus,
};
use attempt::{AvRing, task_of};
use demand::Demand;
use process_queue::{ProcessQueue, Supply};

pub use settings::VideoSettings;

/// Longest start of a process; the first one writes GStreamer's registry of plug-ins.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Pause between the service's start and the writing of the registry of plug-ins, for work that begins with the start.
const WARM_UP_AFTER: Duration = Duration::from_secs(10);

/// The ring. Clones share it.
#[derive(Clone)]
pub(super) struct Ring {
    terms: Arc<AvRing>,
    line: ProcessQueue,
}

impl Ring {
    pub(super) fn new(
        settings: &VideoSettings,
        sandbox: Sandbox,
        program: PathBuf,
        registry: PathBuf,
    ) -> Self {
        let supply = Supply {
            short_slots: settings.short_jobs,
            long_slots: settings.job_count(),
            memory_bytes: match settings.memory_total.as_u64() {
                0 => machine::memory_bytes() / 2,
                bytes => bytes,
            },
            max_waiting: settings.queue,
        };
        let launch = launch(settings, program, registry);
        Self {
            terms: Arc::new(AvRing::new(launch, sandbox, settings.clone())),
            line: ProcessQueue::new(supply),
        }
    }

    /// Writes the registry of plug-ins after [`WARM_UP_AFTER`], so that the first task need not.
    pub(super) fn warm_up_later(&self) {
        let terms = Arc::downgrade(&self.terms);
        let warming = thread::Builder::new().name("av-warm-up".into());
        let started = warming.spawn(move || {
            thread::sleep(WARM_UP_AFTER);
            if let Some(terms) = terms.upgrade() {
                terms.warm_up();
            }
        });
        // Without a thread, the first task does it.
        drop(started);
    }

    /// Performs a task in a process of its own; see [`Compute::run`](super::Compute::run).
    pub(super) async fn run(&self, lane: Lane, assignment: Assignment) -> Result<Finished, Error> {
        let task =
            task_of(&assignment).ok_or_else(|| Failure::internal("no work on video or audio"))?;
        let demand = Demand::of(task, lane, assignment.pixels);
        let permit = self.line.enter(demand, &assignment.follow).await?;
        let (_caller, watch) = Caller::new().map_err(no_room)?;
        let (reply, answer) = oneshot::channel();
        let terms = self.terms.clone();
        let thread = thread::Builder::new().name("av-task".into());
        let started = thread.spawn(move || {
            let perform = || match task_of(&assignment) {
                Some(task) => terms.perform(task, &assignment, &watch),
                None => Err(Failure::internal("no work on video or audio").into()),
            };
            let outcome = catch_unwind(AssertUnwindSafe(perform)).unwrap_or_else(|_| {
                Err(Failure::internal("the task panicked in the service").into())
            });
            drop(assignment);
            drop(permit);
            // A caller that left needs no answer.
            let _ = reply.send(outcome);
        });
        started.map_err(no_room)?;
        answer
            .await
            .map_err(|_| Error::Unavailable("the thread of a task is gone".into()))?
    }

    pub(super) fn status(&self) -> VideoStatus {
        let state = &self.terms.state;
        VideoStatus {
            short: self.line.short(),
            long: self.line.long(),
            most_short: self.terms.settings.short_jobs,
            most_long: self.terms.settings.job_count(),
            ended: self.line.ended(),
            reports: self.terms.reports.load(Relaxed),
            retried: state.replaced.load(Relaxed),
            killed: state.killed.load(Relaxed),
            died: state.deaths(),
            last_death: state.last_death(),
            layers: state.layers(),
            refused: state.failure_reason(),
        }
    }
}

/// Returns the program, limits and time-out of a process; `sluice doctor` starts one the same way.
pub fn launch(settings: &VideoSettings, program: PathBuf, registry: PathBuf) -> Launch {
    Launch {
        program,
        memory_bytes: settings.memory.as_u64(),
        file_bytes: settings.max_output.as_u64(),
        ready_within: READY_WITHIN,
        ring: process::Ring::Av { registry },
    }
}

/// Makes the error of a task for which descriptors or threads have run out: that passes.
fn no_room(error: std::io::Error) -> Error {
    Error::Unavailable(format!("no room for a task: {error}"))
}
