//! FLV clips for test publishers, cut into RTMP chunks once.
//!
//! Tags are cut into RTMP chunks here, so that a publisher only writes a 12-byte header and copies a body: a hundred
//! publishers must leave the processor to the server that they load.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{Failure, rtmp::CHUNK_SIZE};

/// FLV tag types, which are RTMP's message types too.
pub const AUDIO: u8 = 8;
pub const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;

/// A message of the publish.
#[derive(Clone, Debug)]
pub struct Tag {
    pub kind: u8,
    /// Decode time since the start of the clip.
    pub time_ms: u32,
    /// Length of the message without chunk headers.
    pub length: usize,
    /// The message with the headers of its second and later chunks already between its pieces.
    pub chunked: Bytes,
}

/// A clip ready to be published again and again.
#[derive(Clone, Debug)]
pub struct Clip {
    /// The metadata and codec configurations, sent once.
    pub opening: Vec<Tag>,
    /// Video and audio frames in order, the first of them a key frame.
    pub tags: Vec<Tag>,
    pub duration_ms: u32,
}

impl Clip {
    /// Reads the first `duration_ms` of FLV (Adobe Flash Video File Format 10.1, annex E).
    pub fn read(flv: &[u8], duration_ms: u32) -> Result<Self, Failure> {
        let mut clip = Self {
            opening: Vec::new(),
            tags: Vec::new(),
            duration_ms,
        };
        let mut rest = flv
            .strip_prefix(b"FLV\x01")
            .and_then(|rest| rest.get(9..))
            .ok_or("the clip is not FLV: delete it, then it is made again")?;
        while let Some((head, after)) = rest.split_at_checked(11) {
            let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
            let time_ms = u32::from_be_bytes([head[7], head[4], head[5], head[6]]);
            let Some(body) = after.get(..length) else {
                break;
            };
            clip.take(head[0], time_ms, body);
            rest = after.get(length + 4..).unwrap_or_default();
        }
        if clip.tags.is_empty() {
            return Err("the clip holds no media: delete it, then it is made again".into());
        }
        Ok(clip)
    }

    fn take(&mut self, kind: u8, time_ms: u32, body: &[u8]) {
        let configuration = matches!((kind, body), (AUDIO | VIDEO, [_, 0, ..]));
        // The end-of-sequence tag that ffmpeg closes with would end the stream at each turn.
        let end_of_sequence = matches!((kind, body), (VIDEO, [_, 2, ..]));
        if kind == SCRIPT {
            // AMF0 string "@setDataFrame": what makes a server keep the metadata (RTMP 1.0, NetStream send).
            let message = [b"\x02\x00\x0d@setDataFrame".as_slice(), body].concat();
            self.opening.push(Tag::new(kind, 0, &message));
        } else if configuration {
            self.opening.push(Tag::new(kind, 0, body));
        } else if !end_of_sequence && time_ms < self.duration_ms {
            self.tags.push(Tag::new(kind, time_ms, body));
        }
    }
}

impl Tag {
    fn new(kind: u8, time_ms: u32, body: &[u8]) -> Self {
        let mut chunked = BytesMut::with_capacity(body.len() + body.len() / CHUNK_SIZE + 1);
        for (index, piece) in body.chunks(CHUNK_SIZE).enumerate() {
            if index > 0 {
                chunked.put_u8(0xC0 | chunk_stream(kind));
            }
            chunked.put_slice(piece);
        }
        Self {
            kind,
            time_ms,
            length: body.len(),
            chunked: chunked.freeze(),
        }
    }

    pub fn chunk_stream(&self) -> u8 {
        chunk_stream(self.kind)
    }
}

/// The chunk stream a message type travels on.
fn chunk_stream(kind: u8) -> u8 {
    match kind {
        VIDEO => 6,
        AUDIO => 4,
        _ => 5,
    }
}
