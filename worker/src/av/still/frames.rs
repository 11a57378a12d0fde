//! Finds the frame that a clip shows at a time: by a seek, with searches from earlier places and for the last frame.
//!
//! A frame is shown from its time until that of the next. Where that cannot be trusted to a seek (containers without
//! durations, places where the decoder lost its way), a search begins a little earlier and looks again; behind the end it
//! finds the last frame.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use gst::prelude::*;
use gstreamer as gst;
use gstreamer_app as gst_app;
use sluice_media::{
    av::{MediaFacts, Report},
    task::Failure,
};

use super::super::{
    drive,
    graph::{BranchKind, Graph, Want},
    internal, sink,
    source::Input,
};

/// Times are asked for in milliseconds: what comes within half of one is shown then.
const TOLERANCE_S: f64 = 0.000_5;
/// Distance up to which decoding on is cheaper than a seek.
const NEAR_S: f64 = 3.0;
/// Distances before the time at which a search begins, one after the other.
const RUN_UPS_S: [f64; 4] = [0.0, 2.0, 10.0, 60.0];
/// Distance before the end at which a search for the last frame begins, and its growth.
const LAST_RUN_UP_S: f64 = 1.0;
const LAST_RUN_UP_GROWTH: f64 = 4.0;
/// Shortest time between two reports of a search.
const REPORT_EVERY: Duration = Duration::from_millis(250);

/// A decoded frame, in whatever form its decoder gave it.
#[derive(Clone, Debug)]
pub struct DecodedFrame {
    pub sample: gst::Sample,
    /// Seconds from the beginning of the clip.
    pub at_s: f64,
}

/// A clip whose frames are looked at.
pub struct FrameReader<'a> {
    input: &'a Input,
    facts: &'a MediaFacts,
    graph: Graph,
    sink: gst_app::AppSink,
    /// True while nothing was taken out of the graph.
    is_fresh: bool,
    is_seekable: bool,
    /// The frame shown at the last time asked for.
    current: Option<DecodedFrame>,
    /// The one after it.
    next: Option<DecodedFrame>,
    has_ended: bool,
}

impl<'a> FrameReader<'a> {
    /// Opens the track that counts as the frame.
    pub fn open(input: &'a Input, facts: &'a MediaFacts) -> Result<Self, Failure> {
        let (graph, sink) = open(input, facts)?;
        Ok(Self {
            input,
            facts,
            graph,
            sink,
            is_fresh: true,
            is_seekable: true,
            current: None,
            next: None,
            has_ended: false,
        })
    }

    /// The frame shown at that time; before the first one that, behind the end the last. `None`: there is none at all.
    pub fn at(
        &mut self,
        at_s: f64,
        on_report: &mut dyn FnMut(Report),
    ) -> Result<Option<DecodedFrame>, Failure> {
        let at_s = at_s.max(0.0);
        let reached = self.next.as_ref().or(self.current.as_ref());
        let is_near = match (&self.current, reached) {
            (Some(current), Some(reached)) => {
                current.at_s <= at_s + TOLERANCE_S
                    && (at_s - reached.at_s < NEAR_S || !self.is_seekable)
            }
            _ => false,
        };
        if is_near || (self.has_ended && self.is_behind(at_s)) {
            self.advance(at_s, on_report)?;
            return Ok(self.current.clone());
        }
        if self.facts.duration_s().is_none_or(|end_s| at_s < end_s)
            && let Some(found) = self.search(at_s, on_report)?
        {
            return Ok(Some(found));
        }
        self.last(at_s, on_report)
    }

    /// Returns whether the last requested time was that of the last frame.
    pub fn is_at_end(&self) -> bool {
        self.has_ended && self.next.is_none()
    }

    /// Returns whether the clip's last frame, which is known, is shown then.
    fn is_behind(&self, at_s: f64) -> bool {
        let last = self.current.as_ref();
        self.next.is_none() && last.is_some_and(|last| last.at_s <= at_s + TOLERANCE_S)
    }

