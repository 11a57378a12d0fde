//! Storyboard of an HLS asset, drawn from the frames on their way to the renditions, so that a source is decoded once.

use std::sync::Arc;

use gst::prelude::*;
use gstreamer as gst;
use parking_lot::Mutex;
use sluice_media::{
    av::{MediaFacts, Sheet},
    hls::vod::FrameClock,
    task::{Failure, Limits},
};

use super::{
    super::{refused, sheet::StoryboardCanvas, still::FrameConverter},
    metronome,
};
use crate::image::Raster;

/// A storyboard in the making, shared by the thread that draws it and the one that writes it.
#[derive(Clone)]
pub(super) struct Drawing(Arc<Mutex<State>>);

struct State {
    /// `None`: a frame could not be drawn, or all is done.
    canvas: Option<StoryboardCanvas>,
    converter: FrameConverter,
}

impl Drawing {
    pub(super) fn new(sheet: &Sheet, facts: &MediaFacts, limits: &Limits) -> Result<Self, Failure> {
        Ok(Self(Arc::new(Mutex::new(State {
            canvas: Some(StoryboardCanvas::new(sheet, facts, limits)?),
            converter: FrameConverter::upright(),
        }))))
    }

    /// Draws of what passes a pad: the frames of a clock, from the first on, upright.
    pub(super) fn watch(&self, pad: &gst::Pad, clock: FrameClock) {
        let drawing = self.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            let buffer = info.buffer();
            let seen =
                buffer.and_then(|buffer| metronome::index(pad, buffer, clock).zip(info.buffer()));
            if let Some((index, buffer)) = seen {
                drawing.0.lock().see(pad, buffer, index, clock);
            }
            gst::PadProbeReturn::Ok
        });
    }

    /// The whole storyboard; `None` where a frame is missing.
    pub(super) fn take(&self) -> Option<StoryboardCanvas> {
        let canvas = self.0.lock().canvas.take();
        canvas.filter(|canvas| canvas.next_s().is_none())
    }
}

impl State {
    /// Draws a frame if it is the next one's, or that one never came.
    fn see(&mut self, pad: &gst::Pad, buffer: &gst::Buffer, index: u64, clock: FrameClock) {
        let Some(canvas) = &mut self.canvas else {
            return;
        };
        let mut drawn = None;
        while let Some(at_s) = canvas.next_s()
            && clock.nearest((at_s * 90_000.0) as i64) <= index
        {
            let video_frame = match drawn.take() {
                Some(video_frame) => video_frame,
                None => match develop(&mut self.converter, pad, buffer, canvas.cell()) {
                    Ok(video_frame) => video_frame,
                    // The storyboard is then made from the source.
                    Err(_) => {
                        self.canvas = None;
                        return;
                    }
                },
            };
            canvas.paste(&video_frame);
            drawn = Some(video_frame);
        }
    }
}

fn develop(
    converter: &mut FrameConverter,
    pad: &gst::Pad,
    buffer: &gst::Buffer,
    cell: (u32, u32),
) -> Result<Raster, Failure> {
    let caps = pad
        .current_caps()
        .ok_or_else(|| refused("a decoded frame has no form"))?;
    let sample = gst::Sample::builder().buffer(buffer).caps(&caps).build();
    converter.develop(&sample, Some(cell))
}
