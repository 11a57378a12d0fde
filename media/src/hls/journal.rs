//! The window journal: one line per change, so that a broadcast survives its process.
//!
//! A line is the CRC-32 of its JSON in hexadecimal, a space, the JSON. The caller appends lines after the bytes that
//! they speak of, so a whole line means whole media, and a torn last line means only that it never happened.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Header, Output, StreamInfo, Window, window::Segment};
use crate::Error;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "t")]
pub enum Record {
    Header(Header),
    Init {
        number: u32,
        len: u64,
        info: StreamInfo,
    },
    Part {
        msn: u64,
    },
    SegmentEnd {
        msn: u64,
    },
    /// A publisher session began.
    SessionBegin {
        at_ms: i64,
    },
    /// The publisher went; the broadcast waits for it.
    SessionEnd {
        at_ms: i64,
    },
    /// The broadcast is over: ENDLIST.
    Ended {
        at_ms: i64,
    },
}

impl Record {
    /// The line for a packager's output.
    pub fn of(output: &Output, now_ms: i64) -> Self {
        let _ = now_ms;
        match output {
            Output::Init(init) => Self::Init {
                number: init.number,
                len: init.data.len() as u64,
                info: init.info.as_ref().clone(),
            },
            Output::Part(part) => Self::Part { msn: part.msn },
            Output::SegmentEnd { msn } => Self::SegmentEnd { msn: *msn },
        }
    }
}

/// Appends the record as one line.
pub fn encode(record: &Record, out: &mut Vec<u8>) {
    let _ = (record, out);
}

/// What a journal tells after a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    pub window: Window,
    pub ended: bool,
    /// Unix milliseconds of the newest record that carries a time.
    pub last_ms: i64,
    /// A publisher session was open.
    pub on_air: bool,
    /// Bytes of the journal that are whole: append from here on.
    pub valid_len: u64,
}

impl Recovered {
    /// Drops the parts that the segments' files do not hold whole, and whatever came after the first of them.
    /// `file_len` answers the length in bytes of a segment's file, or `None` when it is missing.
    pub fn truncate_to(&mut self, file_len: impl Fn(u64) -> Option<u64>) -> Vec<Arc<Segment>> {
        let _ = file_len;
        Vec::new()
    }

    /// Moves the next media sequence number ahead by `skip`, for what may have been published and lost.
    pub fn after_power_loss(&mut self, skip: u64) {
        let _ = skip;
    }
}

/// Reads a journal up to its first damaged line; the rest is ignored.
///
/// # Errors
/// `Invalid` when not even the header is whole.
pub fn replay(bytes: &[u8]) -> Result<Recovered, Error> {
    let _ = bytes;
    Err(Error::Invalid {
        what: "window journal",
        reason: "no whole header".to_owned(),
    })
}

/// The records that rebuild the window: what a rewritten journal begins with.
pub fn compact(window: &Window) -> Vec<u8> {
    let _ = window;
    Vec::new()
}
