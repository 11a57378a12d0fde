//! Worker process of a live stream: start, socket, end. It has a thread of its own, with which the kernel ends it.

use std::{
    os::{fd::AsFd as _, unix::net::UnixStream as StdUnixStream},
    sync::Arc,
    thread,
    time::Duration,
};

use sluice_media::{
    av::AvTask,
    task::{Limits, Task},
};
use sluice_worker::{
    ProcessorTime,
    process::{JobError, JobRequest, Launch, WorkerProcess},
};
use tokio::{net::UnixStream, sync::oneshot};
use tracing::debug;

use super::{
    caller::{Caller, Watch},
    recovery::rejection,
    settings::Sandbox,
};

/// Longest time of a job: a live stream has no end, and its watchdog is the service.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);
/// Nothing is written to a file and nothing is rendered.
const LIMITS: Limits = Limits {
    max_pixels: 0,
    max_frames: 0,
    max_total_pixels: 0,
    max_output_bytes: 0,
    max_members: 0,
    max_duration_ms: 0,
    max_side: 0,
};

/// Reason why a process was not started.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum LiveStartError {
    #[error("{0}")]
    Failed(String),
    /// The machine lacks a layer of the sandbox or an element of GStreamer; neither comes while the service runs.
    #[error("{0}")]
    Impossible(String),
}

/// A worker that re-encodes a live stream. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct LiveProcess {
    id: u32,
    processor_time: ProcessorTime,
    ended: oneshot::Receiver<String>,
    _caller: Caller,
}

/// Elements without which no live stream is re-encoded.
const NEEDED: [&str; 3] = ["avdec_h264", "x264enc", "opusenc"];

impl LiveProcess {
    /// Starts one and waits until it is ready; returns our end of its socket too. May be dropped at any time.
    pub async fn start(
        launch: &Arc<Launch>,
        sandbox: Sandbox,
    ) -> Result<(Self, UnixStream), LiveStartError> {
        let failed = |error: std::io::Error| LiveStartError::Failed(error.to_string());
        let (ours, theirs) = StdUnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let socket = UnixStream::from_std(ours).map_err(failed)?;
        let (caller, watch) = Caller::new().map_err(failed)?;
        let (ready, is_ready) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let launch = launch.clone();
        thread::Builder::new()
            .name("live-worker".into())
            .spawn(move || match start(&launch, sandbox, &watch) {
                Ok(mut process) => {
                    let _ = ready.send(Ok((process.id(), process.processor_time())));
                    let _ = end.send(run(&mut process, theirs, &watch));
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })
            .map_err(failed)?;
        let (id, processor_time) = is_ready
            .await
            .map_err(|_| LiveStartError::Failed("its thread is gone".into()))??;
        debug!(process = id, "a live worker is ready");
        let this = Self {
            id,
            processor_time,
            ended,
            _caller: caller,
        };
        Ok((this, socket))
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the processor time that it has used.
    pub fn processor_time(&self) -> Option<Duration> {
        self.processor_time.used()
    }

    /// Waits for the end of the process, whose socket is closed, and returns the reason.
    pub async fn end(self) -> String {
        let Self { ended, .. } = self;
        ended.await.unwrap_or_else(|_| "its thread is gone".into())
    }
}

fn start(
    launch: &Launch,
    sandbox: Sandbox,
    watch: &Watch,
) -> Result<WorkerProcess, LiveStartError> {
    let process = WorkerProcess::start_for(launch, Some(watch.as_fd()))
        .map_err(|error| LiveStartError::Failed(error.to_string()))?;
    if let Some(reason) = rejection(sandbox, process.layers()) {
        return Err(LiveStartError::Impossible(reason));
    }
    let mut missing = process.missing_elements().iter();
    match missing.find(|name| NEEDED.contains(&name.as_str())) {
        Some(name) => Err(LiveStartError::Impossible(format!(
            "this machine has no GStreamer element {name}: `sluice doctor` says what is missing"
        ))),
        None => Ok(process),
    }
}

/// Runs the process until it ends or is cancelled; returns the reason.
fn run(process: &mut WorkerProcess, socket: StdUnixStream, watch: &Watch) -> String {
    let task = Task::Av(Box::new(AvTask::Live));
    let outcome = process.run(
        &JobRequest {
            task: &task,
            limits: LIMITS,
            inputs: &[socket.as_fd()],
            outputs: &[],
            timeout: LONGEST,
            stall: None,
            cancelled: watch.as_fd(),
        },
        &mut |_| {},
    );
    match outcome {
        Ok(_) => "it ended by itself".into(),
        Err(JobError::Failed(failure) | JobError::Limit(failure)) => failure.message,
        Err(JobError::Died(reason)) => reason,
        Err(JobError::Deadline | JobError::Cancelled) => "it was killed".into(),
    }
}
