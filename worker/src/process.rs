//! The service's handle of one worker process: spawn, environment, one job at a time, deadline, silence, kill.
//!
//! A worker is trusted with nothing but its job: it starts with an empty environment and no descriptor but its end of the
//! [`Channel`] (as standard input) and a pipe for what libraries print. Dropping the handle kills and reaps it.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::BorrowedFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use bytesize::ByteSize;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal, kill_process_group},
};
use sluice_media::{
    av::Report,
    task::{Done, Failure, FailureCode, Limits, Task},
};
use tracing::debug;

use crate::{
    channel::{Channel, ChannelError, Patience},
    postmortem::{End, Limit, StderrTail},
    protocol::{Job, Layers, Reply, VERSION},
    resident::{ProcessorTime, Resident},
};

/// Environment of a worker, beside the search path.
///
/// libvips says nothing about damaged files; two arenas keep memory flat where each thread of a codec would make one;
/// GLib looks for no desktop; names of files are UTF-8.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("VIPS_WARNING", "0"),
    ("MALLOC_ARENA_MAX", "2"),
    ("GIO_USE_VFS", "local"),
    ("GIO_USE_VOLUME_MONITOR", "unix"),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C.UTF-8"),
];
/// A job may use this much processor time for each second it may last: codecs have threads.
const CPU_PER_SECOND: u64 = 2;

/// Most files of one task: the kernel passes at most 253 descriptors in a message.
const MOST_FILES: usize = 250;

/// Settings for the start of workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// A program that answers to `worker`, as this service's own does.
    pub program: PathBuf,
    /// The address space that a worker may use, in bytes.
    pub memory_bytes: u64,
    /// The largest file that it may write.
    pub file_bytes: u64,
    /// From the start until it must be ready.
    pub ready_within: Duration,
    pub ring: Ring,
}

/// Codecs that a worker loads before it enters its sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ring {
    /// libvips and its like: any number of tasks, one after the other.
    Image,
    /// GStreamer beside them: one task, then it ends. `registry`: where GStreamer keeps what it knows of its plug-ins.
    Av { registry: PathBuf },
    /// Same as `Av` for a live stream, which is watched while it is made: a better turn.
    Live { registry: PathBuf },
}

/// A job with its descriptors.
#[derive(Clone, Copy, Debug)]
pub struct JobRequest<'a> {
    pub task: &'a Task,
    pub limits: Limits,
    pub inputs: &'a [BorrowedFd<'a>],
    pub outputs: &'a [BorrowedFd<'a>],
    pub timeout: Duration,
    /// The longest silence between two reports; `None`: the task makes none.
    pub stall: Option<Duration>,
    /// The job is given up as soon as this can be read.
    pub cancelled: BorrowedFd<'a>,
}

/// Reason why a job has no result. After all but `Failed` the process is gone.
#[derive(Debug)]
pub enum JobError {
    /// The worker says so, and is ready for more, unless the code is [`FailureCode::Internal`].
    Failed(Failure),
    /// A limit ended the process; trying again would end the next.
    Limit(Failure),
    /// The process ended, the cause is unknown.
    Died(String),
    /// The deadline passed; the process was killed.
    Deadline,
    /// The task was cancelled; the process was killed.
    Cancelled,
}

/// Reason why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{program} cannot be started: {source}")]
    Spawn { program: String, source: io::Error },
    #[error("the worker was not ready: {0}")]
    NotReady(String),
    #[error("no caller waits any more")]
    Cancelled,
}

/// A worker that is ready.
#[derive(Debug)]
pub struct WorkerProcess {
    child: Child,
    channel: Channel,
    stderr_tail: StderrTail,
    resident: Resident,
    layers: Layers,
    missing_elements: Vec<String>,
    launch: Launch,
    jobs: u32,
}

impl Ring {
    fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Image => Vec::new(),
            Self::Av { registry } => vec!["--av-registry".into(), registry.into()],
            Self::Live { registry } => {
                vec!["--live".into(), "--av-registry".into(), registry.into()]
            }
        }
    }

    /// Returns the variable of its environment beside those of every worker.
    fn environment(&self) -> Option<(&'static str, &OsStr)> {
        match self {
            Self::Image => None,
            Self::Av { registry } | Self::Live { registry } => {
                Some(("GST_REGISTRY", registry.as_os_str()))
            }
        }
    }

    /// The section of the settings that bounds it.
    fn section(&self) -> &'static str {
        match self {
            Self::Image => "image_workers",
            Self::Av { .. } | Self::Live { .. } => "av_workers",
        }
    }

    /// Processor time that a job may use for each second it may last: encoders of video keep every core busy.
    fn cpu_per_second(&self) -> u64 {
        match self {
            Self::Image => CPU_PER_SECOND,
            Self::Av { .. } | Self::Live { .. } => thread::available_parallelism()
                .map_or(CPU_PER_SECOND, |cores| cores.get() as u64)
                .max(CPU_PER_SECOND),
        }
    }
}

