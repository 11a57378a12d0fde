//! Headers of the boxes that MP4 and QuickTime files consist of (ISO/IEC 14496-12 §4.2).

/// Bytes of the longest header.
pub(super) const HEADER_BYTES: usize = 16;

/// Header of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: [u8; 4],
    /// Size of the header itself.
    pub(super) bytes: u64,
    /// Size of the whole box; `None`: to the end of its parent.
    pub(super) size: Option<u64>,
}

impl Header {
    /// Reads a header; `None` for bytes that begin no box: too few bytes, or a size that has no room for the header
    /// itself.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let size = u32::from_be_bytes(*bytes.first_chunk()?);
        let kind = *bytes.get(4..)?.first_chunk()?;
        let (size, bytes) = match size {
            0 => (None, 8),
            1 => (
                Some(u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?)),
                16,
            ),
            size => (Some(u64::from(size)), 8),
        };
        let has_room = size.is_none_or(|size| size >= bytes);
        has_room.then_some(Self { kind, bytes, size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_kind_and_a_size_that_holds_it() {
        type Read = Option<(u64, Option<u64>)>;
        let cases: [(&[u8], Read); 9] = [
            (b"", None),
            (b"\0\0\0\x08mda", None),
            (b"\0\0\0\x07mdat", None),
            (b"\0\0\0\x08mdat", Some((8, Some(8)))),
            (b"\0\0\0\0mdat", Some((8, None))),
            (b"\xff\xff\xff\xffmdat", Some((8, Some(0xffff_ffff)))),
            (b"\0\0\0\x01mdat\0\0\0\0\0\0\0", None),
            (b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x0f", None),
            (
                b"\0\0\0\x01mdat\0\0\0\x01\0\0\0\0",
                Some((16, Some(1 << 32))),
            ),
        ];
        for (given, read) in cases {
            let kind = *b"mdat";
            let expected = read.map(|(bytes, size)| Header { kind, bytes, size });
            assert_eq!(Header::read(given), expected, "{given:?}");
        }
    }
}
