//! Running a graph to its end: progress, errors in our own words, frames one by one.
//!
//! A report is made only when the position moved, so that anyone who watches for silence sees a graph that stands still.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use sluice_media::{
    av::Report,
    task::{Failure, FailureCode},
};

use super::{
    graph::{BranchKind, Graph},
    refused,
};

/// How often bus and position are looked at.
const LOOK: gst::ClockTime = gst::ClockTime::from_mseconds(50);
/// Between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(250);
/// What is left for the end of encoders and multiplexers.
const MOST_BEFORE_END: f32 = 0.99;

/// Plays a graph until everything has ended. `span_s`: how long the result is, in seconds; 0: unknown.
pub fn run(graph: &Graph, span_s: f64, tell: &mut dyn FnMut(Report)) -> Result<(), Failure> {
    let position = Position::of(graph);
    let mut progress = ProgressReporter::new(span_s);
    graph.release()?;
    while !has_ended(&graph.pipeline, LOOK)? {
        progress.tell(&position, tell);
    }
    Ok(())
}

/// Plays a graph and hands over what its sink is given, until `each` breaks off or everything has ended.
pub fn pull_frames(
    graph: &Graph,
    sink: &gst_app::AppSink,
    each: &mut dyn FnMut(gst::Sample) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    graph.release()?;
    loop {
        match sink.try_pull_sample(LOOK) {
            Some(sample) => {
                if each(sample)?.is_break() {
                    return Ok(());
                }
            }
            None if sink.is_eos() => return check(&graph.pipeline),
            None => check(&graph.pipeline)?,
        }
    }
}

/// Fails when something in the pipeline has.
pub fn check(pipeline: &gst::Pipeline) -> Result<(), Failure> {
    error_on(pipeline).map_or(Ok(()), Err)
}

/// Waits so long for the end; whether it has come.
pub fn has_ended(pipeline: &gst::Pipeline, wait: gst::ClockTime) -> Result<bool, Failure> {
    let kinds = [gst::MessageType::Error, gst::MessageType::Eos];
    let message = bus(pipeline).timed_pop_filtered(wait, &kinds);
    match message.as_ref().map(|message| message.view()) {
        Some(gst::MessageView::Error(error)) => Err(failure(&error.error())),
        Some(_) => Ok(true),
        None => Ok(false),
    }
}

/// The first error that waits on the pipeline's bus.
pub(super) fn error_on(pipeline: &gst::Pipeline) -> Option<Failure> {
    let message = bus(pipeline).pop_filtered(&[gst::MessageType::Error])?;
    match message.view() {
        gst::MessageView::Error(error) => Some(failure(&error.error())),
        _ => None,
    }
}

/// Takes the errors off the bus that a flushing seek, just done, has caused.
///
/// A flush reaches sinks before the threads that push to them: what is on its way to a sink that flushes already, the caps
/// of the first buffer above all, is refused, and the thread stops with an error, `not-negotiated`, before it hears of the
/// flush itself, which starts it again. It has posted that when the seek returns, since a flush waits for the threads it
/// stops. Errors of elements themselves stay.
pub(super) fn forget_interrupted(pipeline: &gst::Pipeline) {
    let bus = bus(pipeline);
    let errors: Vec<_> =
        std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Error])).collect();
    for error in errors.into_iter().filter(|error| !is_stopped_flow(error)) {
        let _ = bus.post(error);
    }
}

/// Whether a thread says that it could push no further, not why.
fn is_stopped_flow(message: &gst::MessageRef) -> bool {
    match message.view() {
        gst::MessageView::Error(error) => error
            .details()
            .is_some_and(|details| details.has_field("flow-return")),
        _ => false,
    }
}

fn bus(pipeline: &gst::Pipeline) -> gst::Bus {
    pipeline.bus().expect("every pipeline has a bus")
}

/// What an error means for the user. Its own words stay out: they name files and elements.
pub(super) fn failure(error: &gst::glib::Error) -> Failure {
    if let Some(resource) = error.kind::<gst::ResourceError>() {
        return match resource {
            gst::ResourceError::NoSpaceLeft => {
                Failure::new(FailureCode::NoSpace, "the disk is full")
            }
            gst::ResourceError::Write => {
                Failure::new(FailureCode::Internal, "the result cannot be written")
            }
            _ => Failure::new(
                FailureCode::Undecodable,
                "the file cannot be read as a clip",
            ),
        };
    }
    if let Some(stream) = error.kind::<gst::StreamError>() {
        return match stream {
            gst::StreamError::TypeNotFound | gst::StreamError::WrongType => Failure::new(
                FailureCode::UnsupportedType,
                "the file is no video or audio that Sluice reads",
            ),
            gst::StreamError::CodecNotFound => Failure::new(
                FailureCode::UnsupportedType,
                "no track of the file has a codec that Sluice decodes",
            ),
            gst::StreamError::Decrypt | gst::StreamError::DecryptNokey => {
                Failure::new(FailureCode::UnsupportedType, "the file is encrypted")
            }
            gst::StreamError::Encode => {
                refused("its video or its audio cannot be encoded in this form")
            }
            gst::StreamError::Mux => refused("its tracks do not go into one file together"),
            _ => Failure::new(
                FailureCode::Undecodable,
                "the file is damaged: its tracks do not decode",
            ),
        };
    }
    if error.matches(gst::CoreError::MissingPlugin) {
        return Failure::new(
            FailureCode::UnsupportedType,
            "no track of the file has a codec that Sluice decodes",
        );
    }
    refused("its tracks change their form or do not fit together")
}

