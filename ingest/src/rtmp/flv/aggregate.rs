//! Reads RTMP aggregate messages: several FLV tags in one message (RTMP 1.0 §7.1.6).
//!
//! Tags are handed out one by one, so that a large aggregate never becomes many units at once.

use bytes::{Buf, Bytes};

use super::Corruption;

const TAG_HEADER: usize = 11;
/// Length of the field after each tag: the length of the tag before, which is not needed.
const BACK_POINTER: usize = 4;

/// Tag inside an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubTag {
    pub timestamp_ms: u32,
    pub kind: u8,
    pub body: Bytes,
}

/// The tags of an aggregate that were not handed out yet.
#[derive(Clone, Debug)]
pub struct Aggregate {
    rest: Bytes,
    /// Timestamp of the message, which is that of its first tag.
    base_ms: u32,
    first_ms: Option<u32>,
}

impl Aggregate {
    pub fn new(timestamp_ms: u32, payload: Bytes) -> Self {
        Self {
            rest: payload,
            base_ms: timestamp_ms,
            first_ms: None,
        }
    }

    /// Returns the next tag; `None` at the end. After [`Corruption`] no tag follows: lengths are not reliable any
    /// more.
    pub fn next_tag(&mut self) -> Result<Option<SubTag>, Corruption> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let Some(header) = self.rest.first_chunk::<TAG_HEADER>() else {
            return self.truncated();
        };
        let [kind, l0, l1, l2, t0, t1, t2, t3, ..] = *header;
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let tag_ms = u32::from_be_bytes([t3, t0, t1, t2]);
        if self.rest.len() < TAG_HEADER + length {
            return self.truncated();
        }
        self.rest.advance(TAG_HEADER);
        let body = self.rest.split_to(length);
        self.rest.advance(BACK_POINTER.min(self.rest.len()));
        let first_ms = *self.first_ms.get_or_insert(tag_ms);
        Ok(Some(SubTag {
            timestamp_ms: self.base_ms.wrapping_add(tag_ms.wrapping_sub(first_ms)),
            kind: kind & 0x1F,
            body,
        }))
    }

    fn truncated(&mut self) -> Result<Option<SubTag>, Corruption> {
        self.rest = Bytes::new();
        Err(Corruption::Truncated {
            what: "aggregate message",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(kind: u8, time: u32, declared: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(&declared.to_be_bytes()[1..]);
        let [t3, t0, t1, t2] = time.to_be_bytes();
        bytes.extend([t0, t1, t2, t3, 0, 0, 0]);
        bytes.extend(body);
        bytes.extend((11 + declared).to_be_bytes());
        bytes
    }

    fn walk(payload: Vec<u8>) -> (Vec<(u32, u8, usize)>, bool) {
        let mut aggregate = Aggregate::new(1000, payload.into());
        let mut tags = Vec::new();
        loop {
            match aggregate.next_tag() {
                Ok(Some(tag)) => tags.push((tag.timestamp_ms, tag.kind, tag.body.len())),
                Ok(None) => return (tags, true),
                Err(_) => {
                    assert_eq!(aggregate.next_tag(), Ok(None), "nothing after corruption");
                    return (tags, false);
                }
            }
        }
    }

    #[test]
    fn lying_sizes_end_the_walk() {
        let good = tag(8, 0x0100_0005, 2, b"ab");
        let cases: [(&str, Vec<u8>, usize, bool); 6] = [
            ("empty", vec![], 0, true),
            ("half a header", vec![9; 10], 0, false),
            (
                "beyond the end",
                [&good[..], &tag(9, 7, 0xFF_FFFF, b"x")].concat(),
                1,
                false,
            ),
            ("no back pointer", good[..13].to_vec(), 1, true),
            ("half a back pointer", good[..15].to_vec(), 1, true),
            ("empty tags", tag(9, 0, 0, b"").repeat(3), 3, true),
        ];
        for (name, payload, tags, whole) in cases {
            let (found, ended) = walk(payload);
            assert_eq!((found.len(), ended), (tags, whole), "{name}");
        }
    }

    #[test]
    fn times_count_from_the_message() {
        let payload = [
            tag(8, 500, 1, b"a"),
            tag(9, 540, 2, b"bb"),
            tag(8, 490, 1, b"c"),
        ]
        .concat();
        let (found, _) = walk(payload);
        assert_eq!(found, [(1000, 8, 1), (1040, 9, 2), (990, 8, 1)]);
    }
}
