//! Decode times of copied tracks: room before the first frame for B-frames, and the end of a copied range.
//!
//! Frames that are coded in another order than they are shown in are decoded before time 0, which buffers cannot say. So
//! a copied track's times are all put later, its segment with them: when it is shown stays as it is (encoders of GStreamer
//! do the same).

use gst::prelude::*;
use gstreamer as gst;
use parking_lot::Mutex;

use crate::av::graph::{BranchKind, Graph};

/// Time by which a copied track is put later.
const ROOM: gst::ClockTime = gst::ClockTime::from_seconds(3_600);

/// Makes room in front of a branch.
pub fn make(graph: &Graph, kind: BranchKind) {
    let Some(branch) = graph.branch(kind) else {
        return;
    };
    let stop: Mutex<Option<gst::ClockTime>> = Mutex::new(None);
    let mask = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    branch.pad.add_probe(mask, move |_, info| {
        let mut stop = stop.lock();
        match &mut info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => {
                // Nothing that is shown before the end needs what is decoded after it.
                if matches!((buffer.dts_or_pts(), *stop), (Some(time), Some(stop)) if time >= stop)
                {
                    return gst::PadProbeReturn::Drop;
                }
                let later = buffer.make_mut();
                later.set_pts(later.pts().map(|pts| pts + ROOM));
                later.set_dts(later.dts().map(|dts| dts + ROOM));
            }
            Some(gst::PadProbeData::Event(event)) => {
                if let Some((end, later)) = later_segment(event) {
                    *stop = end;
                    *event = later;
                }
            }
            _ => {}
        }
        gst::PadProbeReturn::Ok
    });
}

/// Returns the end of a segment, and the segment put later without that end: the last frames may be shown behind it,
/// because others before it need them.
fn later_segment(event: &gst::Event) -> Option<(Option<gst::ClockTime>, gst::Event)> {
    let gst::EventView::Segment(segment) = event.view() else {
        return None;
    };
    let mut later = segment.segment().downcast_ref::<gst::ClockTime>()?.clone();
    let stop = later.stop();
    later.set_start(later.start()? + ROOM);
    later.set_stop(gst::ClockTime::NONE);
    later.set_position(later.position().map(|position| position + ROOM));
    let later = gst::event::Segment::builder(&later).seqnum(event.seqnum());
    Some((stop, later.build()))
}

/// Removes the times of decoding in front of the element that makes them: what a parser found where the container has
/// none is the order of the packets, and no more.
pub fn forget_decode_times(element: &gst::Element) {
    let Some(pad) = element.static_pad("sink") else {
        return;
    };
    pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
        if let Some(gst::PadProbeData::Buffer(buffer)) = &mut info.data {
            buffer.make_mut().set_dts(gst::ClockTime::NONE);
        }
        gst::PadProbeReturn::Ok
    });
}
