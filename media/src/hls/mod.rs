//! Low-latency HLS (RFC 8216bis, CMAF): access units in, parts, segments and playlists out.
//!
//! ```text
//! Unit ──► Packager ──► Output ──┬─► bytes for the segment's file      (the caller's)
//!                                ├─► journal::Record, one line         (the caller's file)
//!                                └─► Window ──► playlists, blocking reload
//! ```
//!
//! Two rules hold in here. Everything is a function of its arguments, time included: nothing reads a clock or a file.
//! And everything is bounded: what waits, what is listed, what one part may hold.

mod audio;
mod boxes;
mod cadence;
mod fragment;
mod headers;
mod init;
pub mod journal;
mod key_frames;
pub mod names;
mod packager;
mod playlist;
pub mod record;
mod segmenter;
mod session;
mod still;
mod timeline;
mod track_wait;
pub mod vod;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::{
    packager::{Continuation, Packager, PackagerSettings},
    playlist::{MediaOptions, media_playlist, multivariant_playlist},
    still::still_clip,
    window::{Bandwidth, Header, InitInfo, PartInfo, Segment, Window, WindowLimits},
};

/// Number of a broadcast's first segment. The one before it is left for the gap that leads a low-latency playlist:
/// players start from parts only behind a segment.
pub(super) const FIRST_MSN: u64 = 1;

/// Output of the packager, in the order in which it must be stored and published.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A new init section; the next segment refers to it.
    Init(InitSection),
    /// The next part of the open segment, or the first of a new one.
    Part(Part),
    /// The segment is complete: no further part of it follows.
    SegmentEnd { msn: u64 },
}

/// An init section (`ftyp`, `moov`), numbered from 0 within its broadcast.
#[derive(Clone, Debug, PartialEq)]
pub struct InitSection {
    pub number: u32,
    pub data: Bytes,
    pub info: Arc<StreamInfo>,
}

/// Description of the stream in the multivariant playlist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamInfo {
    /// RFC 6381, comma separated.
    pub codecs: String,
    /// Width and height in pixels as displayed.
    pub resolution: Option<(u16, u16)>,
    /// Frames per second.
    pub frame_rate: Option<f64>,
    pub has_video: bool,
    pub has_audio: bool,
}

/// A partial segment: one movie fragment (`moof`, `mdat`).
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Number of its segment, counted from 1 within the broadcast.
    pub msn: u64,
    /// Number of the part, counted from 0 within the segment.
    pub index: u32,
    /// Start of the segment; `Some` exactly when `index` is 0.
    pub segment: Option<SegmentStart>,
    /// Start on the broadcast's timeline, which starts at 0.
    pub start_90k: i64,
    pub duration_90k: u32,
    /// A decoder can start with this part.
    pub independent: bool,
    /// The broadcast's PART-TARGET, settled since its first part.
    pub part_target_90k: u32,
    pub data: Bytes,
    /// CRC-32 of `data`, which the journal keeps.
    pub crc32: u32,
}

/// Description of a segment when its first part closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentStart {
    /// Number of the init section it needs.
    pub init: u32,
    /// EXT-X-DISCONTINUITY comes before it.
    pub discontinuity: bool,
    /// Unix milliseconds of its first sample.
    pub program_date_time_ms: i64,
}
