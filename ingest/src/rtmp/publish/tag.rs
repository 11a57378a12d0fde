//! Writes units as FLV tags and `onMetaData` for RTMP outputs: the reverse of [`super::super::flv`].
//!
//! H.264, AAC and MP3 are sent in FLV's own form, which every server reads; HEVC, AV1 and Opus in that of enhanced
//! RTMP v2.

use sluice_media::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig},
    unit::VideoUnit,
};

use crate::rtmp::amf0;

/// Ticks of the 90 kHz clock in a millisecond.
const TICKS_PER_MS: i64 = 90;
/// Largest composition time in 24 bits.
const MOST_CTS_MS: i64 = 0x7F_FFFF;
const KEY: u8 = 0x10;
const INTER: u8 = 0x20;
/// Enhanced video: the flag of the header, and packet types beside sequence start (0).
const EX_VIDEO: u8 = 0x80;
const CODED_FRAMES: u8 = 1;
/// Audio format 9: an enhanced header follows in the low bits.
const EX_AUDIO: u8 = 0x90;
/// Audio formats with 44 kHz, 16 bit, stereo, which is mandatory for these codecs.
const AAC: u8 = 0xAF;
const MP3: u8 = 0x2F;

/// A time in milliseconds, to the nearest.
pub(super) fn milliseconds(ticks: i64) -> i64 {
    (ticks + TICKS_PER_MS / 2).div_euclid(TICKS_PER_MS)
}

/// Returns the tag header of a configuration record.
pub(super) fn video_configuration(codec: VideoCodec) -> Vec<u8> {
    match enhanced_video(codec) {
        None => vec![KEY | 7, 0, 0, 0, 0],
        Some(fourcc) => [&[EX_VIDEO | KEY][..], fourcc].concat(),
    }
}

/// Returns the tag header of a frame.
pub(super) fn video_frame(codec: VideoCodec, unit: &VideoUnit) -> Vec<u8> {
    let frame_type = if unit.key { KEY } else { INTER };
    let shown = milliseconds(unit.dts_90k + i64::from(unit.cts_90k));
    let cts_ms = (shown - milliseconds(unit.dts_90k)).clamp(-MOST_CTS_MS, MOST_CTS_MS) as i32;
    let [_, cts @ ..] = cts_ms.to_be_bytes();
    match enhanced_video(codec) {
        None => [&[frame_type | 7, 1][..], &cts].concat(),
        Some(fourcc) => {
            let head = [&[EX_VIDEO | frame_type | CODED_FRAMES][..], fourcc].concat();
            match codec {
                VideoCodec::Hevc => [&head[..], &cts].concat(),
                _ => head,
            }
        }
    }
}

/// Returns the tag header of a configuration record; `None` for MP3, which has none.
pub(super) fn audio_configuration(codec: AudioCodec) -> Option<Vec<u8>> {
    match codec {
        AudioCodec::Aac => Some(vec![AAC, 0]),
        AudioCodec::Opus => Some([&[EX_AUDIO][..], b"Opus"].concat()),
        AudioCodec::Mp3 => None,
    }
}

/// Returns the tag header of an audio frame.
pub(super) fn audio(codec: AudioCodec) -> Vec<u8> {
    match codec {
        AudioCodec::Aac => vec![AAC, 1],
        AudioCodec::Opus => [&[EX_AUDIO | CODED_FRAMES][..], b"Opus"].concat(),
        AudioCodec::Mp3 => vec![MP3],
    }
}

/// Writes `@setDataFrame` of `onMetaData`.
pub(super) fn metadata(video: Option<&VideoConfig>, audio: Option<&AudioConfig>) -> Vec<u8> {
    let mut message = amf0::Writer::new();
    message.string("@setDataFrame").string("onMetaData");
    message.ecma_array(|data| {
        if let Some(video) = video {
            data.name("width").number(f64::from(video.width));
            data.name("height").number(f64::from(video.height));
            data.name("videocodecid").number(video_id(video.codec));
            if let Some(frame_rate) = video.frame_rate {
                data.name("framerate").number(frame_rate);
            }
        }
        if let Some(audio) = audio {
            data.name("audiocodecid").number(audio_id(audio.codec));
            data.name("audiosamplerate")
                .number(f64::from(audio.sample_rate));
            data.name("audiochannels").number(f64::from(audio.channels));
            data.name("stereo").boolean(audio.channels > 1);
        }
        data.name("encoder").string("Sluice");
    });
    message.into_bytes()
}

fn enhanced_video(codec: VideoCodec) -> Option<&'static [u8; 4]> {
    match codec {
        VideoCodec::Avc => None,
        VideoCodec::Hevc => Some(b"hvc1"),
        VideoCodec::Av1 => Some(b"av01"),
    }
}

/// Returns FLV's number, or the four characters as one (enhanced RTMP v2, "Enhancing onMetaData").
fn video_id(codec: VideoCodec) -> f64 {
    enhanced_video(codec).map_or(7.0, |fourcc| f64::from(u32::from_be_bytes(*fourcc)))
}

fn audio_id(codec: AudioCodec) -> f64 {
    match codec {
        AudioCodec::Aac => 10.0,
        AudioCodec::Mp3 => 2.0,
        AudioCodec::Opus => f64::from(u32::from_be_bytes(*b"Opus")),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn unit(dts_90k: i64, cts_90k: i32, key: bool) -> VideoUnit {
        VideoUnit {
            dts_90k,
            cts_90k,
            key,
            data: Bytes::new(),
        }
    }

    #[test]
    fn heads_are_as_specified() {
        let cases: [(&str, Vec<u8>, &[u8]); 7] = [
            (
                "H.264 with composition time",
                video_frame(VideoCodec::Avc, &unit(0, 90 * 66, true)),
                &[0x17, 1, 0, 0, 66],
            ),
            (
                "shown before it is decoded",
                video_frame(VideoCodec::Avc, &unit(900, -90, false)),
                &[0x27, 1, 0xFF, 0xFF, 0xFF],
            ),
            (
                "HEVC",
                video_frame(VideoCodec::Hevc, &unit(0, 90, false)),
                b"\xA1hvc1\x00\x00\x01",
            ),
            (
                "AV1 has no composition time",
                video_frame(VideoCodec::Av1, &unit(0, 0, true)),
                b"\x91av01",
            ),
            (
                "HEVC configuration",
                video_configuration(VideoCodec::Hevc),
                b"\x90hvc1",
            ),
            ("Opus", audio(AudioCodec::Opus), b"\x91Opus"),
            ("MP3", audio(AudioCodec::Mp3), &[0x2F]),
        ];
        for (name, head, expected) in cases {
            assert_eq!(head, expected, "{name}");
        }
    }

    /// Rounded apart, decode time and offset would move frames by a millisecond against each other.
    #[test]
    fn the_time_of_showing_is_rounded_whole() {
        for dts_90k in (0..90_000).step_by(3003) {
            let unit = unit(dts_90k, 2 * 3003, false);
            let head = video_frame(VideoCodec::Avc, &unit);
            let cts_ms = i64::from(u32::from_be_bytes([0, head[2], head[3], head[4]]));
            let shown = milliseconds(dts_90k) + cts_ms;
            assert_eq!(shown, milliseconds(dts_90k + 2 * 3003));
        }
    }
}
