//! Image workers and [video and audio workers](av): start of the processes, task to worker, degradations in `/readyz`,
//! metrics.
//!
//! Each thread of an actix `SyncArbiter` owns one worker process and blocks on it. A task comes through the
//! [admission](admission) to a thread that is free, with a deadline; when it is over, or when its caller leaves, the process
//! is killed and replaced. What a file does to its process is that process's end and no other's.

mod admission;
mod assignment;
mod av;
mod caller;
#[cfg(test)]
mod library_contract;
mod live;
mod output;
mod pool_state;
mod recovery;
mod settings;
mod status;
mod worker;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::Duration,
};

use actix::{Addr, SyncArbiter, System};
use futures_util::future::{BoxFuture, ready};
use sluice_media::task::{Limits, Task};
use sluice_worker::process::{Launch, Ring};
use tokio::sync::oneshot;

use admission::{AdmissionQueue, Ticket};
pub use assignment::{Assignment, Error, Finished, Follow, Lane, Output};
pub use av::{VideoSettings, launch as launch_av};
use caller::Caller;
pub(crate) use live::{LiveProcess, LiveStartError};
pub(crate) use output::count as count_outputs;
use pool_state::PoolState;
pub use settings::{ComputeSettings, Sandbox};
pub use status::{PoolStatus, QueueStatus, VideoStatus, WorkerDeath};
use worker::{ImageRing, ImageWorker, LookAfter, Perform};

use crate::{
    metric::Metric,
    subsystem::{Degradation, Subsystem},
};

/// Longest start of an image worker, in which it loads its codecs on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// The handle of the pool. Clones share it; the workers end with the last.
#[derive(Clone)]
pub struct Compute {
    /// `None` without an actix system, which only tests are.
    workers: Option<Addr<ImageWorker>>,
    admission: AdmissionQueue,
    av: av::Ring,
    state: Arc<PoolState>,
    limits: Limits,
    /// Image workers by the settings.
    most: usize,
}

impl Compute {
    /// Starts the arbiter threads; each spawns its worker process (`program worker`) at once and replaces it when it ends.
    ///
    /// Waits for none of them. A program that does not start is tried again with back-off when there is work.
    pub fn start(
        settings: &ComputeSettings,
        video: &VideoSettings,
        program: PathBuf,
        registry: PathBuf,
    ) -> Self {
        let threads = settings.worker_count();
        let state = Arc::new(PoolState::default());
        let av = av::Ring::new(video, settings.sandbox, program.clone(), registry);
        let terms = Arc::new(ImageRing {
            settings: settings.clone(),
            launch: launch(settings, program),
            state: state.clone(),
        });
        if System::try_current().is_some() {
            av.warm_up_later();
        }
        let workers = System::try_current().map(|_| {
            let named = || thread::Builder::new().name("image-worker".into());
            SyncArbiter::start_with_thread_builder(threads, named, move || {
                ImageWorker::new(terms.clone())
            })
        });
        Self {
            workers,
            admission: AdmissionQueue::new(settings),
            av,
            state,
            limits: settings.limits(),
            most: threads,
        }
    }

    /// Performs a task in a worker. Dropping the future cancels it: what waits is skipped, what runs is killed.
    ///
    /// A task whose worker dies without an explanation is tried once more; after a second death it fails with
    /// [`DecodeFailed`](sluice_media::task::FailureCode::DecodeFailed). A ladder fails so after the first: its owner
    /// knows where to continue.
    pub async fn run(&self, lane: Lane, assignment: Assignment) -> Result<Finished, Error> {
        if let Task::Av(_) = assignment.task {
            return self.av.run(lane, assignment).await;
        }
        let gone = || Error::Unavailable("there are no image workers".into());
        let workers = self.workers.as_ref().ok_or_else(gone)?;
        let ticket = Ticket::of(assignment.account_id, lane, &assignment.task);
        let permit = self.admission.enter(ticket).await?;
        let (_caller, watch) = Caller::new()
            .map_err(|error| Error::Unavailable(format!("no descriptor for a task: {error}")))?;
        let (reply, answer) = oneshot::channel();
        workers.do_send(Perform {
            assignment,
            watch,
            reply,
            permit,
        });
        answer.await.map_err(|_| gone())?
    }

    /// Replaces image workers that ended while they had no task: their threads wait for messages and notice nothing. Called
    /// each second.
    pub fn replace_dead(&self) {
        let Some(workers) = &self.workers else { return };
        if self.state.has_dead() {
            // Any thread may take a message; those whose process is there have nothing to do.
            for _ in 0..self.most {
                workers.do_send(LookAfter);
            }
        }
    }

    /// Returns the limits of a task, by the settings.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the state of the pool at this moment; costs no message.
    pub fn status(&self) -> PoolStatus {
        PoolStatus {
            workers: self.state.workers.load(Relaxed),
            most: self.most,
            busy: self.admission.busy(),
            waiting: self.admission.waiting(),
            oldest_wait: self.admission.oldest_wait(),
            ended: self.admission.ended(),
            replaced: self.state.replaced.load(Relaxed),
            killed: self.state.killed.load(Relaxed),
            died: self.state.deaths(),
            last_death: self.state.last_death(),
            layers: self.state.layers(),
            refused: self.state.failure_reason(),
            video: self.av.status(),
        }
    }
}

impl Subsystem for Compute {
    fn name(&self) -> &'static str {
        "compute"
    }

    fn degradations(&self) -> Vec<Degradation> {
        let status = self.status();
        [
            ("image workers", status.refused),
            ("video", status.video.refused),
        ]
        .into_iter()
        .filter_map(|(name, refused)| {
            Some(Degradation {
                name,
                reason: refused?,
            })
        })
        .collect()
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, crate::Error>> {
        Box::pin(ready(Ok(self.status().metrics())))
    }
}

/// Returns the program, limits and time-out of an image worker; `sluice doctor` starts one the same way.
pub fn launch(settings: &ComputeSettings, program: PathBuf) -> Launch {
    Launch {
        program,
        memory_bytes: settings.memory.as_u64(),
        file_bytes: settings.max_output.as_u64(),
        ready_within: READY_WITHIN,
        ring: Ring::Image,
    }
}
