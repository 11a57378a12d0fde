//! Copy or encode each track of a clip: codecs of containers (`CONTAINERS`), H.264 and VP9 quality and bit rate. Pure.
//!
//! A track is copied when the container takes its codec and nothing asks for a change; an exact cut is a change, since
//! groups of frames and audio frames do not begin where it does.

mod audio;
mod shape;

use crate::{
    av::{MediaFacts, Transcode, VideoTrack, VideoWork},
    format::Format,
    task::{Adjust, Failure, FailureCode},
};

pub use audio::{AudioCodec, AudioEncoding};
pub use shape::{CropOffsets, Shape};

/// Strategy of a clip's tracks.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Container of [`CONTAINERS`].
    pub format: Format,
    /// `None`: without frames, or there are none.
    pub video: Option<Strategy<VideoEncoding>>,
    /// `None`: there is no audio.
    pub audio: Option<Strategy<AudioEncoding>>,
}

/// Strategy of a track.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy<Encoding> {
    Copy,
    Encode(Encoding),
}

impl<Encoding> Strategy<Encoding> {
    pub fn encoding(&self) -> Option<&Encoding> {
        match self {
            Self::Copy => None,
            Self::Encode(encoding) => Some(encoding),
        }
    }
}

/// Encoding of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoEncoding {
    pub codec: VideoCodec,
    pub shape: Shape,
    /// True when interlaced lines are made into whole frames.
    pub deinterlace: bool,
    /// The source's colours are wider than the result's.
    pub from_hdr: bool,
}

/// Codec with its constant-quality figure: lower is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VideoCodec {
    /// The rate factor of x264, 0 to 51.
    H264 { rate_factor: u8 },
    /// The quality level of libvpx, 0 to 63, and the average in bits per second that its worse frames keep to: without
    /// one its every frame is as good as the best.
    Vp9 { level: u8, bitrate: u32 },
}

/// Output container, and the codecs of tracks that it accepts as coded.
struct Container {
    format: Format,
    video: &'static [&'static str],
    audio: &'static [&'static str],
    /// True when a copied track keeps its rotation.
    keeps_rotation: bool,
}

const CONTAINERS: &[Container] = &[
    Container {
        format: Format::Mp4,
        video: &["h264", "hevc", "av1"],
        audio: &["aac", "mp3"],
        keeps_rotation: true,
    },
    Container {
        format: Format::Mov,
        video: &["h264", "hevc"],
        audio: &["aac", "mp3", "alac"],
        keeps_rotation: true,
    },
    Container {
        format: Format::Mkv,
        video: &[
            "h264", "hevc", "av1", "vp8", "vp9", "mpeg4", "mpeg2", "mpeg1", "theora",
        ],
        audio: &[
            "aac", "mp3", "mp2", "opus", "vorbis", "flac", "ac3", "eac3", "dts",
        ],
        keeps_rotation: false,
    },
    Container {
        format: Format::Webm,
        video: &["vp8", "vp9", "av1"],
        audio: &["opus", "vorbis"],
        keeps_rotation: false,
    },
    audio_only(Format::Mp3, &["mp3"]),
    audio_only(Format::Ogg, &["opus", "vorbis"]),
    audio_only(Format::M4a, &["aac", "alac"]),
    // Coded again it is the same audio, and its header has the right length.
    audio_only(Format::Flac, &[]),
    audio_only(Format::Wav, &[]),
];

const fn audio_only(format: Format, audio: &'static [&'static str]) -> Container {
    Container {
        format,
        video: &[],
        audio,
        keeps_rotation: false,
    }
}

/// Decides for every track.
///
/// Fails when nothing would be in the result ([`FailureCode::Impossible`]), when all that is to be changed is a track
/// that the file does not have ([`FailureCode::Invalid`]), when a cut begins behind the end, and when the format is
/// none that is written.
pub fn plan(facts: &MediaFacts, asked: &Transcode) -> Result<Plan, Failure> {
    let container = container(asked.format)?;
    if let Some(range) = &asked.range {
        range.check_start(facts.duration_s())?;
    }
    check_changes(facts, asked)?;
    let is_cut_exactly = asked.range.is_some_and(|range| range.accurate);
    let takes_video_frames = matches!(
        asked.format,
        Format::Mp4 | Format::Mov | Format::Mkv | Format::Webm
    );
    let video = match (facts.video_track(), &asked.video) {
        (Some(track), Some(work)) if takes_video_frames => {
            let is_timed = facts.format != Some(Format::Avi) || !is_reordered(track);
            let must_encode = is_cut_exactly || !is_timed;
            Some(video_strategy(track, work, container, must_encode))
        }
        _ => None,
    };
    let audio = facts.audio_track().map(|track| {
        // Each part of a chain has headers of its own, and what is copied has those of one.
        let fits = container.audio.contains(&track.codec.as_str()) && facts.parts.is_none();
        if fits && !is_cut_exactly && asked.audio.changes_nothing() {
            Strategy::Copy
        } else {
            Strategy::Encode(AudioEncoding::of(
                asked.format,
                track,
                asked.audio.bitrate_kbps,
            ))
        }
    });
    if video.is_none() && audio.is_none() {
        return Err(nothing_left(facts, asked, takes_video_frames));
    }
    Ok(Plan {
        format: asked.format,
        video,
        audio,
    })
}

