//! The window of segments that a playlist is rendered from.
//!
//! A `Window` is a value: the owner applies outputs to its own copy and publishes clones of it. Closed segments are
//! shared, so a clone costs a few reference counts.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Continuation, Output, StreamInfo};

/// What holds for a whole broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Base62, part of every name.
    pub broadcast: String,
    /// Unix milliseconds.
    pub started_ms: i64,
    pub target_duration_s: u32,
    pub low_latency: bool,
    /// Fencing number of the owner that writes.
    pub fence: u64,
    /// Names the boot of the machine: another one means that unsynced data may be lost.
    pub boot_id: String,
}

/// An init section as the window knows it; its bytes are in the file `init{number}.mp4`.
#[derive(Clone, Debug, PartialEq)]
pub struct InitInfo {
    pub number: u32,
    pub len: u64,
    pub info: Arc<StreamInfo>,
}

/// Where a part lies in its segment's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartInfo {
    pub offset: u64,
    pub len: u32,
    pub duration_90k: u32,
    pub independent: bool,
}

/// A listed segment, open or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub msn: u64,
    pub init: u32,
    pub discontinuity: bool,
    pub program_date_time_ms: i64,
    pub start_90k: i64,
    pub duration_90k: u32,
    /// Never empty.
    pub parts: Vec<PartInfo>,
    pub closed: bool,
    /// Bytes of its file so far.
    pub len: u64,
}

/// How much stays listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimits {
    pub list_for: Duration,
    pub min_segments: usize,
}

/// Bits per second over the listed segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Of the largest segment.
    pub peak_bps: u64,
    pub average_bps: u64,
}

/// The listed part of a broadcast.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    header: Arc<Header>,
    closed: VecDeque<Arc<Segment>>,
    open: Option<Segment>,
    inits: Vec<InitInfo>,
    next_msn: u64,
    discontinuity_sequence: u64,
    part_target_90k: Option<u32>,
    ended: bool,
}

impl Window {
    /// An empty window of a broadcast that begins.
    pub fn new(header: Header) -> Self {
        Self {
            header: Arc::new(header),
            closed: VecDeque::new(),
            open: None,
            inits: Vec::new(),
            next_msn: 0,
            discontinuity_sequence: 0,
            part_target_90k: None,
            ended: false,
        }
    }

    /// Takes the packager's next output.
    pub fn apply(&mut self, output: &Output) {
        let _ = output;
    }

    /// Takes segments off the list: those not needed for `list_for` seconds and `min_segments` segments. They are
    /// returned, oldest first, and no longer listed.
    pub fn retire(&mut self, keep: WindowLimits) -> Vec<Arc<Segment>> {
        let _ = keep;
        Vec::new()
    }

    /// Closes the broadcast: ENDLIST.
    pub fn end(&mut self) {
        self.ended = true;
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Listed segments, oldest first; the last may be open.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.closed.iter().map(Arc::as_ref).chain(self.open.iter())
    }

    /// The segment that still grows.
    pub fn open_segment(&self) -> Option<&Segment> {
        self.open.as_ref()
    }

    /// The listed segment with this number.
    pub fn segment(&self, msn: u64) -> Option<&Segment> {
        self.segments().find(|segment| segment.msn == msn)
    }

    /// Init sections that listed segments need, and the newest.
    pub fn inits(&self) -> &[InitInfo] {
        &self.inits
    }

    /// What comes next: media sequence number and part index. The preload hint; a blocking reload compares with it.
    pub fn next(&self) -> (u64, u32) {
        (self.next_msn, 0)
    }

    /// Whether the playlist holds, or is past, what `_HLS_msn` and `_HLS_part` ask for (RFC 8216bis §6.2.5.2). A part
    /// index past a closed segment's end means the next segment's first part.
    pub fn has(&self, msn: u64, part: Option<u32>) -> bool {
        let _ = part;
        msn < self.next_msn
    }

    /// What a packager needs to go on with this broadcast.
    pub fn continuation(&self) -> Continuation {
        Continuation::default()
    }

    /// `None` before the first part.
    pub fn bandwidth(&self) -> Option<Bandwidth> {
        None
    }

    pub fn is_ended(&self) -> bool {
        self.ended
    }

    pub fn part_target_90k(&self) -> Option<u32> {
        self.part_target_90k
    }

    pub fn discontinuity_sequence(&self) -> u64 {
        self.discontinuity_sequence
    }
}
