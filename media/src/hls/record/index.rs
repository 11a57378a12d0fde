//! Index file of a recording: one line when a segment begins and one when it ends, and which codecs fit one file. Lines
//! have the form of the window journal's.

use serde::{Deserialize, Serialize};

use super::super::{Header, Segment, StreamInfo, journal::framed};

/// A line of the index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "t")]
pub enum Entry {
    /// Always the first: the broadcast, and the id of its input.
    Begun { input: String, header: Header },
    /// An init section; its bytes are in the file `init{number}.mp4`.
    Init { number: u32, info: StreamInfo },
    /// A segment has its first part, or, `closed`, all of them. The last line of a number counts.
    Segment(SegmentEntry),
    /// Nothing more was recorded, and why.
    Stopped { reason: String },
    /// The broadcast ended, and everything that belongs to it has been recorded.
    Ended,
}

/// A segment of the recording; its bytes are in the file `{msn}.m4s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentEntry {
    pub msn: u64,
    pub init: u32,
    pub discontinuity: bool,
    /// Unix milliseconds of its first sample.
    pub program_date_time_ms: i64,
    /// Start on the broadcast's timeline.
    pub start_90k: i64,
    /// Duration; 0 while it is open.
    pub duration_90k: u32,
    /// Length of its file; 0 while it is open.
    pub len: u64,
}

impl From<&Segment> for SegmentEntry {
    fn from(segment: &Segment) -> Self {
        Self {
            msn: segment.msn,
            init: segment.init,
            discontinuity: segment.discontinuity,
            program_date_time_ms: segment.program_date_time_ms,
            start_90k: segment.start_90k,
            duration_90k: if segment.closed {
                segment.duration_90k
            } else {
                0
            },
            len: if segment.closed { segment.len } else { 0 },
        }
    }
}

impl SegmentEntry {
    pub fn is_closed(&self) -> bool {
        self.len > 0
    }
}

/// Appends the entry as one line.
pub fn encode(entry: &Entry, out: &mut Vec<u8>) {
    framed::encode(entry, out);
}

/// Reads the entries of an index; a corrupt line, such as a power loss leaves, is passed over.
pub fn decode(index: &[u8]) -> impl Iterator<Item = Entry> {
    index
        .split_inclusive(|&byte| byte == b'\n')
        .filter_map(framed::decode)
}

/// Returns what must stay the same within one file: the codecs of the tracks, without profiles and levels. Of `mp4a`
/// the object type counts too, since it distinguishes AAC from MP3.
pub fn signature(codecs: &str) -> String {
    let coarse = |codec: &str| {
        let parts = if codec.starts_with("mp4a") { 2 } else { 1 };
        codec.split('.').take(parts).collect::<Vec<_>>().join(".")
    };
    let signatures: Vec<String> = codecs.split(',').map(coarse).collect();
    signatures.join(",")
}
