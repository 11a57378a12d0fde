//! Waveforms: for each column the lowest and the highest sample, in one colour on a transparent background.
//!
//! Audio is decoded once, and of it only [`Peaks`] are kept, so an hour costs no more memory than a second.

mod draw;
mod peaks;

use std::{
    ops::ControlFlow,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{
    av::{MediaFacts, Report, Waveform},
    task::{Done, Failure, FailureCode, Limits, OutputFacts},
};

use self::peaks::Peaks;
use super::{
    drive,
    graph::{BranchKind, Graph, Want},
    probe, refused, sink,
    source::Input,
    still,
};
use crate::image::{bounds::check_pixels, vips};

/// Shortest time between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(250);

/// Draws the waveform.
pub(super) fn perform(
    waveform: &Waveform,
    input: &Input,
    outputs: Vec<OwnedFd>,
    limits: &Limits,
    on_report: &mut dyn FnMut(Report),
) -> Result<Done, Failure> {
    let (width, height) = (waveform.width.max(1), waveform.height.max(1));
    check_pixels(width, height, limits)?;
    let facts = probe::probe(input, limits)?;
    let peaks = listen(input, &facts, width, on_report)?;
    let columns = peaks.columns(width).ok_or_else(|| {
        Failure::new(
            FailureCode::Undecodable,
            "the file is damaged: none of its audio decodes",
        )
    })?;
    let raster = draw::draw(&columns, height, waveform.colour);
    let image = vips::encode_raster(&raster, &waveform.output)?;
    let image_facts = OutputFacts {
        width: Some(width),
        height: Some(height),
        ..OutputFacts::of(Some(waveform.output.format), image.len())
    };
    still::write(facts, vec![(image_facts, image)], outputs, limits)
}

/// The peaks of all channels together.
fn listen(
    input: &Input,
    facts: &MediaFacts,
    columns: u32,
    on_report: &mut dyn FnMut(Report),
) -> Result<Peaks, Failure> {
    let graph = Graph::decode(input, facts, Want::AUDIO, None)?;
    let convert = sink::make("audioconvert")?;
    // Noise that hides rounding would make silence a band.
    convert.set_property_from_str("dithering", "none");
    let caps = gst::Caps::builder("audio/x-raw")
        .field("format", "S16LE")
        .field("layout", "interleaved")
        .build();
    let samples = sink::to_us(&caps);
    graph.add_chain(&[&convert, samples.upcast_ref()])?;
    graph.link(BranchKind::Audio, &convert)?;
    for element in [&convert, samples.upcast_ref()] {
        element
            .sync_state_with_parent()
            .map_err(|_| refused("its audio does not begin"))?;
    }

    let mut peaks = Peaks::new(columns);
    let mut reported_at = Instant::now();
    let heard = drive::pull_frames(&graph, &samples, &mut |sample| {
        let channels = channels(&sample);
        if let Some(buffer) = sample.buffer()
            && let Ok(bytes) = buffer.map_readable()
        {
            peaks.push(&bytes, channels);
        }
        if reported_at.elapsed() >= REPORT_EVERY {
            reported_at = Instant::now();
            on_report(Report::Working {
                share: share(&sample, facts),
            });
        }
        Ok(ControlFlow::Continue(()))
    });
    match heard {
        // The audio before the corruption is drawn.
        Err(failure) if peaks.is_empty() => Err(failure),
        _ => Ok(peaks),
    }
}

fn channels(sample: &gst::Sample) -> usize {
    let channels = sample
        .caps()
        .and_then(|caps| caps.structure(0)?.get::<i32>("channels").ok());
    channels
        .and_then(|channels| usize::try_from(channels).ok())
        .map_or(1, |channels| channels.max(1))
}

fn share(sample: &gst::Sample, facts: &MediaFacts) -> f32 {
    let at = sample.buffer().and_then(|buffer| buffer.pts());
    match (at, facts.duration_s()) {
        (Some(at), Some(duration_s)) if duration_s > 0.0 => {
            ((at.nseconds() as f64 / 1e9 / duration_s) as f32).clamp(0.0, 0.99)
        }
        _ => 0.0,
    }
}
