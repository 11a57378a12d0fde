//! Parts of a chained Ogg file as one track: their times continue, and ranges are decoded without a seek.
//!
//! ```text
//! decodebin ┬ pad of part 1, until its end ┐
//!           ├ pad of part 2, then          ├─► entry of the queue: one stream, one segment, times that continue
//!           └ …                            ┘
//! ```
//!
//! The demultiplexer gives for each part, in its segment, its place on the running time of the whole. Such a file is
//! not sought in, since a flush would meet pads of another part: the part before a range is decoded and left out.

use std::sync::Arc;

use gst::{glib, prelude::*};
use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::av::{MediaFacts, Range};

use super::super::graph::clock_time;

#[derive(Debug)]
pub(super) struct Series {
    parts: u32,
    /// Range that is wanted.
    start: gst::ClockTime,
    stop: Option<gst::ClockTime>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entry: Option<gst::Pad>,
    linked: u32,
    has_stream: bool,
    /// Segment of the current part.
    segment: Option<gst::FormattedSegment<gst::ClockTime>>,
    /// No further part comes, or none is wanted.
    is_last: bool,
}

impl Series {
    /// Makes the series of a clip; `None`: the clip is no chain.
    pub(super) fn of(facts: &MediaFacts, range: Option<Range>) -> Option<Arc<Self>> {
        let parts = facts.parts?;
        let start_s = range.map_or(0.0, |range| range.start_s);
        let stop_s = range.and_then(|range| Some(range.start_s + range.duration_s?));
        Some(Arc::new(Self {
            parts,
            start: clock_time(start_s),
            stop: stop_s.map(clock_time),
            state: Mutex::default(),
        }))
    }

    /// Notes the end of all parts.
    pub(super) fn listen(self: &Arc<Self>, opener: &gst::Element) {
        let series = self.clone();
        opener.connect("drained", false, move |_| {
            series.state.lock().is_last = true;
            None
        });
    }

    /// All parts go into this pad, to which the first is going to be linked.
    pub(super) fn enter(self: &Arc<Self>, entry: &gst::Pad) {
        {
            let mut state = self.state.lock();
            state.entry = Some(entry.clone());
            state.linked = 1;
        }
        let series = self.clone();
        let mask = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        entry.add_probe(mask, move |pad, info| match &mut info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => series.place(pad, buffer),
            Some(gst::PadProbeData::Event(event)) => series.adapt(event),
            _ => gst::PadProbeReturn::Ok,
        });
    }

    /// Links a further part in the place of the one before, which has ended; `false`: it is the first.
    pub(super) fn resume(&self, pad: &gst::Pad) -> Result<bool, glib::BoolError> {
        let entry = {
            let mut state = self.state.lock();
            state.linked += u32::from(state.entry.is_some());
            state.entry.clone()
        };
        let Some(entry) = entry else {
            return Ok(false);
        };
        if let Some(before) = entry.peer() {
            before.unlink(&entry)?;
        }
        pad.link(&entry)
            .map_err(|error| glib::bool_error!("a part cannot be linked: {error}"))?;
        Ok(true)
    }

    /// Puts a buffer at its place in the whole.
    fn place(&self, entry: &gst::Pad, buffer: &mut gst::Buffer) -> gst::PadProbeReturn {
        let (base, start) = {
            let state = self.state.lock();
            let segment = state.segment.as_ref();
            let base = segment.and_then(|segment| segment.base());
            let start = segment.and_then(|segment| segment.start());
            (base.unwrap_or_default(), start.unwrap_or_default())
        };
        let Some(pts) = buffer.pts() else {
            return gst::PadProbeReturn::Ok;
        };
        let pts = pts.saturating_sub(start) + base;
        if self.stop.is_some_and(|stop| pts >= stop) {
            self.state.lock().is_last = true;
            // What comes behind it is rejected, which stops its sender.
            entry.send_event(gst::event::Eos::new());
            return gst::PadProbeReturn::Drop;
        }
        buffer.make_mut().set_pts(pts);
        gst::PadProbeReturn::Ok
    }

    /// Lets one stream with one segment begin and end, whatever the parts say.
    fn adapt(&self, event: &mut gst::Event) -> gst::PadProbeReturn {
        let mut state = self.state.lock();
        let passes = match event.view() {
            gst::EventView::StreamStart(_) => !std::mem::replace(&mut state.has_stream, true),
            gst::EventView::Segment(of_part) => {
                let of_part = of_part.segment().downcast_ref::<gst::ClockTime>().cloned();
                let is_first = state.segment.is_none();
                state.segment = Some(of_part.unwrap_or_default());
                if is_first {
                    *event = gst::event::Segment::new(&self.segment());
                }
                is_first
            }
            gst::EventView::Eos(_) => state.is_last || state.linked >= self.parts,
            // Its times are those of its part.
            gst::EventView::Gap(_) => false,
            _ => true,
        };
        match passes {
            true => gst::PadProbeReturn::Ok,
            // Dropped events are unreferenced once more by GStreamer 1.22, which complains.
            false => gst::PadProbeReturn::Handled,
        }
    }

    fn segment(&self) -> gst::FormattedSegment<gst::ClockTime> {
        let mut segment = gst::FormattedSegment::new();
        segment.set_start(self.start);
        segment.set_time(self.start);
        segment.set_position(self.start);
        segment.set_stop(self.stop);
        segment
    }
}
