//! Stills of a clip: the frame at a time as an image, or the cover of an audio file. Storyboards and animations take
//! their frames here, too.
//!
//! ```text
//! Graph ─► appsink ─► Frames (which one is shown at a time) ─► Developer (upright, square pixels, sRGB) ─► libvips
//! ```
//!
//! libvips begins when the graph has ended: both compile loops with liborc, whose older versions share no lock with
//! libvips' way of giving them back.

mod cover;
mod frame_converter;
mod frames;
mod hdr;

use std::os::fd::OwnedFd;

use sluice_media::{
    av::{MediaFacts, Report, Still},
    format::Format,
    task::{Done, Failure, FailureCode, Limits, OutputFacts, Render},
};

use super::{MAX_OUTPUT, probe, source::Input};
use crate::{
    image::{Raster, vips},
    serve,
};

pub(super) use frame_converter::FrameConverter;
pub(super) use frames::FrameReader;

/// Takes the frame, or the cover of what has none, and renders it as an image.
pub(super) fn perform(
    still: &Still,
    input: &Input,
    outputs: Vec<OwnedFd>,
    limits: &Limits,
    on_report: &mut dyn FnMut(Report),
) -> Result<Done, Failure> {
    let facts = probe::probe(input, limits)?;
    let image = match facts.video_track() {
        Some(_) => {
            let raster = video_frame(input, &facts, still.at_s, on_report)?;
            vips::render_raster(&still.render, &raster, limits)?
        }
        None => cover(input, &facts, &still.render, limits)?,
    };
    write(facts, vec![image], outputs, limits)
}

fn video_frame(
    input: &Input,
    facts: &MediaFacts,
    at_s: f64,
    on_report: &mut dyn FnMut(Report),
) -> Result<Raster, Failure> {
    let mut video_frames = FrameReader::open(input, facts)?;
    let video_frame = video_frames
        .at(at_s, on_report)?
        .ok_or_else(no_video_frame)?;
    FrameConverter::of(facts).develop(&video_frame.sample, None)
}

fn cover(
    input: &Input,
    facts: &MediaFacts,
    render: &Render,
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let cover = cover::find(input, facts)?.ok_or_else(|| {
        Failure::new(
            FailureCode::Impossible,
            "the file has no moving frame and no cover",
        )
    })?;
    let format = Format::sniff(&cover)
        .filter(|format| format.is_image())
        .ok_or_else(|| {
            Failure::new(
                FailureCode::Undecodable,
                "the file's cover is no image of a format that is read",
            )
        })?;
    let render = Render {
        source: format,
        animate: false,
        ..render.clone()
    };
    vips::render(&render, &cover, None, limits)
}

/// Failure for a track whose frames do not decode.
pub(super) fn no_video_frame() -> Failure {
    Failure::new(
        FailureCode::Undecodable,
        "the file is damaged: none of its frames decodes",
    )
}

/// Writes results to their outputs.
pub(super) fn write(
    facts: MediaFacts,
    results: Vec<(OutputFacts, Vec<u8>)>,
    outputs: Vec<OwnedFd>,
    limits: &Limits,
) -> Result<Done, Failure> {
    let (written, bytes) = results.into_iter().unzip();
    serve::write_all(bytes, outputs, limits.max_output_bytes, MAX_OUTPUT)?;
    Ok(Done {
        outputs: written,
        media: Some(facts),
        ..Done::default()
    })
}
