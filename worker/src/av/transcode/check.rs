//! Checks the result of a conversion: as long as its source, with the planned tracks, playable, within
//! `av_workers.max_output`.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt as _},
};

use sluice_media::{
    av::MediaFacts,
    format::Format,
    task::{Done, Failure, FailureCode, Limits, OutputFacts},
};

use super::{Work, faststart, whole, writer::TrackEnds};
use crate::{
    av::{MAX_OUTPUT, graph::BranchKind, internal, probe, refused, source::Input},
    serve,
};

/// Tolerance at the end, in seconds: a block of audio, some frames of a slow clip.
const TOLERANCE_S: f64 = 0.1;
/// The same as a share of the whole.
const TOLERANCE_SHARE: f64 = 0.01;
/// Tolerance where the length was no more than an estimate.
const ESTIMATE_SHARE: f64 = 0.5;
/// Place of the major brand (ISO/IEC 14496-12 §4.3), and the brand of audio alone.
const BRAND_AT: u64 = 8;
const AUDIO_BRAND: &[u8; 4] = b"M4A ";

/// Expected properties of a result.
pub struct Expected {
    pub format: Format,
    pub video_frames: bool,
    pub audio: bool,
    /// Degrees clockwise by which a player is to turn the frames.
    pub turn: u16,
}

impl Expected {
    /// Fails when the work ended before the clip did.
    pub fn of(work: &Work<'_>, ends: &TrackEnds) -> Result<Self, Failure> {
        let expected = Self {
            format: work.plan.format,
            video_frames: work.plan.video.is_some(),
            audio: work.plan.audio.is_some(),
            turn: work.copied_turn(),
        };
        let start_s = work.task.range.map_or(0.0, |range| range.start_s);
        let is_part = expected.video_frames != work.facts.video_track().is_some()
            || expected.audio != work.facts.audio_track().is_some();
        let (video_s, audio_s) = (
            ends.seconds(BranchKind::Video),
            ends.seconds(BranchKind::Audio),
        );
        let source = CheckedSource {
            input: work.input,
            facts: work.facts,
            is_part,
        };
        source.check_reached(video_s.max(audio_s), work.span_s(), start_s)?;
        if expected.video_frames && video_s <= 0.0 {
            return Err(undecodable(
                "none of the file's frames can be decoded there",
            ));
        }
        Ok(expected)
    }
}

/// A clip of which something was made.
pub struct CheckedSource<'a> {
    pub input: &'a Input,
    pub facts: &'a MediaFacts,
    /// Not all of its tracks were used, and one track may be shorter than another.
    pub is_part: bool,
}

impl CheckedSource<'_> {
    /// `reached_s` and `span_s`: how long the result is and should be; 0: unknown. `start_s`: where it begins in the clip.
    pub fn check_reached(&self, reached_s: f64, span_s: f64, start_s: f64) -> Result<(), Failure> {
        if reached_s <= 0.0 {
            return Err(undecodable("nothing of the file can be decoded there"));
        }
        let missing_s = span_s - reached_s;
        let tolerated_s = if self.is_estimate() {
            span_s * ESTIMATE_SHARE
        } else {
            self.video_frame_s()
                .max(TOLERANCE_S)
                .max(span_s * TOLERANCE_SHARE)
        };
        let is_shorter_track = self.is_part && !whole::breaks_off(self.input);
        if missing_s <= tolerated_s || is_shorter_track {
            return Ok(());
        }
        let whole_s = self.facts.duration_s().unwrap_or(start_s + span_s);
        Err(undecodable(&format!(
            "the file breaks off at {:.1} s of {whole_s:.1} s",
            start_s + reached_s
        )))
    }

    /// Returns whether the length comes from nothing but the bit rate, or from clocks that may jump.
    fn is_estimate(&self) -> bool {
        matches!(self.facts.format, None | Some(Format::Mp3))
    }

    fn video_frame_s(&self) -> f64 {
        let rate = self
            .facts
            .video_track()
            .and_then(|track| track.frames_per_second());
        rate.map_or(0.0, |rate| 1.5 / rate)
    }
}

/// Finishes a file and reads it back.
pub fn result(
    expected: &Expected,
    output: &OwnedFd,
    limits: &Limits,
    source: MediaFacts,
) -> Result<Done, Failure> {
    let file = File::from(duplicate(output)?);
    finish(&file, expected)?;
    let bytes = length(&file)?;
    if bytes > limits.max_output_bytes {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the result has {bytes} bytes, at most {} are allowed ({MAX_OUTPUT})",
                limits.max_output_bytes
            ),
        ));
    }
    let result = read_back(output, limits)?;
    let has = (
        result.video_track().is_some(),
        result.audio_track().is_some(),
    );
    if has != (expected.video_frames, expected.audio) {
        return Err(refused(
            "a track that it names holds nothing that can be played",
        ));
    }
    let size = result.video_track().map(|track| track.shown_size());
    let facts = OutputFacts {
        bytes,
        format: Some(expected.format),
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        pages: 1,
        duration_ms: result.duration_ms,
        applied_quality: None,
        path: None,
    };
    Ok(Done {
        outputs: vec![facts],
        media: Some(source),
        ..Done::default()
    })
}

/// Does what a format needs when all is written.
fn finish(file: &File, expected: &Expected) -> Result<(), Failure> {
    let format = expected.format;
    if !matches!(format, Format::Mp4 | Format::Mov | Format::M4a) {
        return Ok(());
    }
    faststart::apply(file, expected.turn).map_err(|error| match error {
        faststart::Error::Io(error) => unwritten(&error),
        _ => refused("its tracks do not go into one file together"),
    })?;
    if format == Format::M4a {
        file.write_all_at(AUDIO_BRAND, BRAND_AT)
            .map_err(|error| unwritten(&error))?;
    }
    Ok(())
}

/// The result as a source. The limits of sources are not those of what we made of them.
fn read_back(output: &OwnedFd, limits: &Limits) -> Result<MediaFacts, Failure> {
    let limits = Limits {
        max_duration_ms: u64::MAX,
        max_side: u32::MAX,
        max_pixels: u64::MAX,
        ..*limits
    };
    let input = Input::new(duplicate(output)?)
        .map_err(|error| internal(format!("the result cannot be read: {error}")))?;
    probe::probe(&input, &limits).map_err(|_| refused("what was made of it cannot be played"))
}

fn duplicate(descriptor: &OwnedFd) -> Result<OwnedFd, Failure> {
    descriptor
        .try_clone()
        .map_err(|error| internal(format!("the result cannot be opened again: {error}")))
}

fn length(file: &File) -> Result<u64, Failure> {
    let metadata = file.metadata().map_err(|error| unwritten(&error))?;
    Ok(metadata.len())
}

fn unwritten(error: &io::Error) -> Failure {
    serve::unwritten(error, MAX_OUTPUT)
}

fn undecodable(message: &str) -> Failure {
    Failure::new(FailureCode::Undecodable, message)
}
