//! Demultiplexing of a clip: a pipeline whose branches give decoded video and audio, or both as they are coded; seeks,
//! trims.
//!
//! ```text
//! source → decodebin ┬→ queue → branch Video (held) … what the task links to it
//!                    └→ queue → branch Audio (held) …
//! ```
//!
//! Branches hold their first buffers back until all that are wanted are there; then one seek, if a part is asked for,
//! then the task links them and [`Graph::release`] lets go. So nothing reaches an encoder or a multiplexer before the
//! place that was sought. Tracks that are not wanted are neither decoded nor linked.

use gst::prelude::*;
use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::{
    av::{MediaFacts, Range},
    task::{Failure, FailureCode},
};

use super::{
    bus, internal,
    open::{self, Depth},
    refused, sink,
    source::Input,
};

/// Longest time that is taken from a file, in seconds, so that sums of what files say have room: 30 years.
const LONGEST_S: f64 = 1e9;

/// Branches that a task wants; one that the facts do not name is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    pub video: bool,
    pub audio: bool,
}

impl Want {
    pub const VIDEO: Self = Self {
        video: true,
        audio: false,
    };
    pub const AUDIO: Self = Self {
        video: false,
        audio: true,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchKind {
    Video,
    Audio,
}

/// Output of a track.
#[derive(Debug)]
pub struct Branch {
    pub pad: gst::Pad,
    pub kind: BranchKind,
}

impl Branch {
    /// Returns the caps of its first buffer.
    pub fn caps(&self) -> Option<gst::Caps> {
        self.pad.current_caps()
    }

    /// Drops everything before this place on its stream's timeline, from where running time then counts.
    fn begin_at(&self, place: gst::ClockTime) {
        let Some(segment) = self.pad.sticky_event::<gst::event::Segment>(0) else {
            return;
        };
        let segment = segment.segment().downcast_ref::<gst::ClockTime>();
        let late = segment.and_then(|segment| segment.to_running_time(place));
        let late = late.map_or(0, |late| i64::try_from(late.nseconds()).unwrap_or(0));
        self.pad.set_offset(-late);
        self.pad
            .add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                let end = info.buffer().and_then(|buffer| {
                    Some(buffer.pts()? + buffer.duration().unwrap_or(gst::ClockTime::NSECOND))
                });
                match end {
                    Some(end) if end <= place => gst::PadProbeReturn::Drop,
                    _ => gst::PadProbeReturn::Ok,
                }
            });
    }

    /// Ends what comes from now on at this place on the clip's timeline.
    fn end_at(&self, place: gst::ClockTime) {
        let end = Mutex::new(None);
        let mask = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        self.pad.add_probe(mask, move |_, info| {
            let mut end = end.lock();
            match &mut info.data {
                Some(gst::PadProbeData::Event(event)) => {
                    if let Some((ended, stop)) = ended(event, place) {
                        *event = ended;
                        *end = Some(stop);
                    }
                    gst::PadProbeReturn::Ok
                }
                Some(gst::PadProbeData::Buffer(buffer)) => match (buffer.dts_or_pts(), *end) {
                    (Some(at), Some(end)) if at >= end => gst::PadProbeReturn::Drop,
                    _ => gst::PadProbeReturn::Ok,
                },
                _ => gst::PadProbeReturn::Ok,
            }
        });
    }

    /// Returns the begin of its stream on the clip's timeline.
    fn beginning(&self) -> Option<gst::ClockTime> {
        let segment = self.pad.sticky_event::<gst::event::Segment>(0)?;
        segment.segment().downcast_ref::<gst::ClockTime>()?.time()
    }
}

/// A segment that goes no further than this place on the clip's timeline, and where that is in it; `None`: no segment.
fn ended(event: &gst::EventRef, place: gst::ClockTime) -> Option<(gst::Event, gst::ClockTime)> {
    let gst::EventView::Segment(of_stream) = event.view() else {
        return None;
    };
    let mut segment = of_stream
        .segment()
        .downcast_ref::<gst::ClockTime>()?
        .clone();
    let stop = segment.start()? + place.saturating_sub(segment.time()?);
    let stop = segment.stop().map_or(stop, |earlier| earlier.min(stop));
    segment.set_stop(stop);
    let event = gst::event::Segment::builder(&segment)
        .seqnum(event.seqnum())
        .build();
    Some((event, stop))
}

/// A pipeline with one input. Dropping it stops it.
#[derive(Debug)]
pub struct Graph {
    pub pipeline: gst::Pipeline,
    branches: Vec<Branch>,
    /// Begin of the clip on its own timeline, in seconds: transport streams do not begin at 0.
    origin_s: f64,
    blocks: Mutex<Vec<(gst::Pad, gst::PadProbeId)>>,
}

impl Graph {
    /// Frames and audio as they are played: `video/x-raw`, `audio/x-raw`. A range is exact.
    pub fn decode(
        input: &Input,
        facts: &MediaFacts,
        want: Want,
        range: Option<Range>,
    ) -> Result<Self, Failure> {
        open::open(input, facts, want, range, Depth::Decode)
    }

