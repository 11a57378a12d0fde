//! Rendition ladder of a video stream: profiles (`basic`, `standard`, `hd`, `source_max`, `custom`), heights, bit
//! rates, key-frame distance. Pure: reads no media bytes.
//!
//! A rendition's height is the short edge of the upright frame in square pixels. None is above the source; a source
//! below a profile's lowest gets one of its own size. All have their segment boundaries at the same frames, of a
//! constant rate.

use serde::{Deserialize, Serialize};

use super::{AudioTrack, Ladder, LadderAudio, LadderVideo, MediaFacts, VideoTrack};
use crate::{
    hls::vod::{FrameClock, SegmentBoundaries, names},
    operation::FieldError,
    task::{Failure, FailureCode},
};

const BASIC: &[u32] = &[360, 480];
const STANDARD: &[u32] = &[360, 480, 720];
const HD: &[u32] = &[360, 480, 720, 1080];
const ALL: &[u32] = &[360, 480, 720, 1080, 1440, 2160];

/// Least side that an encoder takes, in pixels.
const LEAST_SIDE: u32 = 16;
/// Heights that a request may name for its own renditions, in pixels, and bit rates, in bits per second.
pub const HEIGHTS: std::ops::RangeInclusive<u32> = 90..=4_320;
pub const BITRATES: std::ops::RangeInclusive<u32> = 50_000..=80_000_000;
/// Seconds of a segment.
pub const SEGMENT_DURATIONS: std::ops::RangeInclusive<u32> = 2..=12;
/// Seconds that a group of frames should last.
const GROUP_S: u32 = 2;
/// Frames per second that are made at least and at most; between them the source's own rate is kept.
const LEAST_RATE: f64 = 5.0;
const MOST_RATE: f64 = 60.5;
const UNKNOWN_RATE: (u32, u32) = (30, 1);
/// Bits per second of the audio.
const AUDIO_BITRATE: u32 = 128_000;

/// Pixels, and the bits per second that 30 such frames a second need with x264's `veryfast`.
const BITRATE_OF_PIXELS: &[(f64, f64)] = &[
    (256.0 * 144.0, 200e3),
    (426.0 * 240.0, 400e3),
    (640.0 * 360.0, 800e3),
    (854.0 * 480.0, 1_400e3),
    (1_280.0 * 720.0, 2_800e3),
    (1_920.0 * 1_080.0, 4_800e3),
    (2_560.0 * 1_440.0, 9_000e3),
    (3_840.0 * 2_160.0, 16_000e3),
];

/// Selection of an asset's renditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    Basic,
    #[default]
    Standard,
    Hd,
    /// All heights up to the source's own, which is one of them.
    SourceMax,
    Custom(Vec<Rung>),
}

/// A requested rendition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// Pixels of the short edge.
    pub height: u32,
    /// Bits per second; `None`: what fits the size.
    pub bitrate: Option<u32>,
}

impl Profile {
    /// The names of all; the last one needs renditions.
    pub const NAMES: [&str; 5] = ["basic", "standard", "hd", "source_max", "custom"];

    /// Returns the profile of this name; `rungs` are valid only with `custom`.
    pub fn parse(name: &str, rungs: &[Rung], most: usize) -> Result<Self, FieldError> {
        if name != "custom" && !rungs.is_empty() {
            return Err(FieldError::new(
                "renditions",
                format!("renditions belong to profile custom, profile is {name}"),
            ));
        }
        match name {
            "basic" => Ok(Self::Basic),
            "standard" => Ok(Self::Standard),
            "hd" => Ok(Self::Hd),
            "source_max" => Ok(Self::SourceMax),
            "custom" => Self::custom(rungs, most),
            _ => Err(FieldError::new(
                "profile",
                format!("profile must be one of {}", Self::NAMES.join(", ")),
            )),
        }
    }

