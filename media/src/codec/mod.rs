//! Codec configurations of video (H.264, HEVC, AV1) and audio (AAC, Opus, MP3): size, frame rate, `CODECS` string,
//! largest frame side. They are the facts that a decoder needs before the first unit, and those that health shows.
//!
//! Records come from the wire. Every parser here reads through a bounded cursor, rejects absurd values with
//! [`Error::Invalid`], and keeps the record itself as received, because the init section carries it on unchanged.

mod aac;
mod av1;
mod avc;
mod bits;
mod format;
mod hevc;
mod mp3;
mod obu;
mod opus;
mod parameter_sets;
mod payload;
#[cfg(test)]
mod test_bytes;
mod vui;

pub use aac::AdtsFields;
use bytes::Bytes;
pub use format::{Chroma, SampleFormat};
pub use opus::{OpusHead, OpusMapping};
pub use parameter_sets::ParameterSets;
pub use payload::{PayloadFacts, check_payload};

use crate::Error;

/// Largest accepted frame side, in pixels.
pub const MAX_PIXELS_PER_SIDE: u32 = 16_384;

/// Largest accepted video record. HEVC records carry the encoder's whole settings as text, about 2.5 kB.
const MAX_VIDEO_RECORD_BYTES: usize = 64 * 1024;

words! {
    /// A video codec that is carried from ingest to playback without re-encoding.
    pub enum VideoCodec {
        Avc = "h264",
        Hevc = "hevc",
        Av1 = "av1",
    }
}

words! {
    /// An audio codec that is carried from ingest to playback without re-encoding.
    pub enum AudioCodec {
        Aac = "aac",
        Opus = "opus",
        Mp3 = "mp3",
    }
}

/// A video decoder configuration, checked and explained.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoConfig {
    pub codec: VideoCodec,
    /// The body of the `avcC`, `hvcC` or `av1C` box (ISO/IEC 14496-15, AV1-ISOBMFF), as received.
    pub record: Bytes,
    /// Pixels across after cropping, 1–16 384.
    pub width: u16,
    /// Pixels down after cropping, 1–16 384.
    pub height: u16,
    /// Pixel aspect ratio, width to height; (1, 1) when square or absent.
    pub pixel_aspect: (u32, u32),
    /// Frames per second, where the bitstream declares a clock. Encoders may be wrong about it.
    pub frame_rate: Option<f64>,
    /// Bytes before each NAL unit that hold its length (1, 2 or 4); 0 for AV1.
    pub nal_length_size: u8,
    /// RFC 6381, for instance `avc1.64001f`, `hvc1.1.6.L93.B0`, `av01.0.04M.08`.
    pub codecs: String,
    /// The profile's usual name: "High", "Main 10".
    pub profile: String,
    /// The level's usual name: "4.1".
    pub level: String,
    /// Bits per luma sample.
    pub bit_depth: u8,
    /// True when decode and presentation order may differ; `None` when the configuration leaves it open.
    pub may_reorder: Option<bool>,
}

impl VideoConfig {
    /// Reads the sample format in the configuration record; `None` where the record is corrupt, which
    /// [`VideoConfig::parse`] rejects.
    pub fn sample_format(&self) -> Option<SampleFormat> {
        match self.codec {
            VideoCodec::Avc => avc::sample_format(&self.record),
            VideoCodec::Hevc => hevc::sample_format(&self.record),
            VideoCodec::Av1 => av1::sample_format(&self.record, self.bit_depth),
        }
    }

    /// Reads a configuration record. [`Error::Invalid`] when it is truncated, contradicts itself or describes a frame
    /// of no or absurd size; [`Error::Unsupported`] for forms that no HLS player supports.
    pub fn parse(codec: VideoCodec, record: Bytes) -> Result<Self, Error> {
        if record.len() > MAX_VIDEO_RECORD_BYTES {
            let reason = format!(
                "it is {} bytes long, at most {MAX_VIDEO_RECORD_BYTES} are taken",
                record.len()
            );
            return Err(Error::invalid("video configuration record", reason));
        }
        match codec {
            VideoCodec::Avc => avc::parse(record),
            VideoCodec::Hevc => hevc::parse(record),
            VideoCodec::Av1 => av1::parse(record),
        }
    }

    /// Returns the configuration that parameter sets inside the stream give, as MPEG-TS carries them; its NAL units
    /// come behind lengths of 4 bytes. [`Error::Invalid`] where a needed set is missing or corrupt.
    pub fn from_parameter_sets(codec: VideoCodec, sets: &ParameterSets) -> Result<Self, Error> {
        let record = match codec {
            VideoCodec::Avc => avc::record(sets)?,
            VideoCodec::Hevc => hevc::record(sets)?,
            VideoCodec::Av1 => {
                return Err(Error::unsupported("AV1", "it has no parameter sets"));
            }
        };
        Self::parse(codec, record.into())
    }