    /// Seeks, from further and further before; `None`: there is nothing from there on.
    fn search(
        &mut self,
        at_s: f64,
        on_report: &mut dyn FnMut(Report),
    ) -> Result<Option<DecodedFrame>, Failure> {
        let mut later = None;
        for run_up_s in RUN_UPS_S {
            let start_s = self.go((at_s - run_up_s).max(0.0))?;
            self.advance(at_s, on_report)?;
            if let Some(shown) = &self.current {
                return Ok(Some(shown.clone()));
            }
            match self.next.clone() {
                // Even from the beginning nothing comes before it.
                Some(first) if start_s <= 0.0 => return Ok(Some(first)),
                Some(next) => later = Some(next),
                None => return Ok(None),
            }
        }
        Ok(later)
    }

    /// The last frame of all, sought from the end, or from where it was believed to be.
    fn last(
        &mut self,
        at_s: f64,
        on_report: &mut dyn FnMut(Report),
    ) -> Result<Option<DecodedFrame>, Failure> {
        let end_s = self.facts.duration_s().map_or(at_s, |end| end.min(at_s));
        let mut run_up_s = LAST_RUN_UP_S;
        loop {
            let start_s = self.go((end_s - run_up_s).max(0.0))?;
            self.advance(f64::INFINITY, on_report)?;
            if self.current.is_some() || start_s <= 0.0 {
                return Ok(self.current.clone());
            }
            run_up_s *= LAST_RUN_UP_GROWTH;
        }
    }

    /// Continues until the frame after that time is known, or there is none.
    fn advance(&mut self, at_s: f64, on_report: &mut dyn FnMut(Report)) -> Result<(), Failure> {
        let mut reported_at = Instant::now();
        loop {
            if self.next.is_none() && !self.has_ended {
                self.next = self.pull()?;
                self.has_ended = self.next.is_none();
            }
            match self.next.take() {
                Some(next) if next.at_s <= at_s + TOLERANCE_S => self.current = Some(next),
                other => {
                    self.next = other;
                    return Ok(());
                }
            }
            if reported_at.elapsed() >= REPORT_EVERY {
                reported_at = Instant::now();
                on_report(Report::Working { share: 0.0 });
            }
        }
    }

    /// Seeks to that time; where the clip allows no seeking, to its beginning. Returns the time reached.
    fn go(&mut self, start_s: f64) -> Result<f64, Failure> {
        (self.current, self.next, self.has_ended) = (None, None, false);
        if self.is_fresh && start_s <= 0.0 {
            return Ok(0.0);
        }
        self.graph.release()?;
        if self.is_seekable && self.graph.seek(start_s, None).is_ok() {
            return Ok(start_s);
        }
        self.is_seekable = false;
        if !self.is_fresh {
            (self.graph, self.sink) = open(self.input, self.facts)?;
            self.is_fresh = true;
        }
        Ok(0.0)
    }

    /// Returns the next frame that is whole; `None` at the end, or where the clip is too corrupt to continue.
    fn pull(&mut self) -> Result<Option<DecodedFrame>, Failure> {
        self.is_fresh = false;
        let origin_s = self.graph.origin_s();
        let mut pulled = None;
        let taken = drive::pull_frames(&self.graph, &self.sink, &mut |sample| {
            pulled = video_frame(sample, origin_s);
            Ok(match pulled {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            })
        });
        match taken {
            Err(failure) if self.current.is_none() => Err(failure),
            _ => Ok(pulled),
        }
    }
}

fn open(input: &Input, facts: &MediaFacts) -> Result<(Graph, gst_app::AppSink), Failure> {
    let graph = Graph::decode(input, facts, Want::VIDEO, None)?;
    let sink = sink::to_us(&gst::Caps::new_empty_simple("video/x-raw"));
    graph
        .pipeline
        .add(&sink)
        .map_err(|error| internal(error.to_string()))?;
    graph.link(BranchKind::Video, sink.upcast_ref())?;
    sink.sync_state_with_parent()
        .map_err(|error| internal(error.to_string()))?;
    Ok((graph, sink))
}

/// Returns the frame of the sample; `None` when its decoder marks it as corrupt, or its time is unknown.
fn video_frame(sample: gst::Sample, origin_s: f64) -> Option<DecodedFrame> {
    let buffer = sample.buffer()?;
    if buffer.flags().contains(gst::BufferFlags::CORRUPTED) {
        return None;
    }
    let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
    let at = segment.to_stream_time(buffer.pts()?)?;
    Some(DecodedFrame {
        at_s: at.nseconds() as f64 / 1e9 - origin_s,
        sample,
    })
}
