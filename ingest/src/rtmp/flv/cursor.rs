//! Bounded reader of an FLV tag's body. Reading past the end is [`Corruption::Truncated`].

use std::ops::Range;

use super::Corruption;

pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// `what` names the tag in errors.
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, at: 0, what }
    }

    pub(super) fn u8(&mut self) -> Result<u8, Corruption> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Corruption> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u24(&mut self) -> Result<u32, Corruption> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_be_bytes([0, a, b, c]))
    }

    pub(super) fn i24(&mut self) -> Result<i32, Corruption> {
        let unsigned = self.u24()?;
        Ok((unsigned << 8).cast_signed() >> 8)
    }

    pub(super) fn fourcc(&mut self) -> Result<[u8; 4], Corruption> {
        self.array()
    }

    pub(super) fn skip(&mut self, len: usize) -> Result<Range<usize>, Corruption> {
        if len > self.bytes.len() - self.at {
            return Err(Corruption::Truncated { what: self.what });
        }
        let start = self.at;
        self.at += len;
        Ok(start..self.at)
    }

    /// Returns a cursor over the next `len` bytes, whose ranges are those of the whole body.
    pub(super) fn part(&mut self, len: usize) -> Result<Cursor<'a>, Corruption> {
        let range = self.skip(len)?;
        Ok(Cursor {
            bytes: &self.bytes[..range.end],
            at: range.start,
            what: self.what,
        })
    }

    /// Returns the range of the unread bytes.
    pub(super) fn rest(&self) -> Range<usize> {
        self.at..self.bytes.len()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Corruption> {
        let range = self.skip(N)?;
        Ok(self.bytes[range].try_into().expect("skipped as many"))
    }
}
