//! Shared parts of operations on video and audio: `timestamp`, `bitrateKbps`, audio and video formats, bit rate of a
//! quality.

use super::{EDIT_QUALITY, field::Field, writable};
use crate::{
    av::{AudioWork, AvTask, Still, Transcode, VideoWork},
    format::{Class, Format},
    task::{Render, Task},
};

/// Containers of audio alone.
pub(super) const AUDIO_TARGETS: &[Format] = &[
    Format::Mp3,
    Format::M4a,
    Format::Wav,
    Format::Ogg,
    Format::Flac,
];

/// Containers of video and audio, and of audio alone.
pub(super) const TARGETS: &[Format] = &[
    Format::Mp4,
    Format::Mov,
    Format::Webm,
    Format::Mkv,
    Format::Mp3,
    Format::M4a,
    Format::Wav,
    Format::Ogg,
    Format::Flac,
];

pub(super) const TIMESTAMP: Field = Field::seconds(
    "timestamp",
    "1",
    "of a video, in seconds; behind its end: the last frame",
);

/// Value of [`TIMESTAMP`] for a job of an earlier version without one.
pub(super) fn default_timestamp() -> f64 {
    1.0
}

pub(super) const BITRATE: Field = Field::integer(
    "bitrateKbps",
    LEAST_KBPS as i64,
    MOST_KBPS as i64,
    Some("192"),
    "kilobits per second; unless it is given, audio that fits the format is copied",
);

const LEAST_KBPS: u32 = 32;
const MOST_KBPS: u32 = 320;

/// Default bit rate of encoded audio.
pub(super) const USUAL_KBPS: u32 = 192;

/// Rates of MPEG-1 layer III (ISO/IEC 11172-3 §2.4.2.3), which the other codecs have no objection to.
const RATES_KBPS: [u32; 14] = [
    LEAST_KBPS, 40, 48, 56, 64, 80, 96, 112, 128, 160, USUAL_KBPS, 224, 256, MOST_KBPS,
];

/// Returns the bit rate for a quality of 1 to 100: 192 for the usual 82.
pub(super) fn bitrate_of(quality: u8) -> u32 {
    let share = f64::from(quality.clamp(1, 100) - 1) / 99.0;
    let place = share * (RATES_KBPS.len() - 1) as f64;
    RATES_KBPS[place as usize]
}

/// The nearest bit rate that exists; the higher one of two.
pub(super) fn nearest_bitrate(kbps: u32) -> u32 {
    let higher_first = RATES_KBPS.iter().rev();
    higher_first
        .min_by_key(|rate| rate.abs_diff(kbps))
        .copied()
        .unwrap_or(USUAL_KBPS)
}

/// Returns whether audio is kept bit by bit, so that no bit rate applies.
pub(super) fn is_lossless(format: Format) -> bool {
    matches!(format, Format::Wav | Format::Flac)
}

/// Video as edits encode them, where they cannot be copied.
pub(super) fn edited() -> VideoWork {
    VideoWork {
        quality: EDIT_QUALITY,
        ..VideoWork::default()
    }
}

/// A whole clip into a container, its video only where that holds any.
pub(super) fn transcode(format: Format, video: VideoWork, audio: AudioWork) -> Transcode {
    Transcode {
        format,
        range: None,
        video: (format.class() == Class::Video).then_some(video),
        audio,
        keep_tags: true,
    }
}

/// Audio alone, copied where it fits unless it is to be re-encoded.
pub(super) fn audio(format: Format, kbps: u32, again: bool) -> Task {
    let audio = match is_lossless(format) {
        true => AudioWork::default(),
        false => AudioWork {
            again,
            bitrate_kbps: Some(kbps),
            ..AudioWork::default()
        },
    };
    task(AvTask::Transcode(transcode(
        format,
        VideoWork::default(),
        audio,
    )))
}

/// The same clip with some work done on it.
pub(super) fn same(source: Format, video: VideoWork, audio: AudioWork) -> Task {
    task(AvTask::Transcode(transcode(writable(source), video, audio)))
}

/// A render of an image, or of a video's frame at that time.
pub(super) fn still(source: Format, at_s: f64, render: Render) -> Task {
    if source.class() != Class::Video {
        return Task::Render(Box::new(render));
    }
    task(AvTask::Still(Still {
        at_s,
        render: Render {
            source: Format::Png,
            ..render
        },
    }))
}

pub(super) fn task(work: AvTask) -> Task {
    Task::Av(Box::new(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_and_bit_rate_meet_at_their_defaults_and_ends() {
        for (quality, kbps) in [(0, 32), (1, 32), (50, 96), (82, 192), (99, 256), (100, 320)] {
            assert_eq!(bitrate_of(quality), kbps, "{quality}");
        }
        for (asked, kbps) in [(1, 32), (36, 40), (100, 96), (192, 192), (1000, 320)] {
            assert_eq!(nearest_bitrate(asked), kbps, "{asked}");
        }
    }
}
