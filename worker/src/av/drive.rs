//! Runs a GStreamer graph to its end: progress reports and their interval, errors, frames one by one.
//!
//! A report is made only when the position moved, so that a watchdog for silence sees a graph that does not move.

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
use sluice_media::{av::Report, task::Failure};

use super::{
    bus::{check, has_ended},
    graph::{BranchKind, Graph},
};

/// Interval at which bus and position are read.
const LOOK: gst::ClockTime = gst::ClockTime::from_mseconds(50);
/// Shortest time between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(250);
/// Largest progress before the end of encoders and multiplexers.
const MOST_BEFORE_END: f32 = 0.99;

/// Plays a graph until everything has ended. `span_s`: how long the result is, in seconds; 0: unknown.
pub fn run(graph: &Graph, span_s: f64, on_report: &mut dyn FnMut(Report)) -> Result<(), Failure> {
    let position = Position::of(graph);
    let mut progress = ProgressReporter::new(span_s);
    graph.release()?;
    while !has_ended(&graph.pipeline, LOOK)? {
        progress.report(&position, on_report);
    }
    Ok(())
}

/// Plays a graph and passes the samples of its sink to `each`, until `each` breaks off or everything has ended.
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

/// Progress of a graph's branches.
#[derive(Debug)]
struct Position(Arc<AtomicU64>);

impl Position {
    /// Returns that of the frames, else of the audio.
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

/// Returns the end of a buffer on the running time, which begins with 0 where the graph begins.
fn running_end(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<gst::ClockTime> {
    let segment = pad.sticky_event::<gst::event::Segment>(0)?;
    let segment = segment.segment().downcast_ref::<gst::ClockTime>()?.clone();
    let end = buffer.pts()? + buffer.duration().unwrap_or_default();
    segment.to_running_time(segment.stop().map_or(end, |stop| end.min(stop)))
}

/// Decides when to report a position.
#[derive(Debug)]
struct ProgressReporter {
    span_s: f64,
    last_s: f64,
    reported_at: Option<Instant>,
}

impl ProgressReporter {
    fn new(span_s: f64) -> Self {
        Self {
            span_s,
            last_s: 0.0,
            reported_at: None,
        }
    }

    fn report(&mut self, position: &Position, on_report: &mut dyn FnMut(Report)) {
        let now_s = position.seconds();
        let is_early = self
            .reported_at
            .is_some_and(|reported_at| reported_at.elapsed() < REPORT_EVERY);
        if now_s > self.last_s && !is_early {
            self.last_s = now_s;
            self.reported_at = Some(Instant::now());
            on_report(Report::Working {
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
