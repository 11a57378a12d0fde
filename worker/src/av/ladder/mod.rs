//! Renditions of an HLS asset: one decode for all video, audio beside it, one file of segments for each; check of
//! damaged sources.
//!
//! ```text
//! input ┬► frames ─► rate, upright ─► tee ┬► scale ► x264 ► segments ─► file 0
//!       │                         └► sheet  └► scale ► x264 ► segments ─► file 1 …
//!       └► audio ────► stereo ────────────────────────► AAC ► segments ─► last file
//! ```
//!
//! Frames and audio are read by graphs of their own, so that neither waits for the position of the other in the file;
//! within one, every queue holds a few frames, so that no rendition runs ahead of another. A segment is reported once
//! its bytes are written. Of several failures the first counts, and it ends the rest.

mod audio;
mod copy;
mod drawing;
mod encoder;
mod metronome;
mod rendition_file;
mod scan;
mod unit;
mod video;
mod work;

use std::{os::fd::OwnedFd, sync::Arc, thread};

use sluice_media::{
    av::{Ladder, MediaFacts, Report},
    format::Format,
    hls::vod::SegmentBoundaries,
    task::{Done, Failure, FailureCode, Limits, OutputFacts},
};

use self::{drawing::Drawing, rendition_file::RenditionFile, work::LadderTask};
use super::{MAX_OUTPUT, probe, source::Input};
use crate::serve;

/// A result that ends this much before its source does is a sign of damage: a twentieth, at least 1.5 s.
const SHORTER_BY: i64 = 20;
const SHORTER_BY_90K: i64 = 135_000;

/// Makes the renditions of `input`; `outputs` are their files, frames first, and those of the storyboard.
pub fn perform(
    ladder: &Ladder,
    input: &Input,
    mut outputs: Vec<OwnedFd>,
    limits: &Limits,
    on_report: &mut (dyn FnMut(Report) + Send),
) -> Result<Done, Failure> {
    let facts = probe::probe(input, limits)?;
    let storyboard_files = outputs.split_off(ladder.renditions());
    // A clip that none can be made of has its renditions all the same.
    let sheet = ladder.sheet.as_ref();
    let drawing = sheet.and_then(|sheet| Drawing::new(sheet, &facts, limits).ok());
    let (work, reports) = LadderTask::new();
    let mut rendition_files = RenditionFile::open_all(outputs, limits, &work)?;
    let audio_file = ladder.audio.and_then(|_| rendition_files.pop());
    let plan = video::plan(ladder, input, &facts, on_report)?;
    let cuts = match &plan {
        Some(plan) => plan.cuts(),
        None => SegmentBoundaries::seconds(ladder.segment_duration_s),
    };
    thread::scope(|scope| {
        if let Some(plan) = plan {
            let part = work.part();
            let (facts, rendition_files, drawing) = (&facts, &rendition_files, drawing.as_ref());
            scope.spawn(move || {
                part.end(plan.perform(ladder, input, facts, rendition_files, drawing))
            });
        }
        if let (Some(audio), Some(rendition_file)) = (ladder.audio, &audio_file) {
            let part = work.part();
            let facts = &facts;
            let is_alone = ladder.video.is_empty();
            scope.spawn(move || {
                part.end(audio::perform(
                    audio,
                    input,
                    facts,
                    cuts,
                    rendition_file,
                    is_alone,
                ))
            });
        }
        reports.pass_on(on_report);
    });
    work.failure().map_or(Ok(()), Err)?;
    rendition_files.extend(audio_file);
    check_length(&facts, &rendition_files)?;
    let mut done = done(ladder, facts, &rendition_files);
    if let (Some(sheet), Some(canvas)) = (sheet, drawing.and_then(|it| it.take())) {
        let (facts, bytes): (Vec<_>, _) = canvas.finish(sheet)?.into_iter().unzip();
        serve::write_all(bytes, storyboard_files, limits.max_output_bytes, MAX_OUTPUT)?;
        done.outputs.extend(facts);
    }
    Ok(done)
}

/// Fails when no rendition reaches the end of its source.
fn check_length(facts: &MediaFacts, rendition_files: &[Arc<RenditionFile>]) -> Result<(), Failure> {
    let Some(source_ms) = facts.duration_ms else {
        return Ok(());
    };
    let source_90k = i64::try_from(source_ms)
        .unwrap_or(i64::MAX / 90)
        .saturating_mul(90);
    let made_90k = rendition_files
        .iter()
        .map(|rendition_file| rendition_file.end_90k())
        .max()
        .unwrap_or(0);
    let least_90k = source_90k - (source_90k / SHORTER_BY).max(SHORTER_BY_90K);
    if made_90k > 0 && made_90k >= least_90k {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::Undecodable,
        format!(
            "the file is damaged: {:.1} of its {:.1} seconds can be decoded",
            made_90k as f64 / 90_000.0,
            source_90k as f64 / 90_000.0
        ),
    ))
}

fn done(ladder: &Ladder, facts: MediaFacts, rendition_files: &[Arc<RenditionFile>]) -> Done {
    let outputs = rendition_files
        .iter()
        .enumerate()
        .map(|(index, rendition_file)| {
            let rung = ladder.video.get(index);
            OutputFacts {
                width: rung.map(|rung| rung.width),
                height: rung.map(|rung| rung.height),
                duration_ms: u64::try_from(rendition_file.end_90k() / 90).ok(),
                ..OutputFacts::of(
                    Some(Format::Mp4),
                    usize::try_from(rendition_file.length()).unwrap_or(usize::MAX),
                )
            }
        });
    Done {
        outputs: outputs.collect(),
        media: Some(facts),
        ..Done::default()
    }
}
