//! Reasons why an FLV tag was left out, in words for the person at the encoder ("audio codec … is not carried").

use std::{borrow::Cow, fmt};

/// Reason why a message or a part of it does not become a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// The bytes end before their declared length.
    Truncated { what: &'static str },
    /// A frame came before the configuration that it needs.
    NoConfiguration { what: &'static str },
    /// A codec that is not passed through.
    VideoCodec { name: Cow<'static, str> },
    /// A codec that is not passed through.
    AudioCodec { name: Cow<'static, str> },
    /// A further track of a kind, of which one is carried.
    OtherTrack { what: &'static str },
    /// Packet type that enhanced RTMP does not define in this place.
    PacketType { what: &'static str, number: u8 },
    /// A configuration or payload that breaks its codec's rules.
    Media(sluice_media::Error),
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { what } => write!(f, "{what} ends before its declared length"),
            Self::NoConfiguration { what } => {
                write!(f, "{what} came without its codec configuration")
            }
            Self::VideoCodec { name } => write!(
                f,
                "video codec {name} is not carried: choose H.264, HEVC or AV1"
            ),
            Self::AudioCodec { name } => {
                write!(f, "audio codec {name} is not carried: choose AAC")
            }
            Self::OtherTrack { what } => {
                write!(f, "only the first {what} track is carried")
            }
            Self::PacketType { what, number } => {
                write!(f, "{what} packet type {number} is not known")
            }
            Self::Media(error) => error.fmt(f),
        }
    }
}

/// The usual name of a codec by its FourCC, or the FourCC itself.
pub(super) fn fourcc_name(fourcc: [u8; 4]) -> Cow<'static, str> {
    match &fourcc {
        b"vp08" => "VP8".into(),
        b"vp09" => "VP9".into(),
        b"vvc1" => "VVC".into(),
        b"ac-3" => "AC-3".into(),
        b"ec-3" => "E-AC-3".into(),
        b"fLaC" => "FLAC".into(),
        other => other.escape_ascii().to_string().into(),
    }
}
