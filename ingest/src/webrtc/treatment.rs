//! Decision what a WebRTC viewer is sent: the publisher's frames as they are, or a re-encoding, and for which reason (`b-frames`,
//! `codec`, `bit-depth`, `chroma`, `interlaced`).
//!
//! Pure. Browsers decode 8-bit 4:2:0 progressive video whose frames come in the order in which they are shown, and mono or stereo
//! Opus.

use sluice_media::codec::{AudioCodec, AudioConfig, Chroma, VideoConfig};

use super::message::VideoCodecs;

/// Most bits per sample that browsers decode in a WebRTC session.
const MAX_BIT_DEPTH: u8 = 8;

/// Reason why video is re-encoded for a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The viewer does not decode it.
    Codec,
    /// Its chroma is not 4:2:0.
    Chroma,
    BitDepth,
    Interlaced,
    /// Frames are shown in another order than they are sent.
    BFrames,
}

impl Reason {
    /// The name in health.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Codec => "codec",
            Self::Chroma => "chroma",
            Self::BitDepth => "bit-depth",
            Self::Interlaced => "interlaced",
            Self::BFrames => "b-frames",
        }
    }
}

/// Treatment of an input's video for a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The publisher's own frames.
    Passthrough,
    /// H.264 of the re-encoding branch.
    Reencode(Reason),
}

/// Decides about video. `reorders`: frames were seen to be shown in another order than they come; `offered`: the codecs that the
/// viewer decodes. Reasons that hold for every viewer come after the one that is the viewer's own.
pub fn of_video(video: &VideoConfig, reorders: bool, offered: VideoCodecs) -> Treatment {
    if !offered.contains(video.codec) {
        return Treatment::Reencode(Reason::Codec);
    }
    stream_reason(video, reorders).map_or(Treatment::Passthrough, Treatment::Reencode)
}

/// Returns the reason why no viewer can be sent the publisher's own frames.
fn stream_reason(video: &VideoConfig, reorders: bool) -> Option<Reason> {
    let format = video.sample_format();
    if format.is_some_and(|format| format.chroma != Chroma::Yuv420) {
        return Some(Reason::Chroma);
    }
    let bit_depth = format.map_or(video.bit_depth, |format| format.bit_depth);
    if bit_depth > MAX_BIT_DEPTH {
        return Some(Reason::BitDepth);
    }
    if format.is_some_and(|format| format.is_interlaced) {
        return Some(Reason::Interlaced);
    }
    // A decoder holds frames back as far as the configuration allows reordering, whether or not it happens.
    (reorders || video.may_reorder == Some(true)).then_some(Reason::BFrames)
}

/// Returns whether a viewer is sent the publisher's own audio; everything but mono and stereo Opus is encoded again as Opus.
pub fn passes_audio(audio: &AudioConfig) -> bool {
    let is_simple = audio.opus_head().is_some_and(|head| head.mapping.is_none());
    audio.codec == AudioCodec::Opus && audio.channels <= 2 && is_simple
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_media::codec::VideoCodec::{self, Av1, Avc, Hevc};

    use super::{Reason::*, Treatment::*, *};

    /// Records that encoders wrote.
    const CONSTRAINED_BASELINE: &str =
        "0142c01effe100176742c01eda0280bfe5c04400000fa40003a9803c58ba8001000468ce0fc8";
    const HIGH_WITH_B_FRAMES: &str = "01640028ffe1001b67640028acd940780227e5c044000003000400000300f03c60c65801000468ef8fcbfdf8f800";
    const HIGH_INTERLACED: &str = "01640028ffe1001a67640028acd94078044fde0220000003002000000643e2c5b2c001000468fe8fcbfdf8f800";
    const HIGH_10: &str = "016e0020ffe1001a676e0020a6cd9405005bb011000003000100000300640f18319601000468ef8fcbfdfafa00";
    const HIGH_422: &str = "017a001effe1001d677a001ebcb405a0937fe0020001e2000003000200000300651e2c5d4001000468ef0fcbfef8f800";
    const HEVC_MAIN_10: &str = "01022000000090000000000078f000fcfdfafa00000f03a00001001840010c01ffff022000000300900000030000030078ba0240a10001002d420101022000000300900000030000030078a00288802e1c444365ba4a4c2f016808000003000800000301e040a2000100064401c073c189";
    const AV1: &str = "81010c000a0b0000000cc4ff6736be4010";
    const AV1_10_BIT: &str = "81054c000a0c0200002d2a67fd9e017c2020";

    fn config(codec: VideoCodec, record: &str) -> VideoConfig {
        let digits: Vec<u8> = record
            .bytes()
            .map(|digit| char::from(digit).to_digit(16).unwrap() as u8)
            .collect();
        let record: Vec<u8> = digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        VideoConfig::parse(codec, record.into()).unwrap()
    }

    #[test]
    fn video_is_sent_as_browsers_decode_it() {
        for (codec, record, reorders, offered, expected) in [
            (Avc, CONSTRAINED_BASELINE, false, &[Avc][..], Passthrough),
            (Avc, CONSTRAINED_BASELINE, true, &[Avc], Reencode(BFrames)),
            (Avc, CONSTRAINED_BASELINE, false, &[Av1], Reencode(Codec)),
            (Avc, HIGH_WITH_B_FRAMES, false, &[Avc], Reencode(BFrames)),
            (Avc, HIGH_INTERLACED, false, &[Avc], Reencode(Interlaced)),
            (Avc, HIGH_10, true, &[Avc], Reencode(BitDepth)),
            (Avc, HIGH_422, true, &[Avc], Reencode(Chroma)),
            (Hevc, HEVC_MAIN_10, false, &[Avc], Reencode(Codec)),
            (Hevc, HEVC_MAIN_10, false, &[Avc, Hevc], Reencode(BitDepth)),
            (Av1, AV1, false, &[Avc, Av1], Passthrough),
            (Av1, AV1, false, &[Avc, Hevc], Reencode(Codec)),
            (Av1, AV1_10_BIT, false, &[Av1], Reencode(BitDepth)),
        ] {
            let offered = offered.iter().copied().collect();
            let treatment = of_video(&config(codec, record), reorders, offered);
            assert_eq!(treatment, expected, "{codec:?} {record} {reorders}");
        }
    }

    #[test]
    fn only_mono_and_stereo_opus_is_passed_through() {
        let opus = |head: &'static [u8]| {
            AudioConfig::parse(AudioCodec::Opus, Bytes::from_static(head)).unwrap()
        };
        let aac = AudioConfig::parse(AudioCodec::Aac, Bytes::from_static(&[0x11, 0x90])).unwrap();
        for (config, expected) in [
            (opus(b"OpusHead\x01\x01\x38\x01\x80\xbb\0\0\0\0\0"), true),
            (opus(b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0"), true),
            // Two streams, each of one channel.
            (
                opus(b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\x01\x02\0\0\x01"),
                false,
            ),
            (
                opus(b"OpusHead\x01\x06\x38\x01\x80\xbb\0\0\0\0\x01\x04\x02\0\x04\x01\x02\x03\x05"),
                false,
            ),
            (aac, false),
        ] {
            assert_eq!(passes_audio(&config), expected, "{config:?}");
        }
    }
}