/// How far a graph's branches have come.
#[derive(Debug)]
struct Position(Arc<AtomicU64>);

impl Position {
    /// That of the frames, else of the audio.
    fn of(graph: &Graph) -> Self {
        let reached = Arc::new(AtomicU64::new(0));
        let branch = graph
            .branch(BranchKind::Video)
            .or_else(|| graph.branch(BranchKind::Audio));
        if let Some(branch) = branch {
            note_ends(&branch.pad, reached.clone());
        }
        Self(reached)
    }

    fn seconds(&self) -> f64 {
        self.0.load(Ordering::Acquire) as f64 / 1e9
    }
}

/// Notes the latest end of what passes a pad, in nanoseconds of the running time.
pub(super) fn note_ends(pad: &gst::Pad, latest: Arc<AtomicU64>) {
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        if let Some(end) = info.buffer().and_then(|buffer| running_end(pad, buffer)) {
            latest.fetch_max(end.nseconds(), Ordering::Release);
        }
        gst::PadProbeReturn::Ok
    });
}

/// Where a buffer ends on the running time, which begins with 0 where the graph begins.
fn running_end(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<gst::ClockTime> {
    let segment = pad.sticky_event::<gst::event::Segment>(0)?;
    let segment = segment.segment().downcast_ref::<gst::ClockTime>()?.clone();
    let end = buffer.pts()? + buffer.duration().unwrap_or_default();
    segment.to_running_time(segment.stop().map_or(end, |stop| end.min(stop)))
}

/// When to tell of a position.
#[derive(Debug)]
struct ProgressReporter {
    span_s: f64,
    last_s: f64,
    told: Option<Instant>,
}

impl ProgressReporter {
    fn new(span_s: f64) -> Self {
        Self {
            span_s,
            last_s: 0.0,
            told: None,
        }
    }

    fn tell(&mut self, position: &Position, tell: &mut dyn FnMut(Report)) {
        let now_s = position.seconds();
        let is_early = self.told.is_some_and(|told| told.elapsed() < REPORT_EVERY);
        if now_s > self.last_s && !is_early {
            self.last_s = now_s;
            self.told = Some(Instant::now());
            tell(Report::Working {
                share: share(now_s, self.span_s),
            });
        }
    }
}

fn share(position_s: f64, span_s: f64) -> f32 {
    if span_s <= 0.0 {
        return 0.0;
    }
    ((position_s / span_s) as f32).clamp(0.0, MOST_BEFORE_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_can_bring_about_is_no_defect_of_ours() {
        use gst::{CoreError, LibraryError, ResourceError, StreamError, glib::Error};
        let by_input = [
            Error::new(CoreError::Pad, ""),
            Error::new(CoreError::Negotiation, ""),
            Error::new(CoreError::Caps, ""),
            Error::new(CoreError::StateChange, ""),
            Error::new(CoreError::Failed, ""),
            Error::new(CoreError::MissingPlugin, ""),
            Error::new(LibraryError::Init, ""),
            Error::new(LibraryError::Settings, ""),
            Error::new(LibraryError::Encode, ""),
            Error::new(ResourceError::Seek, ""),
            Error::new(ResourceError::Read, ""),
            Error::new(ResourceError::Failed, ""),
            Error::new(StreamError::Failed, ""),
            Error::new(StreamError::Encode, ""),
            Error::new(StreamError::Decode, ""),
            Error::new(StreamError::Demux, ""),
            Error::new(StreamError::Mux, ""),
            Error::new(StreamError::Format, ""),
        ];
        for error in by_input {
            let failure = failure(&error);
            let is_of_the_file = matches!(
                failure.code,
                FailureCode::Undecodable | FailureCode::UnsupportedType
            );
            assert!(is_of_the_file, "{error:?}: {failure:?}");
        }
        let unwritten = failure(&Error::new(ResourceError::Write, ""));
        assert_eq!(unwritten.code, FailureCode::Internal);
    }
}
