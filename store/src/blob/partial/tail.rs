//! Tail of an upload in the object store: the bytes after its last complete piece, in objects `b/{base}/t{number}`.
//!
//! - Each object is a segment of the tail. It ends with a list of the segments before it, so that the row names only the
//!   newest one, and a request that brings little does not write the whole tail again.
//! - Numbers are random: a request that was superseded, here or on another node, never writes an object of a later one.
//! - A segment is longer than the one after it, and longer than [`MERGED_BYTES`], but for the newest: there are 32 at most. A
//!   byte is written again at most five times once its segment is that long.

use bytes::Bytes;
use uuid::Uuid;

use crate::{
    blob::pieces::{PIECE_HASH_BYTES, PieceHash},
    objects::PIECE,
};

/// Length up to which a segment is written again with what follows it. The object of a request that brings one byte has
/// half of it on average.
const MERGED_BYTES: u64 = 256 << 10;
/// Segments that are read at most.
const MOST_SEGMENTS: u8 = 64;
/// Bytes of a segment in the list at the end of an object: number, length, hash.
const ENTRY_BYTES: usize = 8 + 4 + PIECE_HASH_BYTES;

/// Newest object of a tail, as the row names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Above 0.
    pub(crate) number: i64,
    /// Hash of the object with its list.
    pub(crate) hash: PieceHash,
}

impl Tail {
    /// Reads the columns of a row; `None` when there is no tail.
    pub(crate) fn of(number: i64, hash: Option<&[u8]>) -> Option<Self> {
        let hash = PieceHash::try_from(hash?).ok()?;
        Some(Self { number, hash }).filter(|tail| tail.number > 0)
    }
}

/// Object of a tail with its place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) object: Tail,
    /// Bytes of the upload in it.
    pub(super) length: u32,
}

/// Content of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) bytes: Bytes,
    /// Segments before it, the first one first.
    pub(super) before: Vec<Segment>,
}

/// Returns a number that no other object has.
pub(super) fn new_number() -> i64 {
    let (random, _) = Uuid::new_v4().as_u64_pair();
    ((random >> 1) as i64).max(1)
}

/// Returns how many of the segments are kept when `new` bytes follow; the others are written again with these bytes.
pub(super) fn kept(segments: &[Segment], new: u64) -> usize {
    let (mut kept, mut together) = (segments.len(), new);
    while let Some(last) = segments[..kept].last() {
        let length = u64::from(last.length);
        if length > together.max(MERGED_BYTES) {
            break;
        }
        together += length;
        kept -= 1;
    }
    kept
}

/// Returns the bytes of all the segments.
pub(super) fn length_of(segments: &[Segment]) -> u64 {
    segments
        .iter()
        .map(|segment| u64::from(segment.length))
        .sum()
}

/// Makes an object of the bytes, which follow those of the segments `before`.
pub(super) fn write(bytes: Vec<u8>, before: &[Segment]) -> Bytes {
    let mut object = bytes;
    object.reserve_exact(before.len() * ENTRY_BYTES + 1);
    for segment in before {
        object.extend_from_slice(&segment.object.number.to_be_bytes());
        object.extend_from_slice(&segment.length.to_be_bytes());
        object.extend_from_slice(&segment.object.hash);
    }
    let count = u8::try_from(before.len()).expect("a piece has no more than 32 segments");
    object.push(count);
    Bytes::from(object)
}

/// Reads an object; `None` when it is none of a tail.
pub(super) fn read(object: &Bytes) -> Option<Content> {
    let (count, rest) = object
        .split_last()
        .filter(|(count, _)| **count <= MOST_SEGMENTS)?;
    let length = rest.len().checked_sub(usize::from(*count) * ENTRY_BYTES)?;
    let before: Option<Vec<Segment>> = rest[length..]
        .chunks_exact(ENTRY_BYTES)
        .map(entry)
        .collect();
    let before = before?;
    let all = length_of(&before) + length as u64;
    let is_tail = length > 0 && all < PIECE as u64;
    is_tail.then(|| Content {
        bytes: object.slice(..length),
        before,
    })
}

