//! Detects truncated files, which end before their own headers say: MP4 boxes, RIFF chunks, Matroska segments.

use crate::av::{
    boxes::{HEADER_BYTES, Header},
    source::Input,
};

/// Boxes that are looked at; media of an MP4 that was recorded in pieces has one for each.
const MAX_BOXES: usize = 4_096;

/// Returns whether the file declares more bytes than it has. Formats that declare nothing are taken as whole.
pub fn breaks_off(input: &Input) -> bool {
    let head = input.read_at(0, 64).unwrap_or_default();
    match &head {
        head if head.starts_with(b"RIFF") => riff_breaks_off(head, input.len()),
        head if head.starts_with(b"\x1a\x45\xdf\xa3") => matroska_breaks_off(head, input.len()),
        head if head
            .get(4..8)
            .is_some_and(|kind| MOVIE_BOXES.contains(&kind)) =>
        {
            movie_breaks_off(input)
        }
        _ => false,
    }
}

/// Boxes with which an MP4 or QuickTime file begins.
const MOVIE_BOXES: [&[u8]; 6] = [b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"];

/// The size of the chunk that holds all; 0 and all ones are what writers leave that could not go back.
fn riff_breaks_off(head: &[u8], length: u64) -> bool {
    let Some(size) = head.get(4..).and_then(<[u8]>::first_chunk) else {
        return false;
    };
    let size = u32::from_le_bytes(*size);
    size != u32::MAX && u64::from(size) + 8 > length + 1
}

/// The size of the segment (RFC 8794 §4, RFC 9559 §5.1).
fn matroska_breaks_off(head: &[u8], length: u64) -> bool {
    const SEGMENT: &[u8] = b"\x18\x53\x80\x67";
    let Some((header_size, width)) = head.get(4..).and_then(number) else {
        return false;
    };
    let at = 4 + width + header_size.unwrap_or_default() as usize;
    let Some(rest) = head.get(at..).and_then(|rest| rest.strip_prefix(SEGMENT)) else {
        return false;
    };
    match number(rest) {
        Some((Some(size), width)) => (at + SEGMENT.len() + width) as u64 + size > length,
        _ => false,
    }
}

/// A number of EBML and its width; `None` inside: unknown.
fn number(bytes: &[u8]) -> Option<(Option<u64>, usize)> {
    let first = *bytes.first()?;
    let width = first.leading_zeros() as usize + 1;
    let digits = bytes.get(..width).filter(|_| width <= 8)?;
    let marker = 1_u64 << (7 * width);
    let value = digits
        .iter()
        .fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        & (marker - 1);
    Some(((value != marker - 1).then_some(value), width))
}

/// Box by box, until one goes beyond the end.
fn movie_breaks_off(input: &Input) -> bool {
    let mut at = 0;
    for _ in 0..MAX_BOXES {
        if at >= input.len() {
            return at > input.len();
        }
        let head = input.read_at(at, HEADER_BYTES).unwrap_or_default();
        // Less than a header is what cameras put behind the last box; one without a size goes up to the end.
        let Some(size) = Header::read(&head).and_then(|header| header.size) else {
            return false;
        };
        at = at.saturating_add(size);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_says_there_is_more_breaks_off() {
        let matroska = |size: &[u8], body: &[u8]| {
            [b"\x1a\x45\xdf\xa3\x82xx\x18\x53\x80\x67", size, body].concat()
        };
        let cases: [(Vec<u8>, bool); 14] = [
            (vec![], false),
            (b"text".to_vec(), false),
            (b"RIFF\x04\0\0\0WAVE".to_vec(), false),
            (b"RIFF\xff\xff\xff\xffWAVE".to_vec(), false),
            (b"RIFF\x40\0\0\0WAVE".to_vec(), true),
            (b"RIFF\x40".to_vec(), false),
            (matroska(b"\x82", b"xx"), false),
            (matroska(b"\x83", b"xx"), true),
            (matroska(b"\xff", b"xx"), false),
            (matroska(b"\x01\0\0\0\0\0\x10\0", b"xx"), true),
            (b"\0\0\0\x08ftyp\0\0\0\x09mdat1".to_vec(), false),
            (b"\0\0\0\x08ftyp\0\0\0\x0amdat1".to_vec(), true),
            (
                b"\0\0\0\x08ftyp\0\0\0\x01mdat\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
                true,
            ),
            (b"\0\0\0\x08ftyp\0\0\0\0mdat".to_vec(), false),
        ];
        for (bytes, expected) in cases {
            assert_eq!(breaks_off(&Input::holding(&bytes)), expected, "{bytes:?}");
        }
    }
}