impl Plan {
    /// Returns whether a cut begins at a key frame rather than exactly: copied frames can begin nowhere else.
    pub fn begins_at_key(&self) -> bool {
        matches!(
            (&self.video, &self.audio),
            (Some(Strategy::Copy), _) | (None, Some(Strategy::Copy))
        )
    }
}

fn container(format: Format) -> Result<&'static Container, Failure> {
    CONTAINERS
        .iter()
        .find(|container| container.format == format)
        .ok_or_else(|| {
            let formats: Vec<&str> = CONTAINERS.iter().map(|one| one.format.name()).collect();
            Failure::new(
                FailureCode::Impossible,
                format!(
                    "video and audio are written as {}, not as {}",
                    formats.join(", "),
                    format.name()
                ),
            )
        })
}

/// Rejects a request that would only copy the file and be counted as work.
fn check_changes(facts: &MediaFacts, asked: &Transcode) -> Result<(), Failure> {
    let has = (facts.video_track().is_some(), facts.audio_track().is_some());
    let is_asked = |work: &VideoWork| work.adjust != Adjust::default() || work.watermark.is_some();
    let changes = (
        asked.video.as_ref().is_some_and(is_asked),
        asked.audio.changes_loudness(),
    );
    let missing = match (has, changes) {
        ((false, true), (true, false)) => "frames, and only they would be changed",
        ((true, false), (false, true)) => "audio, and only that would be changed",
        _ => return Ok(()),
    };
    Err(Failure::new(
        FailureCode::Invalid,
        format!("the file has no {missing}: ask for a change of what it has"),
    ))
}

fn nothing_left(facts: &MediaFacts, asked: &Transcode, takes_video_frames: bool) -> Failure {
    if facts.video_track().is_none() && facts.audio_track().is_none() {
        return Failure::new(
            FailureCode::UnsupportedType,
            "the file has neither video nor audio that can be read",
        );
    }
    let why = if takes_video_frames {
        "the file has no audio, and its frames are not asked for".to_owned()
    } else {
        format!(
            "the file has no audio, and {} holds nothing else",
            asked.format.name()
        )
    };
    Failure::new(FailureCode::Impossible, why)
}

/// Returns whether frames may be coded in another order than they are shown in. AVI has no times for those.
fn is_reordered(track: &VideoTrack) -> bool {
    matches!(track.codec.as_str(), "h264" | "hevc" | "mpeg4")
}

fn video_strategy(
    track: &VideoTrack,
    work: &VideoWork,
    container: &Container,
    must_encode: bool,
) -> Strategy<VideoEncoding> {
    let fits = container.video.contains(&track.codec.as_str())
        && (track.rotation == 0 || container.keeps_rotation);
    if fits && !must_encode && changes_nothing(track, work) {
        return Strategy::Copy;
    }
    let shape = Shape::of(track, work.resize.as_ref());
    let codec = match container.format {
        Format::Webm => VideoCodec::vp9(work.quality, shape.size(), track.frames_per_second()),
        _ => VideoCodec::h264(work.quality),
    };
    Strategy::Encode(VideoEncoding {
        codec,
        shape,
        deinterlace: track.interlaced,
        from_hdr: track.hdr.is_some(),
    })
}

fn changes_nothing(track: &VideoTrack, work: &VideoWork) -> bool {
    let has_its_size = work
        .resize
        .as_ref()
        .is_none_or(|resize| Shape::of(track, Some(resize)).size() == track.shown_size());
    !work.again && has_its_size && work.adjust == Adjust::default() && work.watermark.is_none()
}

impl VideoCodec {
    /// The quality that requests have when they say nothing, and what the encoders' communities take for their default.
    const USUAL_QUALITY: f32 = 82.0;

    /// Rate factor of x264: from 50 at quality 1 over 23 at 82 to 17 at 100.
    fn h264(quality: u8) -> Self {
        Self::H264 {
            rate_factor: level(quality, 23.0, 1.0 / 3.0, 51.0),
        }
    }

    /// Quality level of libvpx: from 63 at quality 1 over 33 at 82 to 26 at 100; 18 steps of quality double the
    /// bitrate.
    fn vp9(quality: u8, (width, height): (u32, u32), video_frames_per_second: Option<f64>) -> Self {
        const BITS_PER_PIXEL: f64 = 0.07;
        const USUAL_RATE: f64 = 30.0;
        const BITRATES: (f64, f64) = (100_000.0, 200_000_000.0);
        let rate = video_frames_per_second
            .unwrap_or(USUAL_RATE)
            .clamp(1.0, 60.0);
        let pixels = f64::from(width) * f64::from(height) * rate;
        let steps = f64::from(quality.clamp(1, 100)) - f64::from(Self::USUAL_QUALITY);
        let bitrate = pixels * BITS_PER_PIXEL * (steps / 18.0).exp2();
        Self::Vp9 {
            level: level(quality, 33.0, 0.4, 63.0),
            bitrate: bitrate.clamp(BITRATES.0, BITRATES.1) as u32,
        }
    }
}

/// Level that is linear in the quality, `usual` at the usual one.
fn level(quality: u8, usual: f32, step: f32, most: f32) -> u8 {
    let quality = f32::from(quality.clamp(1, 100));
    (usual + (VideoCodec::USUAL_QUALITY - quality) * step)
        .round()
        .clamp(0.0, most) as u8
}

#[cfg(test)]
mod tests;
