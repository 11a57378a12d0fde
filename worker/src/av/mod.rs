//! Video and audio tasks of a worker (probe, transcode, ladder, still, sheet, animation, waveform, live): one process
//! performs one with GStreamer.
//!
//! ```text
//! Input ─ probe ─► MediaFacts ─► plan ─► Graph (decoded or coded branches) ─► elements of the task ─► sink ─► output
//! ```
//!
//! Nothing here panics on any bytes; what cannot be done is a [`Failure`] with words for the user. No element opens a path
//! or an address: bytes come from [`source`], results go to descriptors ([`sink`]), and [`allow`] removes the rest.

mod allow;
mod animation;
mod boxes;
pub(crate) mod bus;
pub mod drive;
pub mod graph;
mod ladder;
mod live;
mod movie;
mod open;
pub mod probe;
mod scaler;
mod sheet;
pub mod sink;
pub mod source;
mod start;
mod still;
mod transcode;
mod waveform;

use std::os::fd::OwnedFd;

use sluice_media::{
    av::{AvTask, Report},
    task::{Done, Failure, FailureCode, Limits},
};

use source::Input;

pub use start::{REGISTRY_VARIABLE, missing, start};

/// Performs a task. `inputs` and `outputs` are seekable files, but the socket of a live stream; each output is written from its beginning, but a
/// ladder's, which is written from its end. `on_report` receives the progress.
pub fn perform(
    task: &AvTask,
    inputs: Vec<OwnedFd>,
    outputs: Vec<OwnedFd>,
    limits: &Limits,
    on_report: &mut (dyn FnMut(Report) + Send),
) -> Result<Done, Failure> {
    if let AvTask::Live = task {
        return live::perform(inputs);
    }
    let inputs = open(inputs)?;
    let first = inputs
        .first()
        .ok_or_else(|| internal("a task without an input"))?;
    if outputs.len() != task.outputs() {
        return Err(internal(format!(
            "{} outputs for a task with {}",
            outputs.len(),
            task.outputs()
        )));
    }
    on_report(Report::Working { share: 0.0 });
    match task {
        AvTask::Ladder(wanted) => ladder::perform(wanted, first, outputs, limits, on_report),
        AvTask::Still(wanted) => still::perform(wanted, first, outputs, limits, on_report),
        AvTask::Sheet(wanted) => sheet::perform(wanted, first, outputs, limits, on_report),
        AvTask::Animation(wanted) => animation::perform(wanted, first, outputs, limits, on_report),
        AvTask::Waveform(wanted) => waveform::perform(wanted, first, outputs, limits, on_report),
        AvTask::Probe => Ok(Done {
            media: Some(probe::probe(first, limits)?),
            ..Done::default()
        }),
        AvTask::Transcode(wanted) => {
            transcode::transcode(wanted, &inputs, &outputs[0], limits, on_report)
        }
        AvTask::Concat(wanted) => {
            transcode::concat(wanted, &inputs, &outputs[0], limits, on_report)
        }
        AvTask::Live => Err(internal("a live stream is no file")),
    }
}

fn open(inputs: Vec<OwnedFd>) -> Result<Vec<Input>, Failure> {
    inputs
        .into_iter()
        .map(Input::new)
        .collect::<Result<_, _>>()
        .map_err(|error| internal(format!("an input cannot be read: {error}")))
}

/// The setting that bounds a result's bytes.
const MAX_OUTPUT: &str = "av_workers.max_output";

/// A defect of ours or of this machine, whatever the file is.
fn internal(message: impl Into<String>) -> Failure {
    Failure::new(FailureCode::Internal, message)
}

/// Returns the failure of a file whose content differs from its headers; `cause` is a clause about it.
fn refused(cause: &str) -> Failure {
    Failure::new(
        FailureCode::Undecodable,
        format!("the file is damaged or of an odd form: {cause}"),
    )
}