impl WorkerProcess {
    /// Starts a worker and waits until it is ready. The worker ends with the calling thread.
    pub fn start(launch: &Launch) -> Result<Self, StartError> {
        Self::start_for(launch, None)
    }

    /// Starts a worker as [`start`](Self::start) does, and gives up as soon as `cancelled` can be read.
    pub fn start_for(
        launch: &Launch,
        cancelled: Option<BorrowedFd<'_>>,
    ) -> Result<Self, StartError> {
        let until = Instant::now() + launch.ready_within;
        let (child, channel, stderr_tail) = spawn(launch).map_err(|source| StartError::Spawn {
            program: launch.program.display().to_string(),
            source,
        })?;
        let mut worker = Self {
            resident: Resident::of(child.id()),
            child,
            channel,
            stderr_tail,
            layers: Layers::default(),
            missing_elements: Vec::new(),
            launch: launch.clone(),
            jobs: 0,
        };
        let patience = Patience {
            until: Some(until),
            cancelled,
        };
        match worker.receive(patience) {
            Ok(Reply::Ready {
                version,
                layers,
                missing_elements,
            }) if version == VERSION => {
                worker.layers = layers;
                worker.missing_elements = missing_elements;
                Ok(worker)
            }
            Ok(Reply::Ready { version, .. }) => Err(StartError::NotReady(format!(
                "it speaks version {version} of the job protocol, this is {VERSION}: another program has replaced this one"
            ))),
            Ok(_) => Err(StartError::NotReady("it answered without a task".into())),
            Err(ChannelError::Closed) => Err(StartError::NotReady(worker.end().to_string())),
            Err(ChannelError::Cancelled) => Err(StartError::Cancelled),
            Err(error) => Err(StartError::NotReady(error.to_string())),
        }
    }

    /// Returns the layers of the sandbox that are in force.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Elements of GStreamer that work on video and audio needs and this machine lacks.
    pub fn missing_elements(&self) -> &[String] {
        &self.missing_elements
    }

