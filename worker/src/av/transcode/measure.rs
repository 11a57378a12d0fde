//! Measuring pass over the audio of a clip before it is encoded: its loudness and its end.

use std::ops::ControlFlow;

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{
    av::{Report, plan::AudioEncoding},
    task::Failure,
};

use super::{
    Work, audio,
    loudness::{Loudness, Meter},
};
use crate::av::{
    drive,
    graph::{BranchKind, Graph, Want},
    refused,
    sink::to_us,
};

/// Interval of progress reports, in seconds of the clip.
const REPORT_EVERY_S: f64 = 5.0;

/// Measures the audio as it will be encoded, in its rate and channels, over the part that will be.
pub fn measure(
    work: &Work<'_>,
    audio: &AudioEncoding,
    on_report: &mut dyn FnMut(Report),
) -> Result<Loudness, Failure> {
    let graph = Graph::decode(work.input, work.facts, Want::AUDIO, work.range())?;
    let elements = audio::to_samples(audio, audio::FLOATS)?;
    let sink = to_us(&gst::Caps::new_any());
    let mut chain: Vec<&gst::Element> = elements.iter().collect();
    chain.push(sink.upcast_ref());
    graph.add_chain(&chain)?;
    graph.link(BranchKind::Audio, chain[0])?;

    let mut meter = Meter::new(audio.rate, audio.channels);
    let span_s = work.span_s();
    let (mut samples, mut seen, mut reported_s) = (Vec::new(), 0_u64, 0.0);
    drive::pull_frames(&graph, &sink, &mut |sample| {
        let bytes = sample
            .buffer()
            .and_then(|buffer| buffer.map_readable().ok())
            .ok_or_else(|| refused("a block of its audio cannot be read"))?;
        samples.clear();
        samples.extend(
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .copied()
                .map(f32::from_le_bytes),
        );
        meter.push(&samples);
        seen += samples.len() as u64;
        let now_s = seen as f64 / f64::from(audio.rate * audio.channels);
        if now_s > reported_s + REPORT_EVERY_S && span_s > 0.0 {
            reported_s = now_s;
            on_report(Report::Working {
                share: (now_s / span_s).min(1.0) as f32,
            });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(meter.finish())
}
