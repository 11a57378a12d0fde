//! Main loop of a worker: loads the codecs, enters the sandbox, then performs one job after the other and writes the
//! results.
//!
//! It ends when the service closes its end of the channel, and after a panic, since the state that it left is unknown.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::{fd::AsFd as _, fd::OwnedFd, unix::fs::FileExt},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

#[cfg(debug_assertions)]
use sluice_media::av::Report;
use sluice_media::task::{Done, Failure, FailureCode, Task};

#[cfg(debug_assertions)]
use crate::faults::{self, InjectedFault};
use crate::{
    av,
    channel::{Channel, ChannelError, Patience},
    descriptors::{self, Mapped},
    image::ImageProcessor,
    protocol::{Job, Reply, VERSION},
    sandbox::{
        self, Choice,
        limits::{self, Bounds},
        own,
    },
};

/// Arguments with which the service starts a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// The service's process id.
    pub parent: u32,
    pub bounds: Bounds,
    /// File of GStreamer's registry of plug-ins; `None`: a worker for images.
    pub av_registry: Option<PathBuf>,
    /// True for a worker of a live stream.
    pub is_live: bool,
    /// For tests: inputs may ask for misbehaviour ([`faults`]).
    #[cfg(debug_assertions)]
    pub faults: bool,
}

/// Reason why a worker ends otherwise than on the service's request.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The service sees a death, whose cause the panic has printed, and decides about the task as after a crash.
    #[error("the media code panicked")]
    Panicked,
}

/// Next action after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Job,
    End,
}