    /// Jobs that were begun.
    pub fn jobs(&self) -> u32 {
        self.jobs
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the resident memory; `None` where the kernel does not report it.
    pub fn resident_bytes(&self) -> Option<u64> {
        self.resident.bytes()
    }

    /// Returns the handle of the processor time that it uses.
    pub fn processor_time(&self) -> ProcessorTime {
        ProcessorTime::of(self.child.id())
    }

    /// Returns whether the process still listens.
    pub fn is_alive(&self) -> bool {
        self.channel.is_open()
    }

    /// Performs a job and blocks until it ends, one way or another; `on_report` receives its reports meanwhile, and may
    /// block.
    pub fn run(
        &mut self,
        order: &JobRequest<'_>,
        on_report: &mut dyn FnMut(Report),
    ) -> Result<Done, JobError> {
        self.jobs += 1;
        // What was printed between jobs would hide what a death prints.
        self.stderr_tail.forget();
        let job = self.job(order)?;
        let until = Instant::now() + order.timeout;
        let patience = || Patience {
            until: Some(match order.stall {
                Some(stall) => until.min(Instant::now() + stall),
                None => until,
            }),
            cancelled: Some(order.cancelled),
        };
        let descriptors = [order.inputs, order.outputs].concat();
        let mut answer = self
            .channel
            .send(&job, &descriptors, patience())
            .and_then(|()| self.receive(patience()));
        while let Ok(Reply::Reported { id, report }) = answer {
            if id == job.id {
                on_report(report);
            }
            // What has come is received whatever the hour: one that never falls silent is not waited for.
            answer = match over(order, until) {
                Some(end) => Err(end),
                None => self.receive(patience()),
            };
        }
        match answer {
            Ok(Reply::Done { id, done }) if id == job.id => Ok(*done),
            Ok(Reply::Failed { id, failure }) if id == job.id => Err(JobError::Failed(failure)),
            Ok(_) => {
                self.kill();
                Err(JobError::Died("it answered without a task".into()))
            }
            Err(ChannelError::TimedOut) => {
                self.kill();
                Err(JobError::Deadline)
            }
            Err(ChannelError::Cancelled) => {
                self.kill();
                Err(JobError::Cancelled)
            }
            Err(ChannelError::Closed) => Err(self.explain(job.cpu_seconds)),
            Err(error) => {
                self.kill();
                Err(JobError::Died(error.to_string()))
            }
        }
    }

    fn receive(&self, patience: Patience<'_>) -> Result<Reply, ChannelError> {
        Reply::parse(&self.channel.receive_frame(patience)?).map_err(ChannelError::Malformed)
    }

    fn job(&self, order: &JobRequest<'_>) -> Result<Job, JobError> {
        let count = |descriptors: &[BorrowedFd<'_>]| {
            let fits = descriptors.len() <= MOST_FILES;
            let count = u8::try_from(descriptors.len()).ok().filter(|_| fits);
            count.ok_or_else(|| {
                JobError::Failed(Failure::new(
                    FailureCode::TooLarge,
                    format!(
                        "{} files, at most {MOST_FILES} go into one task",
                        descriptors.len()
                    ),
                ))
            })
        };
        let cpu_seconds =
            (order.timeout.as_secs() + 1).saturating_mul(self.launch.ring.cpu_per_second());
        Ok(Job {
            version: VERSION,
            id: u64::from(self.jobs),
            task: order.task.clone(),
            limits: order.limits,
            inputs: count(order.inputs)?,
            outputs: count(order.outputs)?,
            cpu_seconds: u32::try_from(cpu_seconds).unwrap_or(u32::MAX),
        })
    }

    /// Explains the end of the process for the job.
    fn explain(&mut self, cpu_seconds: u32) -> JobError {
        let end = self.end();
        match end.limit() {
            Some(Limit::Processor) => JobError::Limit(Failure::new(
                FailureCode::TimedOut,
                format!("the task took more than {cpu_seconds} seconds of processor time"),
            )),
            Some(Limit::FileSize) => JobError::Limit(Failure::new(
                FailureCode::TooLarge,
                format!(
                    "the result is larger than {} ({}.max_output)",
                    ByteSize::b(self.launch.file_bytes),
                    self.launch.ring.section()
                ),
            )),
            Some(Limit::Memory) => JobError::Limit(Failure::new(
                FailureCode::TooLarge,
                format!(
                    "the task takes more memory than {} ({}.memory)",
                    ByteSize::b(self.launch.memory_bytes),
                    self.launch.ring.section()
                ),
            )),
            None => JobError::Died(end.to_string()),
        }
    }

    /// Ends and reaps the process. One that is dying already keeps the cause of its death.
    fn end(&mut self) -> End {
        let status = self.kill();
        let printed = self.stderr_tail.take();
        debug!(worker = self.child.id(), ?status, printed, "a worker ended");
        End { status, printed }
    }

    fn kill(&mut self) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Whatever it started belongs to its group. A process that is gone is no failure.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // Without seccomp it may have left its group, and would be waited for without an end.
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

/// Returns why a worker that sends is not read any more.
fn over(order: &JobRequest<'_>, until: Instant) -> Option<ChannelError> {
    let mut cancelled = [PollFd::from_borrowed_fd(order.cancelled, PollFlags::IN)];
    if poll(&mut cancelled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
        return Some(ChannelError::Cancelled);
    }
    (Instant::now() >= until).then_some(ChannelError::TimedOut)
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(launch: &Launch) -> io::Result<(Child, Channel, StderrTail)> {
    let (channel, theirs) = Channel::pair()?;
    let (stderr_tail, printing) = StderrTail::new()?;
    let child = Command::new(&launch.program)
        .arg0("sluice")
        .arg("worker")
        .args(["--parent", &std::process::id().to_string()])
        .args(["--memory", &launch.memory_bytes.to_string()])
        .args(["--file-size", &launch.file_bytes.to_string()])
        .args(launch.ring.arguments())
        .env_clear()
        .envs(ENVIRONMENT)
        .envs(launch.ring.environment())
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .current_dir("/")
        .process_group(0)
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(printing)
        .spawn()?;
    Ok((child, channel, stderr_tail))
}