    fn custom(rungs: &[Rung], most: usize) -> Result<Self, FieldError> {
        let wrong = |message: String| Err(FieldError::new("renditions", message));
        if rungs.is_empty() || rungs.len() > most {
            return wrong(format!(
                "profile custom needs 1 to {most} renditions, {} came",
                rungs.len()
            ));
        }
        for rung in rungs {
            if !HEIGHTS.contains(&rung.height) {
                return wrong(format!(
                    "a rendition's height must be {} to {}, {} came",
                    HEIGHTS.start(),
                    HEIGHTS.end(),
                    rung.height
                ));
            }
            if let Some(bitrate) = rung.bitrate.filter(|bitrate| !BITRATES.contains(bitrate)) {
                return wrong(format!(
                    "a rendition's bitrate must be {} to {} bits per second, {bitrate} came",
                    BITRATES.start(),
                    BITRATES.end()
                ));
            }
        }
        Ok(Self::Custom(rungs.to_vec()))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Standard => "standard",
            Self::Hd => "hd",
            Self::SourceMax => "source_max",
            Self::Custom(_) => "custom",
        }
    }

    /// Returns the renditions for a source with this short edge, in any order, and perhaps above it.
    fn rungs(&self, short: u32) -> Vec<Rung> {
        let of = |heights: &[u32]| {
            let rung = |&height| Rung {
                height,
                bitrate: None,
            };
            heights.iter().map(rung).collect::<Vec<_>>()
        };
        match self {
            Self::Basic => of(BASIC),
            Self::Standard => of(STANDARD),
            Self::Hd => of(HD),
            Self::SourceMax => of(&up_to_source(short)),
            Self::Custom(rungs) => rungs.clone(),
        }
    }
}

/// Returns the usual heights below the source, and the source's own, which replaces one that it exceeds by less than a
/// fifth.
fn up_to_source(short: u32) -> Vec<u32> {
    let top = short.min(ALL[ALL.len() - 1]);
    let mut heights: Vec<u32> = ALL
        .iter()
        .copied()
        .filter(|&height| height * 6 <= top * 5)
        .collect();
    heights.push(top);
    heights
}

/// Plan of a clip's renditions.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderPlan {
    pub ladder: Ladder,
    /// Renditions in the order of the ladder's files: video from the smallest to the largest, then audio.
    pub renditions: Vec<Rendition>,
}

/// A rendition as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendition {
    /// `720p`, `audio`: unique within the asset.
    pub name: String,
    /// Pixels; 0 for audio.
    pub width: u32,
    pub height: u32,
    /// Bits per second that are aimed at.
    pub bitrate: u32,
    /// `h264` or `aac`.
    pub codec: String,
    /// The source's own units, unless they turn out not to fit.
    pub copy: bool,
}

/// Plans an asset. [`FailureCode::UnsupportedType`] when there is neither video nor audio.
pub fn plan(
    facts: &MediaFacts,
    profile: &Profile,
    segment_duration_s: u32,
) -> Result<LadderPlan, Failure> {
    let segment_duration_s =
        segment_duration_s.clamp(*SEGMENT_DURATIONS.start(), *SEGMENT_DURATIONS.end());
    let video = facts
        .video_track()
        .map(|track| rungs(track, facts, profile))
        .unwrap_or_default();
    let audio = facts.audio_track().map(|track| LadderAudio {
        bitrate: AUDIO_BITRATE,
        copy: is_plain_aac(track),
    });
    if video.is_empty() && audio.is_none() {
        return Err(Failure::new(
            FailureCode::UnsupportedType,
            "the file has neither video nor audio that can be played",
        ));
    }
    let video_renditions = video.iter().map(|rung| Rendition {
        name: names::rendition_name(rung.width, rung.height),
        width: rung.width,
        height: rung.height,
        bitrate: rung.bitrate,
        codec: "h264".to_owned(),
        copy: rung.copy,
    });
    let audio_rendition = audio.iter().map(|audio| Rendition {
        name: names::AUDIO.to_owned(),
        width: 0,
        height: 0,
        bitrate: audio.bitrate,
        codec: "aac".to_owned(),
        copy: audio.copy,
    });
    Ok(LadderPlan {
        renditions: video_renditions.chain(audio_rendition).collect(),
        ladder: Ladder {
            video,
            audio,
            segment_duration_s,
            resume: None,
            sheet: None,
        },
    })
}