    /// Frames and audio as they are coded, with what parsers know in their caps. A range that is not accurate begins
    /// with the key frame at or before its start.
    pub fn parse(
        input: &Input,
        facts: &MediaFacts,
        want: Want,
        range: Option<Range>,
    ) -> Result<Self, Failure> {
        open::open(input, facts, want, range, Depth::Parse)
    }

    pub(super) fn new() -> Self {
        Self {
            pipeline: gst::Pipeline::new(),
            branches: Vec::new(),
            origin_s: 0.0,
            blocks: Mutex::default(),
        }
    }

    pub(super) fn with(mut self, held: Vec<(Branch, Option<gst::PadProbeId>)>) -> Self {
        for (branch, probe) in held {
            if let Some(probe) = probe {
                self.blocks.lock().push((branch.pad.clone(), probe));
            }
            self.branches.push(branch);
        }
        let beginnings = self.branches.iter().filter_map(Branch::beginning);
        self.origin_s = beginnings
            .min()
            .map_or(0.0, |beginning| beginning.nseconds() as f64 / 1e9);
        self
    }

    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    pub fn branch(&self, kind: BranchKind) -> Option<&Branch> {
        self.branches.iter().find(|branch| branch.kind == kind)
    }

    /// Puts elements into the pipeline and links each to the next.
    pub fn add_chain(&self, elements: &[&gst::Element]) -> Result<(), Failure> {
        self.pipeline
            .add_many(elements)
            .and_then(|()| gst::Element::link_many(elements))
            .map_err(|error| internal(format!("a chain cannot be built: {error}")))
    }

    /// Links a branch to an element of the pipeline, at the pad of it that takes such a stream.
    pub fn link(&self, kind: BranchKind, sink: &gst::Element) -> Result<(), Failure> {
        let branch = self
            .branch(kind)
            .ok_or_else(|| refused("a track that it names does not come"))?;
        let pad = sink
            .static_pad("sink")
            .or_else(|| sink.compatible_pad(&branch.pad, branch.caps().as_ref()))
            .ok_or_else(|| refused("a track is of a form that nothing takes"))?;
        match branch.pad.link(&pad) {
            Ok(_) => Ok(()),
            Err(_) => Err(refused("a track is of a form that nothing takes")),
        }
    }

    /// Plays, and lets the branches go, those that lead nowhere into nothing; later calls change nothing.
    pub fn release(&self) -> Result<(), Failure> {
        let blocks: Vec<_> = self.blocks.lock().drain(..).collect();
        if blocks.is_empty() {
            return Ok(());
        }
        for branch in self.branches.iter().filter(|it| !it.pad.is_linked()) {
            sink::discard(&self.pipeline, &branch.pad);
        }
        let playing = self.pipeline.set_state(gst::State::Playing);
        for (pad, probe) in blocks {
            pad.remove_probe(probe);
        }
        match playing {
            Ok(_) => Ok(()),
            Err(_) => {
                Err(bus::error_on(&self.pipeline)
                    .unwrap_or_else(|| refused("its tracks do not begin")))
            }
        }
    }

    /// Returns the begin of the clip on the timeline of its buffers' presentation times, in seconds.
    pub fn origin_s(&self) -> f64 {
        self.origin_s
    }

    /// Goes exactly to another place; what was on its way is dropped. Seconds from the clip's beginning.
    pub fn seek(&self, start_s: f64, stop_s: Option<f64>) -> Result<(), Failure> {
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        self.send_seek(flags, start_s, stop_s)
    }

    /// Leaves out what comes before this place, in seconds from the clip's beginning.
    pub(super) fn begin_at(&self, start_s: f64) {
        for branch in &self.branches {
            branch.begin_at(clock_time(start_s + self.origin_s));
        }
    }

    /// Leaves out what comes from this place on, after the next seek; in seconds from the clip's beginning.
    pub(super) fn end_at(&self, stop_s: f64) {
        for branch in &self.branches {
            branch.end_at(clock_time(stop_s + self.origin_s));
        }
    }

    pub(super) fn send_seek(
        &self,
        flags: gst::SeekFlags,
        start_s: f64,
        stop_s: Option<f64>,
    ) -> Result<(), Failure> {
        let place = |seconds: f64| clock_time(seconds + self.origin_s);
        let stop_type = match stop_s {
            Some(_) => gst::SeekType::Set,
            None => gst::SeekType::None,
        };
        let seek = gst::event::Seek::new(
            1.0,
            flags,
            gst::SeekType::Set,
            Some(place(start_s)),
            stop_type,
            stop_s.map(place),
        );
        let is_sought = self
            .branches
            .first()
            .is_some_and(|branch| branch.pad.send_event(seek));
        bus::forget_interrupted(&self.pipeline);
        match is_sought {
            true => Ok(()),
            false => Err(Failure::new(
                FailureCode::Impossible,
                format!("the file cannot be read from second {start_s} on"),
            )),
        }
    }
}

/// Converts seconds to GStreamer's time; what is no time is 0.
pub fn clock_time(seconds: f64) -> gst::ClockTime {
    gst::ClockTime::from_nseconds((seconds.clamp(0.0, LONGEST_S) * 1e9).round() as u64)
}

impl Drop for Graph {
    fn drop(&mut self) {
        // A pipeline that is dropped while it plays leaves its threads behind.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
