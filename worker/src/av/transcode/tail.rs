//! Work-around for libvpx, which loses the last frames of a clip: the last frame is repeated into the encoder.
//!
//! At the end libvpx hands out what still waits only until half of a buffer is full, and the element around it asks once
//! (GStreamer 1.22): of detailed small frames some are lost. So the last frame is given to it again, as often as it
//! looks ahead, inside of the time for which that frame is shown, and what becomes of those is thrown away.

use std::sync::Arc;

use gst::prelude::*;
use gstreamer as gst;
use parking_lot::Mutex;

/// Assumed duration of a frame without one.
const USUAL: gst::ClockTime = gst::ClockTime::from_mseconds(40);

/// Last sample, and whether it was the end.
#[derive(Default)]
struct LastSample {
    last: Option<gst::Buffer>,
    has_ended: bool,
}

/// Repeats the last frame so often into an encoder, and drops the repetitions behind it. The encoder's time base must
/// be finer than the part of a frame's time that this leaves for each.
pub fn repeat_last(encoder: &gst::Element, times: u32) {
    let (Some(sink), Some(source)) = (encoder.static_pad("sink"), encoder.static_pad("src")) else {
        return;
    };
    let tail = Arc::new(Mutex::new(LastSample::default()));
    let remembered = tail.clone();
    sink.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let mut tail = remembered.lock();
        if !tail.has_ended {
            tail.last = info.buffer().map(|buffer| buffer.to_owned());
        }
        gst::PadProbeReturn::Ok
    });
    let ending = tail.clone();
    sink.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |pad, info| {
        if info
            .event()
            .is_some_and(|event| event.type_() == gst::EventType::Eos)
        {
            let last = {
                let mut tail = ending.lock();
                tail.has_ended = true;
                tail.last.clone()
            };
            for repetition in last.iter().flat_map(|last| repetitions(last, times)) {
                // An encoder that takes no more has said why on the bus.
                if pad.chain(repetition).is_err() {
                    break;
                }
            }
        }
        gst::PadProbeReturn::Ok
    });
    source.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let tail = tail.lock();
        let last = tail.last.as_ref().and_then(|last| last.pts());
        let is_repetition = tail.has_ended
            && matches!((info.buffer().and_then(|buffer| buffer.pts()), last), (Some(pts), Some(last)) if pts > last);
        match is_repetition {
            true => gst::PadProbeReturn::Drop,
            false => gst::PadProbeReturn::Ok,
        }
    });
}

fn repetitions(last: &gst::Buffer, times: u32) -> impl Iterator<Item = gst::Buffer> {
    let pts = last.pts().unwrap_or_default();
    let duration = last
        .duration()
        .filter(|duration| !duration.is_zero())
        .unwrap_or(USUAL);
    let step = duration / u64::from(times + 1);
    (1..=times).map(move |number| {
        let mut repetition = last.clone();
        let writable = repetition.make_mut();
        writable.set_pts(pts + step * u64::from(number));
        writable.set_duration(step);
        repetition
    })
}
