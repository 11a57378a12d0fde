//! NAL units of H.264 and HEVC byte streams (Annex B of both): start codes, kinds, and which are left out (delimiters,
//! filler).

use std::{ops::Range, sync::LazyLock};

use memchr::memmem::Finder;
use sluice_media::codec::VideoCodec;

static START_CODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&[0, 0, 1]));

/// Kind of a NAL unit, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NalKind {
    /// Delimiter or filler of the bit rate; files omit it.
    Dispensable,
    Vps,
    Sps,
    Pps,
    /// Slice of a frame at which decoding can start.
    RandomAccessSlice,
    Slice,
    Other,
}

/// The kind of a NAL unit; `None` for one that cannot be: without its header, or with the forbidden bit.
pub(crate) fn kind(codec: VideoCodec, nal: &[u8]) -> Option<NalKind> {
    let header = *nal.first()?;
    let forbidden = header & 0x80 != 0;
    if forbidden {
        return None;
    }
    if codec == VideoCodec::Hevc {
        return (nal.len() >= 2).then(|| hevc_kind(header >> 1));
    }
    Some(avc_kind(header & 0x1f))
}

/// ITU-T H.264 table 7-1.
fn avc_kind(nal_type: u8) -> NalKind {
    match nal_type {
        1..=4 => NalKind::Slice,
        5 => NalKind::RandomAccessSlice,
        7 => NalKind::Sps,
        8 => NalKind::Pps,
        9 | 12 => NalKind::Dispensable,
        _ => NalKind::Other,
    }
}

/// ITU-T H.265 table 7-1.
fn hevc_kind(nal_type: u8) -> NalKind {
    match nal_type {
        16..=23 => NalKind::RandomAccessSlice,
        0..=31 => NalKind::Slice,
        32 => NalKind::Vps,
        33 => NalKind::Sps,
        34 => NalKind::Pps,
        35 | 38 => NalKind::Dispensable,
        _ => NalKind::Other,
    }
}

/// Returns the positions of the NAL units, without start codes and the zeros around them.
pub(crate) fn nal_units(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut codes = START_CODE.find_iter(bytes).peekable();
    std::iter::from_fn(move || {
        let start = codes.next()? + 3;
        let end = codes.peek().copied().unwrap_or(bytes.len());
        // A start code may have one more zero before it, and a NAL unit zeros after it; its own last byte is never
        // zero.
        let zeros = bytes[start..end].iter().rev().take_while(|b| **b == 0);
        Some(start..end - zeros.count())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nal_units_are_found_between_start_codes() {
        for (bytes, expected) in [
            (&[][..], &[][..]),
            (&[1, 2, 3], &[][..]),
            (&[0, 0, 1], &[(3, 3)][..]),
            (
                &[0, 0, 0, 1, 9, 0x10, 0, 0, 0, 1, 5, 1, 0, 0, 1, 6],
                &[(4, 6), (10, 12), (15, 16)][..],
            ),
            (&[7, 0, 0, 1, 5, 0, 3, 0, 0, 3, 0, 0, 0, 0], &[(4, 10)][..]),
            (&[0, 0, 1, 0, 0, 1, 8], &[(3, 3), (6, 7)][..]),
            (&[0, 0, 0, 0, 0, 1, 8, 0, 0], &[(6, 7)][..]),
        ] {
            let found: Vec<_> = nal_units(bytes)
                .map(|range| (range.start, range.end))
                .collect();
            assert_eq!(found, expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn kinds_follow_the_tables() {
        for (codec, nal, expected) in [
            (
                VideoCodec::Avc,
                &[0x65, 0x88][..],
                Some(NalKind::RandomAccessSlice),
            ),
            (VideoCodec::Avc, &[0x41], Some(NalKind::Slice)),
            (VideoCodec::Avc, &[0x09, 0xf0], Some(NalKind::Dispensable)),
            (VideoCodec::Avc, &[0x06], Some(NalKind::Other)),
            (VideoCodec::Avc, &[0xe5], None),
            (VideoCodec::Avc, &[], None),
            (
                VideoCodec::Hevc,
                &[0x2a, 1],
                Some(NalKind::RandomAccessSlice),
            ),
            (VideoCodec::Hevc, &[0x02, 1], Some(NalKind::Slice)),
            (VideoCodec::Hevc, &[0x42, 1], Some(NalKind::Sps)),
            (VideoCodec::Hevc, &[0x42], None),
        ] {
            assert_eq!(kind(codec, nal), expected, "{nal:02x?}");
        }
    }
}
