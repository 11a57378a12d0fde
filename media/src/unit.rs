//! Access units on the 90 kHz clock: coded video and audio frames that every ingest protocol produces and the packager
//! consumes.
//!
//! A unit is one coded video frame or one coded audio frame with its time. Payloads are `Bytes`, so that
//! a unit that arrived in one piece is never copied on its way to the packager.

use std::sync::Arc;

use bytes::Bytes;

use crate::codec::{AudioConfig, VideoConfig};

/// Ticks per second of every `_90k` value.
pub const CLOCK_90K: i64 = 90_000;

/// A unit of a publisher session, in the order of arrival.
#[derive(Clone, Debug)]
pub enum Unit {
    /// The decoder configuration that holds for all later video units of this session.
    VideoConfig(Arc<VideoConfig>),
    /// The decoder configuration that holds for all later audio units of this session.
    AudioConfig(Arc<AudioConfig>),
    Video(VideoUnit),
    Audio(AudioUnit),
}

impl Unit {
    /// Bytes of the payload; a configuration has none.
    pub fn media_len(&self) -> u64 {
        match self {
            Self::VideoConfig(_) | Self::AudioConfig(_) => 0,
            Self::Video(unit) => unit.data.len() as u64,
            Self::Audio(unit) => unit.data.len() as u64,
        }
    }
}

/// A coded frame, in decode order.
#[derive(Clone, Debug)]
pub struct VideoUnit {
    /// Decode time. Starts anywhere; never wraps (the protocol layer unwraps).
    pub dts_90k: i64,
    /// Composition offset: presentation time minus decode time. May be negative.
    pub cts_90k: i32,
    /// A decoder can start here.
    pub key: bool,
    /// H.264 and HEVC: NAL units, each behind its length in the size the configuration record declares.
    /// AV1: a temporal unit in the low-overhead format, without temporal delimiter.
    pub data: Bytes,
}

/// A coded audio frame (AAC: raw, without ADTS; Opus: one packet; MP3: one frame).
#[derive(Clone, Debug)]
pub struct AudioUnit {
    pub pts_90k: i64,
    pub data: Bytes,
}