fn entry(entry: &[u8]) -> Option<Segment> {
    let (number, rest) = entry.split_first_chunk::<8>()?;
    let (length, hash) = rest.split_first_chunk::<4>()?;
    let object = Tail::of(i64::from_be_bytes(*number), Some(hash))?;
    Some(Segment {
        object,
        length: u32::from_be_bytes(*length),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::pieces::piece_hash;

    fn segment(length: u32) -> Segment {
        let number = new_number();
        Segment {
            object: Tail {
                number,
                hash: piece_hash(&number.to_be_bytes()),
            },
            length,
        }
    }

    #[test]
    fn an_object_names_the_segments_before_it() {
        for before in [vec![], vec![segment(5)], vec![segment(700_000), segment(9)]] {
            let object = write(b"bytes".to_vec(), &before);
            let content = read(&object).unwrap();
            assert_eq!(
                (&content.bytes[..], &content.before),
                (&b"bytes"[..], &before)
            );
            assert_eq!(read(&object.slice(..1)), None, "cut off");
        }
        let too_long = segment(PIECE as u32);
        let no_bytes = write(Vec::new(), &[segment(5)]);
        for wrong in [
            Bytes::new(),
            Bytes::from_static(&[0]),
            Bytes::from_static(b"bytes\x01"),
            no_bytes,
            write(b"bytes".to_vec(), &[too_long]),
            // A number of 0.
            Bytes::from(
                vec![0; ENTRY_BYTES + 5]
                    .into_iter()
                    .chain([1])
                    .collect::<Vec<u8>>(),
            ),
        ] {
            assert_eq!(read(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn little_is_written_again_when_little_comes() {
        const KIB: u32 = 1 << 10;
        let cases: [(&[u32], u64, usize); 9] = [
            (&[], 1, 0),
            (&[1], 1, 0),
            (&[256 * KIB], 1, 0),
            (&[256 * KIB + 1], 1, 1),
            (&[4000 * KIB, 256 * KIB], 1, 1),
            (&[4000 * KIB, 300 * KIB, 1], 1, 2),
            (&[4000 * KIB, 300 * KIB, 200 * KIB], 200 << 10, 1),
            (&[900 * KIB, 500 * KIB, 250 * KIB], 250 << 10, 0),
            (&[600 * KIB], 5 << 20, 0),
        ];
        for (lengths, new, expected) in cases {
            let segments: Vec<Segment> = lengths.iter().copied().map(segment).collect();
            assert_eq!(kept(&segments, new), expected, "{lengths:?} and {new}");
        }
    }

    /// Counts what requests of one size write until a piece is complete.
    #[test]
    fn a_piece_is_not_written_often() {
        for size in [64 << 10, 100 << 10, 625_000, 1 << 20, 5 << 20] {
            let (mut segments, mut length, mut written) = (Vec::new(), 0, 0);
            while length + size < PIECE as u64 {
                length += size;
                segments.truncate(kept(&segments, size));
                let bytes = length - length_of(&segments);
                segments.push(segment(bytes as u32));
                written += bytes;
                assert!(segments.len() <= 6, "{size}: {segments:?}");
            }
            assert!(written <= 7 * PIECE as u64, "{size}: {written}");
        }
        // Request after request of one byte: no object is long, but for a few.
        let (mut segments, mut written) = (vec![segment(4 << 20)], 0);
        for _ in 0..1000 {
            segments.truncate(kept(&segments, 1));
            let bytes = 1 + (4 << 20) + written - length_of(&segments);
            segments.push(segment(bytes as u32));
            written += 1;
        }
        assert_eq!(length_of(&segments), (4 << 20) + 1000);
        assert_eq!(segments.len(), 2);
    }
}
