//! Reads the samples of a movie fragment (`moof`) of a recording.

use super::boxes::{Boxes, u32_at, u64_at};
use crate::Error;

const WHAT: &str = "movie fragment";

const TFHD_BASE_DATA_OFFSET: u32 = 0x01;
const TFHD_DESCRIPTION: u32 = 0x02;
const TFHD_DURATION: u32 = 0x08;
const TFHD_SIZE: u32 = 0x10;
const TFHD_FLAGS: u32 = 0x20;
const TRUN_DATA_OFFSET: u32 = 0x001;
const TRUN_FIRST_FLAGS: u32 = 0x004;
const TRUN_DURATION: u32 = 0x100;
const TRUN_SIZE: u32 = 0x200;
const TRUN_FLAGS: u32 = 0x400;
const TRUN_COMPOSITION_OFFSET: u32 = 0x800;
/// `sample_is_non_sync_sample`
const NON_SYNC: u32 = 0x1_0000;

/// A video frame or audio frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Duration in ticks of its track.
    pub duration: u32,
    pub size: u32,
    pub cts: i32,
    pub key: bool,
}

/// Samples of one track, with contiguous bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub track: u32,
    /// Decode time of the first, in ticks of the track.
    pub start: u64,
    /// Bytes from the fragment's beginning to the first sample's.
    pub data_offset: u64,
    /// Samples, never empty.
    pub samples: Vec<Sample>,
}

impl Run {
    pub fn bytes(&self) -> u64 {
        self.samples.iter().map(|it| u64::from(it.size)).sum()
    }

    pub fn duration(&self) -> u64 {
        self.samples.iter().map(|it| u64::from(it.duration)).sum()
    }
}

/// A movie fragment: one run of each track that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub runs: Vec<Run>,
}

impl Fragment {
    /// Reads a `moof` box, header and all, that is followed by an `mdat` box with a body of `payload_bytes`.
    ///
    /// # Errors
    /// `Invalid` when a box is missing or cut short, or a sample is outside the payload.
    pub fn parse(moof: &[u8], payload_bytes: u64) -> Result<Self, Error> {
        let body = Boxes::new(WHAT, moof).find(b"moof")?;
        let mut runs = Vec::new();
        for found in Boxes::new(WHAT, body) {
            let (kind, _, traf) = found?;
            if &kind == b"traf" {
                runs.extend(run(traf)?);
            }
        }
        let payload_at = moof.len() as u64 + 8;
        for run in &runs {
            let end = run.data_offset.checked_add(run.bytes());
            let is_inside = run.data_offset >= payload_at
                && end.is_some_and(|end| end <= payload_at.saturating_add(payload_bytes));
            if !is_inside {
                return Err(Error::invalid(WHAT, "a sample lies outside its payload"));
            }
        }
        Ok(Self { runs })
    }
}

/// The run of a `traf`; `None` when it is empty.
fn run(traf: &[u8]) -> Result<Option<Run>, Error> {
    let short = || Error::invalid(WHAT, "a box is cut short");
    let boxes = Boxes::new(WHAT, traf);
    let tfhd = Header::parse(boxes.clone().find(b"tfhd")?).ok_or_else(short)?;
    let tfdt = boxes.clone().find(b"tfdt")?;
    let start = match tfdt.first() {
        Some(0) => u32_at(tfdt, 4).map(u64::from),
        _ => u64_at(tfdt, 4),
    };
    let trun = boxes.find(b"trun")?;
    let flags = u32_at(trun, 0).ok_or_else(short)?;
    let count = u32_at(trun, 4).ok_or_else(short)?;
    let mut reader = Words { bytes: trun, at: 8 };
    let data_offset = match flags & TRUN_DATA_OFFSET {
        0 => return Err(Error::invalid(WHAT, "a run does not say where it lies")),
        _ => reader.next().ok_or_else(short)?,
    };
    let first_flags = match flags & TRUN_FIRST_FLAGS {
        0 => None,
        _ => Some(reader.next().ok_or_else(short)?),
    };
    // Grows with the bytes present: the declared count is not trusted with an allocation.
    let mut samples = Vec::new();
    for index in 0..count {
        let mut field = |flag: u32, default: u32| match flags & flag {
            0 => Some(default),
            _ => reader.next(),
        };
        let duration = field(TRUN_DURATION, tfhd.duration).ok_or_else(short)?;
        let size = field(TRUN_SIZE, tfhd.size).ok_or_else(short)?;
        let own = first_flags.filter(|_| index == 0).unwrap_or(tfhd.flags);
        let sample_flags = field(TRUN_FLAGS, own).ok_or_else(short)?;
        let cts = field(TRUN_COMPOSITION_OFFSET, 0).ok_or_else(short)?;
        if flags & (TRUN_DURATION | TRUN_SIZE) != TRUN_DURATION | TRUN_SIZE {
            return Err(Error::invalid(WHAT, "a run does not list its samples"));
        }
        samples.push(Sample {
            duration,
            size,
            cts: cts.cast_signed(),
            key: sample_flags & NON_SYNC == 0,
        });
    }
    Ok((!samples.is_empty()).then_some(Run {
        track: tfhd.track,
        start: start.ok_or_else(short)?,
        data_offset: u64::from(data_offset),
        samples,
    }))
}

struct Header {
    track: u32,
    duration: u32,
    size: u32,
    flags: u32,
}

impl Header {
    fn parse(tfhd: &[u8]) -> Option<Self> {
        let present = u32_at(tfhd, 0)?;
        let track = u32_at(tfhd, 4)?;
        let mut reader = Words { bytes: tfhd, at: 8 };
        if present & TFHD_BASE_DATA_OFFSET != 0 {
            reader.next()?;
            reader.next()?;
        }
        if present & TFHD_DESCRIPTION != 0 {
            reader.next()?;
        }
        let mut field = |flag: u32| match present & flag {
            0 => Some(0),
            _ => reader.next(),
        };
        Some(Self {
            track,
            duration: field(TFHD_DURATION)?,
            size: field(TFHD_SIZE)?,
            flags: field(TFHD_FLAGS)?,
        })
    }
}

struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Option<u32> {
        let word = u32_at(self.bytes, self.at)?;
        self.at += 4;
        Some(word)
    }
}
