//! Reasons why an FLV tag or a part of an MPEG-TS stream was left out, in words for the person at the encoder ("audio
//! codec … is not carried").

use std::{borrow::Cow, fmt};

/// Reason why a message, a packet, a video frame or an audio frame does not become a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Corruption {
    /// Packets of it were lost.
    Lost { what: &'static str },
    /// The bytes end before their declared length.
    Truncated { what: &'static str },
    /// More bytes arrived than a bound allows.
    TooLarge { what: &'static str, limit: usize },
    /// The bytes break the rules of their format.
    Invalid {
        what: &'static str,
        reason: &'static str,
    },
    /// A frame came before the configuration that it needs.
    NoConfiguration { what: &'static str },
    /// A codec or a form of one that is not carried.
    VideoCodec {
        name: Cow<'static, str>,
        /// The codecs that the protocol carries.
        choose: &'static str,
    },
    /// A codec or a form of one that is not carried.
    AudioCodec { name: Cow<'static, str> },
    /// A further track of a kind, of which one is carried.
    OtherTrack { what: &'static str },
    /// Packet type that enhanced RTMP does not define in this place.
    PacketType { what: &'static str, number: u8 },
    /// Conditional access, which is not supported.
    Scrambled,
    /// A configuration that breaks its codec's rules.
    Media(sluice_media::Error),
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { what } => write!(f, "{what} lost packets on its way"),
            Self::Truncated { what } => write!(f, "{what} ends before its declared length"),
            Self::TooLarge { what, limit } => {
                write!(f, "{what} is larger than the {limit} bytes allowed")
            }
            Self::Invalid { what, reason } => write!(f, "{what} is invalid: {reason}"),
            Self::NoConfiguration { what } => {
                write!(f, "{what} came without its codec configuration")
            }
            Self::VideoCodec { name, choose } => {
                write!(f, "video codec {name} is not carried: choose {choose}")
            }
            Self::AudioCodec { name } => {
                write!(f, "audio codec {name} is not carried: choose AAC")
            }
            Self::OtherTrack { what } => write!(f, "only the first {what} track is carried"),
            Self::PacketType { what, number } => {
                write!(f, "{what} packet type {number} is not known")
            }
            Self::Scrambled => {
                f.write_str("the transport stream is scrambled: send it in the clear")
            }
            Self::Media(error) => error.fmt(f),
        }
    }
}
