//! Reads bits and Exp-Golomb numbers of foreign bytes; removes emulation prevention bytes. Every read is checked;
//! nothing is allocated but that copy.

use crate::Error;

/// Reads bits from the most significant end. `what` names the structure in every error.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    what: &'static str,
    data: &'a [u8],
    /// Bits read so far.
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(what: &'static str, data: &'a [u8]) -> Self {
        Self {
            what,
            data,
            position: 0,
        }
    }

    pub(super) fn remaining_bits(&self) -> usize {
        self.data.len() * 8 - self.position
    }

    /// The next `count` bits (at most 32) as a number.
    pub(super) fn bits(&mut self, count: u32) -> Result<u32, Error> {
        debug_assert!(count <= 32);
        self.require(count as usize)?;
        let mut value = 0u64;
        let mut left = count as usize;
        while left > 0 {
            let used = self.position % 8;
            let take = left.min(8 - used);
            let byte = u64::from(self.data[self.position / 8]);
            let bits = (byte >> (8 - used - take)) & ((1 << take) - 1);
            value = value << take | bits;
            self.position += take;
            left -= take;
        }
        Ok(value as u32)
    }

    /// Reads at most 8 bits, as [`Self::bits`] does.
    pub(super) fn byte(&mut self, count: u32) -> Result<u8, Error> {
        debug_assert!(count <= 8);
        Ok(self.bits(count)? as u8)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Error> {
        Ok(self.bits(1)? == 1)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Error> {
        self.require(count)?;
        self.position += count;
        Ok(())
    }

    /// Reads an unsigned Exp-Golomb value (ITU-T H.264 §9.1). Rejects more than 31 leading zeros: no field needs them.
    pub(super) fn ue(&mut self) -> Result<u32, Error> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return Err(self.invalid("an Exp-Golomb number is too long"));
            }
        }
        let suffix = self.bits(zeros)?;
        Ok(((1u64 << zeros) - 1 + u64::from(suffix)) as u32)
    }

    /// Unsigned Exp-Golomb that may not exceed `limit`; `name` is the field's.
    pub(super) fn ue_up_to(&mut self, limit: u32, name: &str) -> Result<u32, Error> {
        let value = self.ue()?;
        if value > limit {
            return Err(self.invalid(format!("{name} is {value}, at most {limit} is allowed")));
        }
        Ok(value)
    }

    /// Reads a signed Exp-Golomb value (ITU-T H.264 §9.1.1).
    pub(super) fn se(&mut self) -> Result<i64, Error> {
        let code = i64::from(self.ue()?);
        Ok(if code % 2 == 1 {
            (code + 1) / 2
        } else {
            -(code / 2)
        })
    }

    /// Returns the next `count` bytes; the cursor is on a byte's edge.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        debug_assert!(self.position.is_multiple_of(8));
        self.require(count.saturating_mul(8))?;
        let start = self.position / 8;
        self.position += count * 8;
        Ok(&self.data[start..start + count])
    }

    pub(super) fn invalid(&self, reason: impl Into<String>) -> Error {
        Error::invalid(self.what, reason)
    }

    fn require(&self, bits: usize) -> Result<(), Error> {
        if bits > self.remaining_bits() {
            return Err(self.invalid(format!("it ends after {} bytes", self.data.len())));
        }
        Ok(())
    }
}

/// Returns a NAL unit's payload without emulation prevention: 00 00 03 becomes 00 00 (ITU-T H.264 §7.3.1, H.265
/// §7.3.1.1).
pub(super) fn unescape(nal: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(nal.len());
    let mut zeros = 0;
    for &byte in nal {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        plain.push(byte);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_golomb_follows_the_table_of_the_standard() {
        for (bits, unsigned, signed) in [
            (0b1000_0000, 0, 0),
            (0b0100_0000, 1, 1),
            (0b0110_0000, 2, -1),
            (0b0010_0000, 3, 2),
            (0b0010_1000, 4, -2),
            (0b0001_1100, 13, 7),
        ] {
            let data = [bits];
            assert_eq!(BitReader::new("test", &data).ue(), Ok(unsigned));
            assert_eq!(BitReader::new("test", &data).se(), Ok(signed));
        }
    }

    #[test]
    fn exp_golomb_takes_the_longest_number_and_no_longer() {
        let longest = [0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(BitReader::new("test", &longest).ue(), Ok(u32::MAX - 1));
        let endless = [0; 64];
        assert!(BitReader::new("test", &endless).ue().is_err());
    }

    #[test]
    fn reads_end_with_the_data() {
        let mut bits = BitReader::new("test", &[0b1010_0101, 0xff]);
        assert_eq!(bits.bits(3), Ok(0b101));
        assert_eq!(bits.bits(6), Ok(0b00_1011));
        assert_eq!(bits.remaining_bits(), 7);
        assert!(bits.bits(8).is_err());
        assert_eq!(bits.bits(7), Ok(0x7f));
        assert!(bits.flag().is_err());
        assert!(bits.skip(usize::MAX).is_err());
        assert!(bits.bytes(usize::MAX).is_err());
    }

    #[test]
    fn unescape_drops_only_the_third_byte() {
        assert_eq!(
            unescape(&[0, 0, 3, 1, 0, 0, 3, 0, 0, 3]),
            [0, 0, 1, 0, 0, 0, 0]
        );
        assert_eq!(unescape(&[3, 0, 3, 0, 0]), [3, 0, 3, 0, 0]);
    }
}