    /// Returns the parameter sets in the record, in the order in which a decoder needs them: NAL units with their headers, without
    /// lengths. None for AV1.
    pub fn parameter_sets(&self) -> Vec<Bytes> {
        parameter_sets::sets_of_record(self)
    }

    /// Builds the configuration and its record from the sequence header of an AV1 key frame, for encoders whose `av1C`
    /// lacks it, which [`VideoConfig::parse`] rejects as [`Error::Unsupported`].
    pub fn from_av1_key_frame(temporal_unit: &[u8]) -> Result<Self, Error> {
        av1::from_key_frame(temporal_unit)
    }
}

/// An audio decoder configuration, checked and explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioConfig {
    pub codec: AudioCodec,
    /// AAC: the AudioSpecificConfig (ISO/IEC 14496-3), as received. Opus: the identification header, as received;
    /// [`AudioConfig::opus_head`] reads it. MP3: empty.
    pub record: Bytes,
    /// Samples per second and channel after decoding (HE-AAC: the doubled rate; Opus: always 48 000).
    pub sample_rate: u32,
    /// Channels after decoding, 1–8.
    pub channels: u8,
    /// RFC 6381, for instance `mp4a.40.2`, `opus`.
    pub codecs: String,
    /// Samples of one frame at `sample_rate`. Opus may vary from packet to packet: see [`AudioConfig::samples_in`].
    pub samples_per_frame: u32,
}

impl AudioConfig {
    /// Reads a configuration record. MP3 has none: [`AudioConfig::from_mp3_frame`].
    pub fn parse(codec: AudioCodec, record: Bytes) -> Result<Self, Error> {
        match codec {
            AudioCodec::Aac => aac::parse(record),
            AudioCodec::Opus => opus::parse(record),
            AudioCodec::Mp3 => Err(Error::unsupported(
                "MP3 configuration record",
                "MP3 frames describe themselves",
            )),
        }
    }

    /// MP3 has no configuration record: it follows from the header of any frame.
    pub fn from_mp3_frame(frame: &[u8]) -> Result<Self, Error> {
        mp3::from_frame(frame)
    }

    /// Samples in this packet at `sample_rate`; `samples_per_frame` where the packet does not say otherwise.
    pub fn samples_in(&self, packet: &[u8]) -> u32 {
        match self.codec {
            AudioCodec::Opus => opus::samples_in(packet).unwrap_or(self.samples_per_frame),
            AudioCodec::Aac | AudioCodec::Mp3 => self.samples_per_frame,
        }
    }

    /// The fields that an ADTS header needs; `None` unless the codec is AAC.
    pub fn adts(&self) -> Option<AdtsFields> {
        match self.codec {
            AudioCodec::Aac => aac::adts(&self.record),
            AudioCodec::Opus | AudioCodec::Mp3 => None,
        }
    }

    /// The fields that the `dOps` box needs; `None` unless the codec is Opus.
    pub fn opus_head(&self) -> Option<OpusHead> {
        match self.codec {
            AudioCodec::Opus => OpusHead::parse(&self.record).ok(),
            AudioCodec::Aac | AudioCodec::Mp3 => None,
        }
    }
}

/// The size that is left of `coded` (across, down) after cropping (left, right, top, bottom) in steps of `unit`.
/// [`Error::Invalid`] when nothing is left, or more than [`MAX_PIXELS_PER_SIDE`].
fn video_frame_size(
    what: &'static str,
    coded: (u32, u32),
    crop: [u32; 4],
    unit: (u32, u32),
) -> Result<(u16, u16), Error> {
    let side = |coded: u32, first: u32, second: u32, unit: u32| {
        let cropped = (u64::from(first) + u64::from(second)) * u64::from(unit);
        let left = u64::from(coded).checked_sub(cropped)?;
        (1..=u64::from(MAX_PIXELS_PER_SIDE))
            .contains(&left)
            .then_some(left as u16)
    };
    let [left, right, top, bottom] = crop;
    match (
        side(coded.0, left, right, unit.0),
        side(coded.1, top, bottom, unit.1),
    ) {
        (Some(width), Some(height)) => Ok((width, height)),
        _ => Err(Error::invalid(
            what,
            format!(
                "its frame is {}×{} before cropping, {crop:?} is cropped",
                coded.0, coded.1
            ),
        )),
    }
}

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
