//! Codec configurations: what a decoder must know before the first unit, and what people want to know about it.
//!
//! Records come from the wire. Every parser here reads through a bounded cursor, refuses absurd values with
//! [`Error::Invalid`], and keeps the record itself as received, because the init section carries it on unchanged.

mod payload;

pub use payload::{PayloadFacts, check_payload};

use bytes::Bytes;

use crate::Error;

/// A video codec that is carried from ingest to playback without re-encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoCodec {
    Avc,
    Hevc,
    Av1,
}

impl VideoCodec {
    /// The lower-case name shown in health and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Avc => "h264",
            Self::Hevc => "hevc",
            Self::Av1 => "av1",
        }
    }
}

/// An audio codec that is carried from ingest to playback without re-encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AudioCodec {
    Aac,
    Opus,
    Mp3,
}

impl AudioCodec {
    /// The lower-case name shown in health and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aac => "aac",
            Self::Opus => "opus",
            Self::Mp3 => "mp3",
        }
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
    /// Width to height of one pixel; (1, 1) when square or not said.
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
    /// Whether decode and presentation order may differ; `None` when the configuration leaves it open.
    pub may_reorder: Option<bool>,
}

impl VideoConfig {
    /// Reads a configuration record. [`Error::Invalid`] when it is truncated, contradicts itself or describes a picture
    /// of no or absurd size; [`Error::Unsupported`] for forms that no player of HLS takes.
    pub fn parse(codec: VideoCodec, record: Bytes) -> Result<Self, Error> {
        let _ = (codec, record);
        Err(Error::unsupported("video configuration", "not yet read"))
    }
}

/// An audio decoder configuration, checked and explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioConfig {
    pub codec: AudioCodec,
    /// AAC: the AudioSpecificConfig (ISO/IEC 14496-3), as received. Opus: the identification header of RFC 7845 §5.1
    /// without its magic, read by [`AudioConfig::opus_head`]. MP3: empty.
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
        let _ = (codec, record);
        Err(Error::unsupported("audio configuration", "not yet read"))
    }

    /// MP3 has no configuration record: it follows from the header of any frame.
    pub fn from_mp3_frame(frame: &[u8]) -> Result<Self, Error> {
        let _ = frame;
        Err(Error::unsupported("MP3 frame", "not yet read"))
    }

    /// Samples in this packet at `sample_rate`; `samples_per_frame` where the packet does not say otherwise.
    pub fn samples_in(&self, packet: &[u8]) -> u32 {
        let _ = packet;
        self.samples_per_frame
    }

    /// The fields that the `dOps` box needs; `None` unless the codec is Opus.
    pub fn opus_head(&self) -> Option<OpusHead> {
        None
    }
}

/// The identification header of an Opus stream (RFC 7845 §5.1), channel mapping family 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpusHead {
    pub channels: u8,
    /// Samples at 48 kHz that a decoder throws away at the start.
    pub pre_skip: u16,
    /// The rate of the encoder's input, for information only; Opus always decodes at 48 kHz.
    pub input_sample_rate: u32,
    /// Gain in dB, Q7.8.
    pub output_gain: i16,
}