/// Video renditions, each of another size, from the smallest to the largest.
fn rungs(track: &VideoTrack, facts: &MediaFacts, profile: &Profile) -> Vec<LadderVideo> {
    let (wide, high) = track.shown_size();
    let short = wide.min(high).max(1);
    let mut wanted = profile.rungs(short);
    wanted.sort_by_key(|rung| rung.height);
    let lowest = wanted.first().copied();
    wanted.retain(|rung| rung.height <= short);
    let custom = matches!(profile, Profile::Custom(_));
    if let (true, Some(lowest)) = (wanted.is_empty(), lowest) {
        // A bit rate that was asked for a larger frame does not apply.
        wanted.push(Rung {
            height: short,
            bitrate: lowest.bitrate.filter(|_| custom),
        });
    }
    let mut rungs: Vec<LadderVideo> = Vec::with_capacity(wanted.len());
    for rung in wanted {
        let (width, height) = scaled((wide, high), rung.height);
        let is_new = rungs
            .last()
            .is_none_or(|last| last.width.min(last.height) < width.min(height));
        if is_new {
            let usual = bitrate(width, height, rate(track));
            let bitrate = rung.bitrate.unwrap_or(usual);
            rungs.push(LadderVideo {
                width,
                height,
                bitrate,
                max_bitrate: bitrate.saturating_mul(3) / 2,
                copy: false,
            });
        }
    }
    if let [only] = rungs.as_mut_slice() {
        only.copy = fits(track, facts, only);
    }
    rungs
}

/// The size with that short edge, both sides even; aspect kept to the nearest.
fn scaled((wide, high): (u32, u32), short: u32) -> (u32, u32) {
    let from = wide.min(high).max(1);
    let side = |side: u32| {
        let exact = u64::from(side) * u64::from(short) / u64::from(from);
        let near =
            (u64::from(side) * u64::from(short) + u64::from(from)) / (2 * u64::from(from)) * 2;
        // The short edge is rounded down, and the long one never above the source's.
        let even = if near > u64::from(side) || side == from {
            exact / 2 * 2
        } else {
            near
        };
        u32::try_from(even).unwrap_or(u32::MAX - 1).max(LEAST_SIDE)
    };
    (side(wide), side(high))
}

/// Bits per second for frames of this size and rate, by the table; more frames need less each.
fn bitrate(width: u32, height: u32, rate: (u32, u32)) -> u32 {
    let pixels = f64::from(width) * f64::from(height);
    let per_second = f64::from(rate.0) / f64::from(rate.1);
    let by_rate = (per_second / 30.0).powf(0.6).clamp(0.5, 1.6);
    let exact = at_30(pixels) * by_rate;
    (exact / 10_000.0).round().max(5.0) as u32 * 10_000
}

/// Interpolates the table, also beyond its ends: bits grow as a power of pixels.
fn at_30(pixels: f64) -> f64 {
    let above = BITRATE_OF_PIXELS
        .iter()
        .position(|&(size, _)| pixels <= size)
        .unwrap_or(BITRATE_OF_PIXELS.len() - 1)
        .max(1);
    let ((small, few), (large, many)) = (BITRATE_OF_PIXELS[above - 1], BITRATE_OF_PIXELS[above]);
    let share = (pixels / small).ln() / (large / small).ln();
    few * (many / few).powf(share)
}

/// Returns whether the source's own units can be the rendition: H.264 that every player takes, upright, of that very
/// size, and not above its bit rate. Its reader checks whether its key frames come often enough.
fn fits(track: &VideoTrack, facts: &MediaFacts, rung: &LadderVideo) -> bool {
    let is_common = track.codec == "h264"
        && track.bits_per_sample.is_none_or(|bits| bits == 8)
        && track
            .chroma
            .as_deref()
            .is_none_or(|chroma| chroma == "4:2:0")
        && !track.interlaced
        && track.hdr.is_none();
    let is_upright = track.rotation == 0 && (track.width, track.height) == track.shown_size();
    let known = track.bitrate.or(facts.bitrate);
    let is_light = known.is_some_and(|bits| bits <= u64::from(rung.max_bitrate));
    let is_calm = track
        .frames_per_second()
        .is_none_or(|rate| rate <= MOST_RATE);
    is_common
        && is_upright
        && is_light
        && is_calm
        && (track.width, track.height) == (rung.width, rung.height)
}

