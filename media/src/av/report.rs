//! Progress reports of work on a clip: place in the queue, finished share, new segments of a ladder.

use serde::{Deserialize, Serialize};

use crate::hls::StreamInfo;

/// A report of a queue or a worker; none of them is the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// Queued; position 1 is next.
    Waiting { place: u32 },
    /// Running, with the finished share, 0 to 1.
    Working { share: f32 },
    /// A ladder's rendition has its init section at the beginning of its file.
    Init {
        rendition: u8,
        length: u64,
        info: StreamInfo,
        /// The source's own units are in it, as they are coded: a copy that was asked for may turn out not to fit.
        copied: bool,
    },
    /// A segment of a ladder's rendition is in its file, whole.
    Segment {
        rendition: u8,
        /// Number of the segment, from 0.
        number: u32,
        /// Bytes of the rendition's file.
        offset: u64,
        length: u64,
        /// Start on the stream's timeline, which starts at 0.
        start_90k: i64,
        duration_90k: u32,
        /// Bytes from `offset` on that hold its first frame with all that is needed to decode it; 0 for audio.
        key_length: u64,
    },
}
