//! Encoding of audio: sample rates, channels and bit rates of AAC, MP3, Opus, FLAC and WAV.

use crate::{
    av::{AudioTrack, AudioWork},
    format::Format,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioEncoding {
    pub codec: AudioCodec,
    /// Hertz.
    pub rate: u32,
    pub channels: u32,
    /// Bits per second; `None`: the codec loses nothing.
    pub bitrate: Option<u32>,
    /// Bits of a sample, where the codec loses nothing: 16 or 24.
    pub bits: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioCodec {
    Aac,
    Mp3,
    Opus,
    Flac,
    /// Uncompressed samples.
    Pcm,
}

/// Sampling frequencies of MPEG-4 audio up to 48 kHz (ISO/IEC 14496-3 table 1.18); twice that is inaudible.
const AAC_RATES: &[u32] = &[
    8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000,
];
/// Sampling frequencies of MPEG-1, MPEG-2 and the extension that is called 2.5.
const MP3_RATES: &[u32] = AAC_RATES;
/// Opus codes everything at this rate.
const OPUS_RATES: &[u32] = &[48_000];
/// Bit rates of layer III in kbit/s, from 32 kHz on and below (ISO/IEC 11172-3 §2.4.2.3, 13818-3 §2.4.2.3).
const MP3_KBPS: &[u32] = &[
    32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
];
const MP3_LOW_KBPS: &[u32] = &[8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const MP3_LOWEST_FULL_RATE: u32 = 32_000;
/// FLAC's stream header and many readers of WAV do not distinguish lower and higher rates.
const PLAIN_RATES: std::ops::RangeInclusive<u32> = 4_000..=192_000;
const USUAL_RATE: u32 = 48_000;

impl AudioEncoding {
    /// Returns the encoding of a track in a container; `bitrate_kbps` is clamped to the codec's range.
    pub fn of(format: Format, track: &AudioTrack, bitrate_kbps: Option<u32>) -> Self {
        let codec = AudioCodec::of(format);
        let rate = codec.rate(track.sample_rate);
        let channels = codec.channels(track.channels);
        let is_deep = track.bits_per_sample.is_some_and(|bits| bits > 16)
            && matches!(track.codec.as_str(), "pcm" | "flac" | "alac" | "wavpack");
        Self {
            codec,
            rate,
            channels,
            bitrate: codec.bitrate(rate, channels, bitrate_kbps),
            bits: if is_deep { 24 } else { 16 },
        }
    }
}

impl AudioCodec {
    fn of(format: Format) -> Self {
        match format {
            Format::Webm | Format::Ogg => Self::Opus,
            Format::Mp3 => Self::Mp3,
            Format::Flac => Self::Flac,
            Format::Wav => Self::Pcm,
            _ => Self::Aac,
        }
    }

    /// The lowest rate that loses nothing, or the highest that there is.
    fn rate(self, source: u32) -> u32 {
        let source = if source == 0 { USUAL_RATE } else { source };
        let known = match self {
            Self::Aac => AAC_RATES,
            Self::Mp3 => MP3_RATES,
            Self::Opus => OPUS_RATES,
            Self::Flac | Self::Pcm => {
                return source.clamp(*PLAIN_RATES.start(), *PLAIN_RATES.end());
            }
        };
        known
            .iter()
            .copied()
            .find(|rate| *rate >= source)
            .unwrap_or(USUAL_RATE)
    }

    /// Returns the number of output channels: layouts that every player supports stay (one, two, and 5.1); others are
    /// mixed down to the next of them.
    fn channels(self, source: u32) -> u32 {
        match (self, source) {
            (_, 0 | 1) => 1,
            (Self::Mp3, _) => 2,
            (Self::Flac | Self::Pcm, _) => source.min(8),
            (_, 6..) => 6,
            _ => 2,
        }
    }

    fn bitrate(self, rate: u32, channels: u32, asked_kbps: Option<u32>) -> Option<u32> {
        /// Bit rate of a channel by default.
        const USUAL_KBPS: u32 = 64;
        let kbps = asked_kbps.unwrap_or(match self {
            Self::Mp3 => 192,
            _ => USUAL_KBPS * channels,
        });
        let kbps = match self {
            Self::Flac | Self::Pcm => return None,
            Self::Mp3 if rate >= MP3_LOWEST_FULL_RATE => nearest(MP3_KBPS, kbps),
            Self::Mp3 => nearest(MP3_LOW_KBPS, kbps),
            // A frame of 1024 samples has at most 6144 bits per channel (ISO/IEC 14496-3 §4.5.3).
            Self::Aac => kbps.clamp(16, 6 * rate * channels / 1_000),
            // RFC 6716 §2.1.1, for each channel.
            Self::Opus => kbps.clamp(6, 256 * channels),
        };
        Some(kbps * 1_000)
    }
}

fn nearest(known: &[u32], wanted: u32) -> u32 {
    known
        .iter()
        .copied()
        .min_by_key(|kbps| kbps.abs_diff(wanted))
        .unwrap_or(wanted)
}

impl AudioWork {
    /// Returns whether the samples stay as they are and no other coding of them is requested. A bit rate alone does not
    /// request one: it is for audio that has to be encoded.
    pub fn changes_nothing(&self) -> bool {
        !self.again && !self.changes_loudness()
    }

    /// Returns whether samples are multiplied by anything.
    pub fn changes_loudness(&self) -> bool {
        self.volume != 1.0 || self.normalize || self.fade_in_s > 0.0 || self.fade_out_s > 0.0
    }
}