/// AAC-LC in two channels at a rate of the CD or the DVD.
fn is_plain_aac(track: &AudioTrack) -> bool {
    let is_low_complexity = track
        .profile
        .as_deref()
        .is_some_and(|profile| matches!(profile.to_ascii_lowercase().as_str(), "lc" | "aac-lc"));
    track.codec == "aac"
        && is_low_complexity
        && track.channels == 2
        && matches!(track.sample_rate, 44_100 | 48_000)
        && track
            .bitrate
            .is_none_or(|bits| bits <= 2 * u64::from(AUDIO_BITRATE) + 20_000)
}

/// Frames per seconds of every rendition: the source's own, as far as it is usual, else a whole part or multiple of it.
pub fn rate(track: &VideoTrack) -> (u32, u32) {
    let Some(own) = track.frames_per_second() else {
        return UNKNOWN_RATE;
    };
    let (video_frames, seconds) = track.frame_rate;
    if !(0.01..=1_000.0).contains(&own) {
        return UNKNOWN_RATE;
    }
    let by = |parts: f64| parts.ceil().max(1.0) as u32;
    if own > MOST_RATE {
        (video_frames, seconds.saturating_mul(by(own / MOST_RATE)))
    } else if own < LEAST_RATE {
        (video_frames.saturating_mul(by(LEAST_RATE / own)), seconds)
    } else {
        (video_frames, seconds)
    }
}

/// Grouping of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Frames from one key frame to the next.
    pub video_frames: u32,
    /// Groups of a segment.
    pub per_segment: u32,
}

/// Whole groups of about two seconds in segments that, rounded to seconds, are never longer than asked for.
pub fn groups(rate: (u32, u32), segment_duration_s: u32) -> Groups {
    let per_second = f64::from(rate.0) / f64::from(rate.1.max(1));
    let per_segment = segment_duration_s.div_ceil(GROUP_S).max(1);
    let exact = per_second * f64::from(segment_duration_s) / f64::from(per_segment);
    let lasts = |video_frames: f64| video_frames * f64::from(per_segment) / per_second;
    let fits = |video_frames: &f64| lasts(*video_frames) < f64::from(segment_duration_s) + 0.5;
    let video_frames = Some(exact.round()).filter(fits).unwrap_or(exact.floor());
    Groups {
        video_frames: video_frames.max(1.0) as u32,
        per_segment,
    }
}

/// Returns where segments of encoded frames begin.
pub fn cuts(rate: (u32, u32), segment_duration_s: u32) -> SegmentBoundaries {
    let groups = groups(rate, segment_duration_s);
    SegmentBoundaries::Even {
        clock: FrameClock::new(rate),
        video_frames: groups.video_frames.saturating_mul(groups.per_segment),
    }
}

/// Bytes of memory that work on a ladder needs about: frames of the source that wait for the encoders, and what these
/// look ahead.
pub fn memory_bytes(facts: &MediaFacts, ladder: &Ladder) -> u64 {
    /// The process with its libraries.
    const PROCESS: u64 = 130 << 20;
    /// Frames that wait, and frames in an encoder.
    const OF_SOURCE: u64 = 40;
    const OF_RENDITION: u64 = 60;
    let video_frame = |width: u32, height: u32| u64::from(width) * u64::from(height) * 3 / 2;
    let encoded = ladder.video.iter().filter(|rung| !rung.copy);
    let renditions: u64 = encoded
        .map(|rung| video_frame(rung.width, rung.height) * OF_RENDITION)
        .sum();
    let source = match facts.video_track() {
        Some(track) if renditions > 0 => {
            let deep = if track.bits_per_sample.is_some_and(|bits| bits > 8) {
                2
            } else {
                1
            };
            video_frame(track.width, track.height) * deep * OF_SOURCE
        }
        _ => 0,
    };
    PROCESS + source + renditions
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
