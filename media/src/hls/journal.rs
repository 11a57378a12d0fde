//! Window journal of a live broadcast: its lines and checksums, recovery after a restart or a power loss. One line for
//! each change, so that a broadcast survives its process.
//!
//! A line is the CRC-32 of its JSON in hexadecimal, a space, the JSON. The caller appends a line after the bytes that
//! it describes, so a whole line means whole media, and a torn last line counts as not written.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Header, InitInfo, Output, Part, Segment, SegmentStart, StreamInfo, Window, names::MediaName,
    window::Position,
};
use crate::Error;

const CRC_DIGITS: usize = 8;
const TICKS_PER_MS: i64 = 90;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "t")]
pub enum Record {
    /// Always the first.
    Header(Header),
    /// A rewritten journal's counters, after all that it lists.
    Position(SavedPosition),
    Init {
        number: u32,
        len: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crc32: Option<u32>,
        info: StreamInfo,
    },
    Part(SavedPart),
    SegmentEnd {
        msn: u64,
    },
    /// A publisher session began.
    SessionBegin {
        at_ms: i64,
    },
    /// The publisher session ended; the broadcast waits for the next one.
    SessionEnd {
        at_ms: i64,
    },
    /// The broadcast is over: ENDLIST.
    Ended {
        at_ms: i64,
    },
}

/// The counters that outlive what is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SavedPosition(Position);

/// Record of a part. Its offset follows from the parts before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPart {
    #[serde(rename = "m")]
    pub(super) msn: u64,
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub(super) segment: Option<SegmentStart>,
    #[serde(rename = "s")]
    pub(super) start_90k: i64,
    #[serde(rename = "d")]
    pub(super) duration_90k: u32,
    #[serde(rename = "i", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) independent: bool,
    #[serde(rename = "p")]
    pub(super) part_target_90k: u32,
    #[serde(rename = "n")]
    pub(super) len: u32,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(super) crc32: Option<u32>,
    /// Unix milliseconds at which it went out; in a rewritten journal, of its last sample.
    #[serde(rename = "w", default)]
    pub(super) at_ms: i64,
}

impl SavedPart {
    pub(super) fn of(part: &Part, at_ms: i64) -> Self {
        Self {
            msn: part.msn,
            segment: part.segment,
            start_90k: part.start_90k,
            duration_90k: part.duration_90k,
            independent: part.independent,
            part_target_90k: part.part_target_90k,
            len: u32::try_from(part.data.len()).expect("the packager bounds a part"),
            crc32: Some(part.crc32),
            at_ms,
        }
    }
}

impl Record {
    /// Makes the line for an output of the packager at this time.
    pub fn of(output: &Output, now_ms: i64) -> Self {
        match output {
            Output::Init(init) => Self::Init {
                number: init.number,
                len: init.data.len() as u64,
                crc32: Some(crc32fast::hash(&init.data)),
                info: init.info.as_ref().clone(),
            },
            Output::Part(part) => Self::Part(SavedPart::of(part, now_ms)),
            Output::SegmentEnd { msn } => Self::SegmentEnd { msn: *msn },
        }
    }

    /// Unix milliseconds, where the record carries a time.
    fn at_ms(&self) -> Option<i64> {
        match self {
            Self::Header(header) => Some(header.started_ms),
            Self::Part(part) => Some(part.at_ms),
            Self::SessionBegin { at_ms } | Self::SessionEnd { at_ms } | Self::Ended { at_ms } => {
                Some(*at_ms)
            }
            Self::Position(_) | Self::Init { .. } | Self::SegmentEnd { .. } => None,
        }
    }
}

/// Appends the record as one line.
pub fn encode(record: &Record, out: &mut Vec<u8>) {
    framed::encode(record, out);
}

/// Lines of JSON that carry their checksum.
pub(super) mod framed {
    use serde::{Serialize, de::DeserializeOwned};

    use super::CRC_DIGITS;

    /// Appends a value as one line.
    pub(in crate::hls) fn encode(value: &impl Serialize, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"00000000 ");
        let json_start = out.len();
        serde_json::to_writer(&mut *out, value).expect("records have string keys and go to memory");
        let crc = format!("{:08x}", crc32fast::hash(&out[json_start..]));
        out[start..start + CRC_DIGITS].copy_from_slice(crc.as_bytes());
        out.push(b'\n');
    }

    /// Decodes a whole line; `None` when it is torn or corrupt.
    pub(in crate::hls) fn decode<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
        let line = line.strip_suffix(b"\n")?;
        let (crc, json) = line.split_at_checked(CRC_DIGITS + 1)?;
        let expected = format!("{:08x} ", crc32fast::hash(json));
        if crc != expected.as_bytes() {
            return None;
        }
        serde_json::from_slice(json).ok()
    }
}

/// Content of a journal after a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    pub window: Window,
    /// The broadcast was over.
    pub ended: bool,
    /// Unix milliseconds of the end, or before it of the newest record that carries a time.
    pub last_ms: i64,
}

