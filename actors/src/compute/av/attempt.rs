//! One attempt at work on video or audio: a fresh process, ended for its time (`av_workers.timeout`) or its silence
//! (`av_workers.stall`).

use std::{
    cell::Cell,
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_media::{
    av::{AvTask, Report},
    task::{Done, Limits, Task},
};
use sluice_worker::process::{JobRequest, Launch, StartError, WorkerProcess};
use tracing::{debug, info, warn};

use super::settings::VideoSettings;
use crate::compute::{
    assignment::{Assignment, Error, Finished, Output},
    caller::Watch,
    output::Target,
    pool_state::PoolState,
    recovery::{self, ATTEMPTS, AfterFailure, ProcessUnavailable, abandoned, rejection},
    settings::Sandbox,
};

/// Name of these processes in the log.
const RING: &str = "video";

/// State that all tasks of the ring share.
#[derive(Debug)]
pub(super) struct AvRing {
    pub(super) launch: Launch,
    pub(super) sandbox: Sandbox,
    pub(super) settings: VideoSettings,
    pub(super) state: PoolState,
    /// Reports since the start.
    pub(super) reports: AtomicU64,
    unavailable: Mutex<Option<ProcessUnavailable>>,
}

/// A process, counted while it is up.
struct Counted<'t> {
    process: WorkerProcess,
    state: &'t PoolState,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.state.ended();
    }
}

impl AvRing {
    pub(super) fn new(launch: Launch, sandbox: Sandbox, settings: VideoSettings) -> Self {
        Self {
            launch,
            sandbox,
            settings,
            state: PoolState::default(),
            reports: AtomicU64::new(0),
            unavailable: Mutex::new(None),
        }
    }

    /// Starts a process and ends it: GStreamer's registry of plug-ins is written then, and what is missing is known.
    pub(super) fn warm_up(&self) {
        let started = Instant::now();
        if self.start(None).is_ok() {
            debug!(took = ?started.elapsed(), "the registry of plug-ins is warm");
        }
    }

    /// Performs a task, in a second process if the first dies and the cause is unknown. A ladder is not tried again: its
    /// files have grown, and their owner knows where they end.
    pub(super) fn perform(
        &self,
        task: &AvTask,
        assignment: &Assignment,
        watch: &Watch,
    ) -> Result<Finished, Error> {
        let most = match task {
            AvTask::Ladder(_) => 1,
            _ => ATTEMPTS,
        };
        assignment.follow.begin()?;
        let began = Instant::now();
        let is_long = !task.is_short();
        if is_long {
            info!(work = task.name(), "work on a clip begins");
        }
        let outcome = recovery::attempts(most, |number| {
            if number > 1 {
                self.state.replaced.fetch_add(1, Relaxed);
            }
            self.attempt(assignment, watch)
        });
        if is_long {
            log_end(task, &outcome, began.elapsed());
        }
        outcome
    }

    fn attempt(&self, assignment: &Assignment, watch: &Watch) -> Result<Option<Finished>, Error> {
        let target = Target::of(&assignment.output, &assignment.task)?;
        let (inputs, outputs): (Vec<BorrowedFd<'_>>, _) = (
            assignment.inputs.iter().map(|file| file.as_fd()).collect(),
            target.descriptors(),
        );
        let limits = self.limits(assignment);
        let mut counted = self.start(Some(watch))?;
        let order = JobRequest {
            task: &assignment.task,
            limits,
            inputs: &inputs,
            outputs: &outputs,
            timeout: self.settings.timeout,
            stall: Some(self.settings.stall),
            cancelled: watch.as_fd(),
        };
        let (began, share) = (Instant::now(), Cell::new(0.0_f32));
        let outcome = counted.process.run(&order, &mut |report| {
            self.reports.fetch_add(1, Relaxed);
            if let Some(report) = heard(report, &share) {
                assignment.follow.report(report);
            }
        });
        drop(counted);
        match outcome {
            Ok(done) => {
                self.state.finished();
                let bytes = target.collect(limits.max_output_bytes)?;
                Ok(Some(Finished { done, bytes }))
            }
            Err(error) => {
                let overtime = || self.overtime(began.elapsed(), share.get());
                match recovery::judge(error, &self.state, RING, overtime) {
                    AfterFailure::TryAgain => Ok(None),
                    AfterFailure::Give(error) => Err(error),
                }
            }
        }
    }

