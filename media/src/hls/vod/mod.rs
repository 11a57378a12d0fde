//! HLS of video streams (finished clips): segments of renditions and their playlists (RFC 8216).
//!
//! ```text
//! video frames ► VideoSegmenter ─┐                       ┌─► media_playlist, iframe_playlist
//!                                ├─► MadeSegment ► rows ─┤
//! audio frames ► AudioSegmenter ─┘                       └─► multivariant
//! ```
//!
//! Audio and video are renditions of their own, each in one file: the init section, then segments back to back. All
//! renditions of an asset are cut at the same [`SegmentBoundaries`]. Boxes are written by live's code
//! ([`super::fragment`], [`super::init`]); as there, everything is a function of its arguments.

mod audio;
mod boundaries;
mod multivariant;
pub mod names;
mod playlist;
mod video;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::{
    audio::AudioSegmenter,
    boundaries::{FrameClock, SegmentBoundaries},
    multivariant::{Bandwidth, Caption, bandwidth, multivariant},
    playlist::{captions_playlist, iframe_playlist, media_playlist},
    video::{CodedFrame, VideoRendition, VideoSegmenter},
};
use super::StreamInfo;

/// A segment that was just made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeSegment {
    /// Number of the segment, from 0.
    pub number: u32,
    /// Start on the asset's timeline, which starts at 0.
    pub start_90k: i64,
    pub duration_90k: u32,
    /// Bytes from the segment's beginning that hold its first frame, as a movie fragment of its own; 0 for audio.
    pub key_length: u64,
    pub data: Bytes,
}

/// A segment as playlists need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VodSegment {
    /// Number of the segment, from 0.
    pub number: u32,
    pub start_90k: i64,
    pub duration_90k: u32,
    /// Bytes of the segment.
    pub length: u64,
    /// Bytes from its beginning that hold its first frame; 0 for audio.
    pub key_length: u64,
}

/// A rendition of an asset: video or audio, never both.
#[derive(Clone, Debug, PartialEq)]
pub struct VodTrack {
    /// Folder: `720p`, `audio`.
    pub name: String,
    pub info: StreamInfo,
    /// TARGETDURATION in seconds, the asset's segment duration: it must not change while a playlist grows.
    pub target_duration_s: u32,
    /// Segments in order, from number 0 on, without a hole.
    pub segments: Vec<VodSegment>,
}