impl Recovered {
    fn new(header: Header) -> Self {
        Self {
            last_ms: header.started_ms,
            window: Window::new(header),
            ended: false,
        }
    }

    fn apply(&mut self, record: Record) {
        self.last_ms = self.last_ms.max(record.at_ms().unwrap_or(i64::MIN));
        match record {
            Record::Header(_) | Record::SessionBegin { .. } | Record::SessionEnd { .. } => {}
            Record::Position(SavedPosition(position)) => {
                self.window.position = position;
            }
            Record::Init {
                number,
                len,
                crc32,
                info,
            } => {
                self.window.add_init(InitInfo {
                    number,
                    len,
                    crc32,
                    info: Arc::new(info),
                });
            }
            Record::Part(part) => self.window.add_part(&part),
            Record::SegmentEnd { msn } => self.window.apply(&Output::SegmentEnd { msn }),
            Record::Ended { at_ms } => self.window.end(at_ms),
        }
        if let Some(ended_ms) = self.window.ended_ms() {
            self.ended = true;
            self.last_ms = ended_ms;
        }
    }

    /// Drops the parts that the segments' files do not hold whole, and all later ones; returns the segments that were
    /// dropped entirely. `file_len` returns the length in bytes of a segment's file, or `None` when it is missing.
    /// Numbers of dropped segments are not used again.
    pub fn truncate_to(&mut self, file_len: impl Fn(u64) -> Option<u64>) -> Vec<Arc<Segment>> {
        self.window.truncate_to(file_len)
    }

    /// Keeps the segments that a power loss left unchanged, and returns the number of the first segment that is not
    /// kept.
    ///
    /// The journal's newest lines may be missing, and bytes that it names may be missing or zeros. A segment stays only
    /// when its end is journalled and its file and its init section's have the checksums of the journal; no segment
    /// behind the first corrupt one stays. The open segment is dropped: viewers may have had more of it, and an address
    /// never returns other bytes. `file` reads a file of the broadcast; `None` when it cannot.
    ///
    /// The next media sequence number moves ahead by `skip`, since viewers may have seen numbers that no file and no
    /// line names. From now on the broadcast belongs to the boot `boot_id`.
    pub fn after_power_loss(
        &mut self,
        skip: u64,
        boot_id: &str,
        file: impl Fn(MediaName) -> Option<Vec<u8>>,
    ) -> u64 {
        let first_lost = self.window.keep_intact(file);
        Arc::make_mut(&mut self.window.header).boot_id = boot_id.to_owned();
        let position = &mut self.window.position;
        position.next_msn = position.next_msn.saturating_add(skip);
        let skip_inits = u32::try_from(skip).unwrap_or(u32::MAX);
        position.next_init = position.next_init.saturating_add(skip_inits);
        first_lost
    }
}

/// Reads a journal up to its first corrupt line; the rest is ignored.
///
/// # Errors
/// `Invalid` when not even the header is whole.
pub fn replay(bytes: &[u8]) -> Result<Recovered, Error> {
    let mut recovered: Option<Recovered> = None;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(record) = framed::decode(line) else {
            break;
        };
        match (&mut recovered, record) {
            (None, Record::Header(header)) => recovered = Some(Recovered::new(header)),
            (None, _) => break,
            (Some(recovered), record) => recovered.apply(record),
        }
    }
    recovered.ok_or_else(|| Error::Invalid {
        what: "window journal",
        reason: "it does not begin with a whole header".to_owned(),
    })
}

/// Returns the records that rebuild the window, with which a rewritten journal begins. An open session must be noted
/// after them.
pub fn compact(window: &Window) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 * 1_024);
    encode(&Record::Header(window.header().clone()), &mut out);
    for init in window.inits() {
        let record = Record::Init {
            number: init.number,
            len: init.len,
            crc32: init.crc32,
            info: init.info.as_ref().clone(),
        };
        encode(&record, &mut out);
    }
    for segment in window.segments() {
        compact_segment(segment, window.part_target_90k().unwrap_or(0), &mut out);
    }
    encode(
        &Record::Position(SavedPosition(window.position.clone())),
        &mut out,
    );
    out
}

fn compact_segment(segment: &Segment, part_target_90k: u32, out: &mut Vec<u8>) {
    let mut start = Some(SegmentStart {
        init: segment.init,
        discontinuity: segment.discontinuity,
        program_date_time_ms: segment.program_date_time_ms,
    });
    let mut start_90k = segment.start_90k;
    for part in &segment.parts {
        let end_90k = start_90k + i64::from(part.duration_90k);
        let saved = SavedPart {
            msn: segment.msn,
            segment: start.take(),
            start_90k,
            duration_90k: part.duration_90k,
            independent: part.independent,
            part_target_90k,
            len: part.len,
            crc32: part.crc32,
            at_ms: segment.program_date_time_ms + (end_90k - segment.start_90k) / TICKS_PER_MS,
        };
        encode(&Record::Part(saved), out);
        start_90k = end_90k;
    }
    if segment.closed {
        encode(&Record::SegmentEnd { msn: segment.msn }, out);
    }
}