    /// Returns the limits of clips. Files may be as large as `av_workers.max_output`; results in memory are bounded as
    /// those of images.
    fn limits(&self, assignment: &Assignment) -> Limits {
        let longest = self.settings.max_duration.as_millis();
        let mut limits = Limits {
            max_duration_ms: u64::try_from(longest).unwrap_or(u64::MAX),
            max_side: self.settings.max_side,
            ..assignment.limits
        };
        if let Output::Files(_) = assignment.output {
            limits.max_output_bytes = self.settings.max_output.as_u64();
        }
        limits
    }

    /// Returns the message for a task that was ended for its time, or for its silence.
    fn overtime(&self, took: Duration, share: f32) -> String {
        let percent = (share * 100.0) as u8;
        let VideoSettings { timeout, stall, .. } = self.settings;
        match took >= timeout {
            true => format!(
                "the task took longer than {timeout:?} (av_workers.timeout), and was {percent} % done"
            ),
            false => format!(
                "the task made no progress for {stall:?} (av_workers.stall), after {percent} % were done"
            ),
        }
    }

    /// Starts a process and waits until it is ready. Fails at once for a while after a failed start.
    fn start(&self, watch: Option<&Watch>) -> Result<Counted<'_>, Error> {
        if let Some(unavailable) = &*self.unavailable.lock()
            && unavailable.left().is_none_or(|left| !left.is_zero())
        {
            return Err(unavailable.error());
        }
        let cancelled = watch.map(AsFd::as_fd);
        match WorkerProcess::start_for(&self.launch, cancelled) {
            Ok(process) => self.accept(process),
            Err(StartError::Cancelled) => Err(abandoned()),
            Err(error) => {
                self.state.not_started(error.to_string());
                let mut unavailable = self.unavailable.lock();
                let now = ProcessUnavailable::after(unavailable.as_ref(), &error, RING);
                Err(unavailable.insert(now).error())
            }
        }
    }

    fn accept(&self, process: WorkerProcess) -> Result<Counted<'_>, Error> {
        let layers = process.layers().clone();
        if let Some(reason) = rejection(self.sandbox, &layers) {
            warn!(reason, "video and audio are not processed");
            self.state.refused(layers, reason.clone());
            return Err(self
                .unavailable
                .lock()
                .insert(ProcessUnavailable::for_good(reason))
                .error());
        }
        self.state.started(layers);
        *self.unavailable.lock() = None;
        Ok(Counted {
            process,
            state: &self.state,
        })
    }
}

/// Returns a process's report with a progress that never falls; its place in the queue is not its own to report.
fn heard(report: Report, so_far: &Cell<f32>) -> Option<Report> {
    match report {
        Report::Waiting { .. } => None,
        Report::Working { share } => {
            // Both ways round, so that what is no number is nothing done.
            let share = so_far.get().max(share).min(1.0);
            so_far.set(share);
            Some(Report::Working { share })
        }
        made => Some(made),
    }
}

/// Logs the end of a long task.
fn log_end(task: &AvTask, outcome: &Result<Finished, Error>, took: Duration) {
    let (work, took_s) = (task.name(), rounded(took.as_secs_f32()));
    match outcome {
        Ok(Finished { done, .. }) => {
            let source = done.media.as_ref().map(|media| media.container.as_str());
            let speed = media_s(done).map(|media_s| rounded(media_s / took.as_secs_f32()));
            info!(work, source, took_s, speed, "work on a clip is done");
        }
        Err(error) => info!(work, took_s, %error, "work on a clip has ended without a result"),
    }
}

/// Rounds to two decimals, for the log.
fn rounded(number: f32) -> f32 {
    (number * 100.0).round() / 100.0
}

/// Returns the duration of the result, or else of the source.
fn media_s(done: &Done) -> Option<f32> {
    let made = done.outputs.iter().find_map(|output| output.duration_ms);
    let read = || done.media.as_ref().and_then(|media| media.duration_ms);
    made.or_else(read)
        .map(|milliseconds| milliseconds as f32 / 1_000.0)
}

/// Returns the task of an assignment of this ring.
pub(super) fn task_of(assignment: &Assignment) -> Option<&AvTask> {
    match &assignment.task {
        Task::Av(task) => Some(task),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_believed_how_far_it_is_and_nothing_else() {
        let so_far = Cell::new(0.0);
        let mut shares = Vec::new();
        for reported in [0.2, 0.1, f32::NAN, -1.0, 0.5, f32::INFINITY, 0.7] {
            match heard(Report::Working { share: reported }, &so_far) {
                Some(Report::Working { share }) => shares.push(share),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(shares, [0.2, 0.2, 0.2, 0.2, 0.5, 1.0, 1.0]);
        assert_eq!(heard(Report::Waiting { place: 1 }, &so_far), None);
    }
}