/// Serves the channel that is this process's standard input until the service closes it.
pub fn serve(args: Args) -> Result<(), ServeError> {
    descriptors::close_inherited()?;
    own::step_back(args.is_live);
    let channel = Channel::new(io::stdin().as_fd().try_clone_to_owned()?);
    let processor = ImageProcessor::new();
    let mut missing_elements = Vec::new();
    if let Some(registry) = &args.av_registry {
        av::start(registry)?;
        missing_elements.extend(av::missing().into_iter().map(String::from));
    }
    let layers = sandbox::enter(Choice::ALL, args.bounds, Some(args.parent))?;
    let ready = Reply::Ready {
        version: VERSION,
        layers,
        missing_elements,
    };
    channel.send(&ready, &[], Patience::default())?;
    let mut worker = Worker {
        processor,
        #[cfg(debug_assertions)]
        faults: args.faults,
    };
    loop {
        let (job, descriptors) = match channel.receive_with_descriptors(Patience::default()) {
            Ok(received) => received,
            Err(ChannelError::Closed) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (reply, next) = worker
            .answer(&job, descriptors, &channel)
            .ok_or(ServeError::Panicked)?;
        send(&channel, &job, &reply)?;
        if next == Next::End {
            return Ok(());
        }
    }
}

/// Sends a reply, or a failure where it does not fit into a message.
fn send(channel: &Channel, job: &Job, reply: &Reply) -> Result<(), ChannelError> {
    match channel.send(reply, &[], Patience::default()) {
        Err(ChannelError::Malformed(_)) => {
            let failure = Failure::new(
                FailureCode::TooLarge,
                "what is known of this file is too long for one answer",
            );
            let reply = Reply::Failed {
                id: job.id,
                failure,
            };
            channel.send(&reply, &[], Patience::default())
        }
        sent => sent,
    }
}

struct Worker {
    processor: ImageProcessor,
    #[cfg(debug_assertions)]
    faults: bool,
}

impl Worker {
    /// Performs a job; `None` after a panic.
    fn answer(
        &mut self,
        job: &Job,
        descriptors: Vec<OwnedFd>,
        channel: &Channel,
    ) -> Option<(Reply, Next)> {
        let performed = catch_unwind(AssertUnwindSafe(|| self.perform(job, descriptors, channel)));
        let result = performed.ok()?;
        let next = match &job.task {
            Task::Av(_) => Next::End,
            _ => Next::Job,
        };
        let reply = match result {
            Ok(done) => Reply::Done {
                id: job.id,
                done: Box::new(done),
            },
            Err(failure) => Reply::Failed {
                id: job.id,
                failure,
            },
        };
        Some((reply, next))
    }

    fn perform(
        &mut self,
        job: &Job,
        mut descriptors: Vec<OwnedFd>,
        channel: &Channel,
    ) -> Result<Done, Failure> {
        check(job, descriptors.len())?;
        limits::allow_processor(job.cpu_seconds).map_err(|error| {
            Failure::internal(format!("the processor time cannot be bounded: {error}"))
        })?;
        let outputs = descriptors.split_off(job.inputs.into());
        if let Task::Av(task) = &job.task {
            let mut on_report = |report| {
                let reply = Reply::Reported { id: job.id, report };
                // A service that does not listen any more ends this process by itself.
                let _ = channel.send(&reply, &[], Patience::default());
            };
            #[cfg(debug_assertions)]
            self.misbehave(
                descriptors.first().and_then(faults::asked_by),
                &mut on_report,
            );
            return av::perform(task, descriptors, outputs, &job.limits, &mut on_report);
        }
        let inputs = descriptors
            .into_iter()
            .map(Mapped::new)
            .collect::<io::Result<Vec<Mapped>>>()
            .map_err(|error| unmapped(&error))?;
        let inputs: Vec<&[u8]> = inputs.iter().map(|input| &**input).collect();
        #[cfg(debug_assertions)]
        self.misbehave(inputs.first().copied().and_then(faults::asked), &mut |_| {});
        let (done, results) = self.processor.perform(&job.task, &inputs, &job.limits)?;
        write_all(
            results,
            outputs,
            job.limits.max_output_bytes,
            "image_workers.max_output",
        )?;
        Ok(done)
    }

    /// Commits the fault that the input asks for, in tests.
    #[cfg(debug_assertions)]
    fn misbehave(&self, asked: Option<InjectedFault>, on_report: &mut dyn FnMut(Report)) {
        if self.faults
            && let Some(fault) = asked
        {
            faults::commit(fault, on_report);
        }
    }
}

fn check(job: &Job, descriptors: usize) -> Result<(), Failure> {
    if job.version != VERSION {
        return Err(Failure::internal(format!(
            "a job of protocol version {}, this worker speaks {VERSION}",
            job.version
        )));
    }
    let expected = usize::from(job.inputs) + usize::from(job.outputs);
    if descriptors != expected {
        return Err(Failure::internal(format!(
            "{descriptors} descriptors came with a job of {expected}"
        )));
    }
    Ok(())
}

/// Failure for an input that is not in memory.
fn unmapped(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::OutOfMemory => Failure::new(
            FailureCode::TooLarge,
            "the file is larger than the memory that a task may take (image_workers.memory)",
        ),
        _ => Failure::internal(format!("an input cannot be mapped: {error}")),
    }
}

/// Writes each result to its output, from the beginning. None may have more than `most` bytes, as the setting says.
pub(crate) fn write_all(
    results: Vec<Vec<u8>>,
    outputs: Vec<OwnedFd>,
    most: u64,
    setting: &str,
) -> Result<(), Failure> {
    if results.len() != outputs.len() {
        return Err(Failure::internal(format!(
            "{} results for {} outputs",
            results.len(),
            outputs.len()
        )));
    }
    for (bytes, output) in results.iter().zip(outputs) {
        let length = bytes.len() as u64;
        if length > most {
            return Err(Failure::new(
                FailureCode::TooLarge,
                format!("the result has {length} bytes, at most {most} are allowed ({setting})"),
            ));
        }
        write(bytes, output).map_err(|error| unwritten(&error, setting))?;
    }
    Ok(())
}

/// Writes from the beginning; what the file held behind the result is cut off.
fn write(bytes: &[u8], output: OwnedFd) -> io::Result<()> {
    let file = File::from(output);
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)
}

/// Failure for a result that is not written; `setting` bounds its bytes.
pub(crate) fn unwritten(error: &io::Error, setting: &str) -> Failure {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Failure::new(FailureCode::NoSpace, "the disk is full")
        }
        ErrorKind::FileTooLarge => Failure::new(
            FailureCode::TooLarge,
            format!("the result is larger than {setting} allows"),
        ),
        _ => Failure::internal(format!("the result cannot be written: {error}")),
    }
}
