//! Keeps all renditions in step: one frame for each index of the frame clock, and a key frame where a group begins.
//!
//! Elements that make a rate constant start again with each segment event, of which demultiplexers send more than
//! needed, and fill it to its end; encoders count frames. So segments are simplified, and groups are marked by time
//! before frames reach the tee.

use gst::prelude::*;
use gstreamer as gst;
use gstreamer_video as gst_video;
use parking_lot::Mutex;
use sluice_media::hls::vod::FrameClock;

use super::unit::ticks;

/// Passes a segment to a sink once, and not its end: up to that, a rate would be kept with video and audio that do not
/// exist.
pub(super) fn simplify_segments(element: &gst::Element) {
    let Some(pad) = element.static_pad("sink") else {
        return;
    };
    let latest: Mutex<Option<gst::Segment>> = Mutex::new(None);
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
        let Some(gst::EventView::Segment(event)) = info.event().map(|event| event.view()) else {
            return gst::PadProbeReturn::Ok;
        };
        let (segment, seqnum) = (endless(event.segment()), event.seqnum());
        let mut latest = latest.lock();
        if latest.as_ref().is_some_and(|latest| same(latest, &segment)) {
            return swallow(info);
        }
        let event = gst::event::Segment::builder(&segment)
            .seqnum(seqnum)
            .build();
        info.data.replace(gst::PadProbeData::Event(event));
        *latest = Some(segment);
        gst::PadProbeReturn::Ok
    });
}

fn endless(segment: &gst::Segment) -> gst::Segment {
    match segment.clone().downcast::<gst::ClockTime>() {
        Ok(mut timed) => {
            timed.set_stop(gst::ClockTime::NONE);
            timed.upcast()
        }
        Err(other) => other,
    }
}

/// Drops a buffer or event. (Returning `Drop` instead would free it twice with this GStreamer.)
fn swallow(info: &mut gst::PadProbeInfo<'_>) -> gst::PadProbeReturn {
    drop(info.data.take());
    gst::PadProbeReturn::Handled
}

/// Returns whether times mean the same in both.
fn same(one: &gst::Segment, other: &gst::Segment) -> bool {
    one.format() == other.format()
        && one.start() == other.start()
        && one.base() == other.base()
        && one.offset() == other.offset()
        && one.rate() == other.rate()
}

/// Gives frames that come without a time, as those of AVI do, the one that follows the frame before.
pub(super) fn complete_times(element: &gst::Element, clock: FrameClock) {
    let Some(pad) = element.static_pad("sink") else {
        return;
    };
    let video_frame = gst::ClockTime::from_nseconds(clock.at_90k(1).unsigned_abs() * 100_000 / 9);
    let next = Mutex::new(gst::ClockTime::ZERO);
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if let Some(buffer) = info.buffer_mut() {
            let mut next = next.lock();
            let time = buffer.pts().unwrap_or(*next);
            if buffer.pts().is_none() {
                buffer.make_mut().set_pts(time);
            }
            *next = time + buffer.duration().unwrap_or(video_frame);
        }
        gst::PadProbeReturn::Ok
    });
}

/// Lets one frame of each index pass, and asks for a key frame before the first of each group. `offset`: the index
/// that the graph's beginning has.
pub(super) fn keep_time(pad: &gst::Pad, clock: FrameClock, group: u32, offset: u64) {
    let group = u64::from(group.max(1));
    let next = Mutex::new(offset);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let Some(index) = info.buffer().and_then(|buffer| index(pad, buffer, clock)) else {
            return swallow(info);
        };
        let index = offset + index;
        let mut next = next.lock();
        if index < *next {
            return swallow(info);
        }
        let begins_group =
            index.is_multiple_of(group) || index / group > next.saturating_sub(1) / group;
        *next = index + 1;
        if begins_group {
            pad.send_event(gst_video::DownstreamForceKeyUnitEvent::builder().build());
        }
        gst::PadProbeReturn::Ok
    });
}

/// Returns the frame's number on the running time; `None`: it has no time, or is before the beginning.
pub(super) fn index(pad: &gst::Pad, buffer: &gst::BufferRef, clock: FrameClock) -> Option<u64> {
    let event = pad.sticky_event::<gst::event::Segment>(0)?;
    let segment = event.segment().downcast_ref::<gst::ClockTime>()?;
    let time = segment.to_running_time(buffer.pts()?)?;
    Some(clock.nearest(ticks(i128::from(time.nseconds()))))
}
