//! Reads ISO base media (MP4) boxes (ISO/IEC 14496-12 §4.2) with every length checked.

use crate::Error;

/// Bytes of the largest box header.
pub const MOST_HEADER_BYTES: usize = 16;

/// The beginning of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxHeader {
    pub kind: [u8; 4],
    /// Bytes of the header itself, 8 or 16.
    pub header_bytes: u64,
    /// Bytes of the whole box.
    pub size: u64,
}

impl BoxHeader {
    /// Reads the first bytes of a box; at least 8, and 16 where there are as many. `None` when they are none: too few,
    /// or a size that cannot be. A box that lasts to the end of its file (size 0) is not written here, so it is none
    /// either.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let size = u64::from(u32_at(bytes, 0)?);
        let kind = bytes.get(4..8)?.try_into().ok()?;
        let (size, header_bytes) = match size {
            1 => (u64_at(bytes, 8)?, 16),
            size => (size, 8),
        };
        (size >= header_bytes).then_some(Self {
            kind,
            header_bytes,
            size,
        })
    }
}

/// The boxes in these bytes, one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Boxes<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Boxes<'a> {
    pub(super) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { what, rest: bytes }
    }

    /// The body of the first box of this kind.
    pub(super) fn find(self, kind: &[u8; 4]) -> Result<&'a [u8], Error> {
        let what = self.what;
        for found in self {
            let (found, _, body) = found?;
            if found == *kind {
                return Ok(body);
            }
        }
        let name = String::from_utf8_lossy(kind).into_owned();
        Err(Error::invalid(what, format!("it has no {name}")))
    }
}

/// Kind, whole box, body.
type Found<'a> = ([u8; 4], &'a [u8], &'a [u8]);

impl<'a> Iterator for Boxes<'a> {
    type Item = Result<Found<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let header = BoxHeader::parse(self.rest);
        let found = header.and_then(|header| {
            let size = usize::try_from(header.size).ok()?;
            let (whole, rest) = self.rest.split_at_checked(size)?;
            let body = whole.get(usize::try_from(header.header_bytes).ok()?..)?;
            Some((header.kind, whole, body, rest))
        });
        let Some((kind, whole, body, rest)) = found else {
            self.rest = &[];
            return Some(Err(Error::invalid(self.what, "a box is cut short")));
        };
        self.rest = rest;
        Some(Ok((kind, whole, body)))
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}
