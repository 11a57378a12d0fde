//! Decoded frames as the encoder takes them: I420, deinterlaced, cropped, scaled, turned, on a canvas, with even sides.
//!
//! The conversion to I420 comes first, where most frames are already; all that follows has one form of pixels.

use std::thread;

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{
    av::plan::{Shape, VideoEncoding},
    geometry::Canvas,
    task::{Adjust, Failure},
};

use super::{encoder::caps, tone, watermark::PlacedWatermark};
use crate::av::{scaler, sink::make};

/// Threads of a conversion; the encoder takes the rest.
const MOST_THREADS: usize = 4;

/// The elements, the first of which takes any frame.
pub fn chain(
    video_frame: &VideoEncoding,
    adjust: &Adjust,
    watermark: Option<PlacedWatermark>,
) -> Result<Vec<gst::Element>, Failure> {
    let mut elements = vec![converter()?, caps(&form(video_frame))?];
    if video_frame.deinterlace {
        elements.push(deinterlacer()?);
    }
    shape(&video_frame.shape, &mut elements)?;
    if *adjust != Adjust::default() {
        let toned = make("identity")?;
        tone::apply(&toned, adjust);
        elements.push(toned);
    }
    if let Some(watermark) = watermark {
        elements.extend(watermark.elements()?);
    }
    Ok(elements)
}

fn form(video_frame: &VideoEncoding) -> String {
    // Eight bits of a wide range's curve are no usual form; the usual one at least has its colours in the right order.
    let colours = if video_frame.from_hdr {
        ",colorimetry=bt709"
    } else {
        ""
    };
    format!("video/x-raw,format=I420{colours}")
}

fn deinterlacer() -> Result<gst::Element, Failure> {
    let element = make("deinterlace")?;
    element.set_property_from_str("mode", "auto");
    element.set_property_from_str("method", "yadif");
    // One frame for each two fields: the rate stays.
    element.set_property_from_str("fields", "top");
    Ok(element)
}

/// Crops, scales, turns, and lays the frames on a canvas.
fn shape(shape: &Shape, elements: &mut Vec<gst::Element>) -> Result<(), Failure> {
    let cut = shape.cut;
    if [cut.left, cut.right, cut.top, cut.bottom] != [0; 4] {
        elements.push(sides(
            "videocrop",
            [cut.left, cut.right, cut.top, cut.bottom].map(|side| side as i32),
        )?);
    }
    let (width, height) = shape.coded_size();
    elements.push(make(scaler::FACTORY)?);
    elements.push(caps(&format!(
        "video/x-raw,width={width},height={height},pixel-aspect-ratio=1/1"
    ))?);
    if shape.turn != 0 {
        let flip = make("videoflip")?;
        flip.set_property_from_str("video-direction", direction(shape.turn));
        elements.push(flip);
    }
    if let Some(canvas) = shape.canvas {
        elements.push(sides("videobox", border(shape, canvas))?);
    }
    Ok(())
}

/// Left, right, top, bottom; a box with negative sides is a border.
fn border(shape: &Shape, canvas: Canvas) -> [i32; 4] {
    let (width, height) = shape.upright_size();
    let right = canvas.width.saturating_sub(canvas.left + width);
    let bottom = canvas.height.saturating_sub(canvas.top + height);
    [canvas.left, right, canvas.top, bottom].map(|side| -(side as i32))
}

fn sides(factory: &str, [left, right, top, bottom]: [i32; 4]) -> Result<gst::Element, Failure> {
    let element = make(factory)?;
    element.set_property("left", left);
    element.set_property("right", right);
    element.set_property("top", top);
    element.set_property("bottom", bottom);
    Ok(element)
}

/// Degrees clockwise in the words of GStreamer.
fn direction(turn: u16) -> &'static str {
    match turn {
        90 => "90r",
        180 => "180",
        270 => "90l",
        _ => "identity",
    }
}

fn converter() -> Result<gst::Element, Failure> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let element = make("videoconvert")?;
    element.set_property("n-threads", threads.min(MOST_THREADS) as u32);
    Ok(element)
}
