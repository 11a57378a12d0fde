//! Headers of the boxes that MP4 and QuickTime files consist of (ISO/IEC 14496-12 §4.2).

/// Bytes of the longest header.
pub(super) const HEADER_BYTES: usize = 16;

/// What a box begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: [u8; 4],
    /// Of the whole box; `None`: as far as what holds it.
    pub(super) size: Option<u64>,
}

impl Header {
    /// `None` for what begins no box: too few bytes, or a size that has no room for the header itself.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let size = u32::from_be_bytes(*bytes.first_chunk()?);
        let kind = *bytes.get(4..)?.first_chunk()?;
        let (size, least) = match size {
            0 => return Some(Self { kind, size: None }),
            1 => (u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?), 16),
            size => (u64::from(size), 8),
        };
        (size >= least).then_some(Self {
            kind,
            size: Some(size),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_kind_and_a_size_that_holds_it() {
        let cases: [(&[u8], Option<Option<u64>>); 9] = [
            (b"", None),
            (b"\0\0\0\x08mda", None),
            (b"\0\0\0\x07mdat", None),
            (b"\0\0\0\x08mdat", Some(Some(8))),
            (b"\0\0\0\0mdat", Some(None)),
            (b"\xff\xff\xff\xffmdat", Some(Some(0xffff_ffff))),
            (b"\0\0\0\x01mdat\0\0\0\0\0\0\0", None),
            (b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x0f", None),
            (b"\0\0\0\x01mdat\0\0\0\x01\0\0\0\0", Some(Some(1 << 32))),
        ];
        for (bytes, size) in cases {
            let kind = *b"mdat";
            let expected = size.map(|size| Header { kind, size });
            assert_eq!(Header::read(bytes), expected, "{bytes:?}");
        }
    }
}
