//! Reads RTMP chunks into messages (RTMP 1.0 §5.3): chunk size, extended timestamps, bounds of message sizes.
//!
//! A chunk's payload is taken as it arrives, so that memory follows the bytes that came and never a declared length. A
//! message that is whole in the input is split off without a copy. Every bound of [`ChunkLimits`] is checked when a
//! message's header is read, before any of its payload is kept.

use bytes::{Buf, Bytes, BytesMut};

use crate::Error;

use super::message::{Message, kind};

/// Chunk size of both directions until Set Chunk Size changes it.
pub const DEFAULT_CHUNK_SIZE: usize = 128;
/// Largest effective chunk size: no message is longer than its 24-bit length field allows.
const LARGEST_CHUNK_SIZE: u32 = 0xFF_FFFF;
/// The chunk stream of protocol control messages.
const CONTROL_CHUNK_STREAM: u32 = 2;
/// Marker in the 24-bit time field: the value is in the extended field.
const EXTENDED: u32 = 0xFF_FFFF;
/// Bytes of the message header by chunk format 0–3.
const FIELDS_LEN: [usize; 4] = [11, 7, 3, 0];

/// Bounds of the memory that one connection may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Chunk streams in use over the connection's life.
    pub chunk_streams: usize,
    /// Bytes of a command, data or control message.
    pub command: usize,
    /// Bytes of an audio, video or aggregate message.
    pub media: usize,
    /// Bytes of all unfinished messages together.
    pub unfinished: usize,
    /// Bytes that may be reserved for a message when its first chunk comes; beyond it, memory grows with arrival.
    pub reserve: usize,
}

/// Cuts messages out of a byte stream.
#[derive(Debug)]
pub struct ChunkReader {
    limits: ChunkLimits,
    chunk_size: usize,
    streams: Vec<ChunkStream>,
    /// The chunk whose header was read and whose payload has not wholly arrived.
    current: Option<Chunk>,
    unfinished: usize,
}

/// State of one chunk stream: later headers leave out what did not change.
#[derive(Debug, Default)]
struct ChunkStream {
    id: u32,
    timestamp_ms: u32,
    delta_ms: u32,
    length: usize,
    kind: u8,
    stream_id: u32,
    /// The extended time field of the last header that had fields; type 3 chunks repeat it.
    extended: Option<u32>,
    /// The part of the open message that has arrived.
    assembly: BytesMut,
    /// Bytes of the open message still to come; 0 when none is open.
    missing: usize,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    slot: usize,
    remaining: usize,
}

struct BasicHeader {
    format: usize,
    id: u32,
    len: usize,
}

/// Fields of a chunk's message header, completed from the state of the chunk stream.
struct Fields {
    /// Absolute for format 0, a delta for 1 and 2, unused for 3.
    time: u32,
    length: usize,
    kind: u8,
    stream_id: u32,
    extended: Option<u32>,
    /// Bytes of basic header, fields and extended field.
    len: usize,
}

impl ChunkReader {
    pub fn new(limits: ChunkLimits) -> Self {
        Self {
            limits,
            chunk_size: DEFAULT_CHUNK_SIZE,
            streams: Vec::new(),
            current: None,
            unfinished: 0,
        }
    }

    /// Sets the limits that apply from the next header on (a publisher that was admitted may send more).
    pub fn set_limits(&mut self, limits: ChunkLimits) {
        self.limits = limits;
    }

    /// Takes a Set Chunk Size message's value: 1 to 2^31 − 1, where more than 2^24 − 1 has no further effect.
    pub fn set_chunk_size(&mut self, size: u32) -> Result<(), Error> {
        if size == 0 || size > 0x7FFF_FFFF {
            return Err(Error::invalid("chunk size", format!("{size}")));
        }
        self.chunk_size = size.min(LARGEST_CHUNK_SIZE) as usize;
        Ok(())
    }

    /// Discards the open message of a chunk stream (Abort Message); does nothing without one.
    pub fn abort(&mut self, chunk_stream: u32) {
        if let Some(stream) = self.streams.iter_mut().find(|s| s.id == chunk_stream) {
            self.unfinished -= stream.assembly.len();
            stream.assembly = BytesMut::new();
            stream.missing = 0;
        }
    }

    /// Bytes held of messages that are not whole.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns the next whole message, or `None` when more input is needed. Consumes from `input` what it has parsed;
    /// a few bytes of an unfinished header may stay. After an error the connection is unusable.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Message>, Error> {
        loop {
            let chunk = match self.current.take() {
                Some(chunk) => chunk,
                None => match self.read_header(input)? {
                    Some(chunk) => chunk,
                    None => return Ok(None),
                },
            };
            if let Some(payload) = self.read_payload(chunk, input)? {
                return Ok(Some(self.streams[chunk.slot].message(payload)));
            }
            if self.current.is_some() {
                return Ok(None);
            }
        }
    }

    fn read_header(&mut self, input: &mut BytesMut) -> Result<Option<Chunk>, Error> {
        let Some(basic) = BasicHeader::parse(input) else {
            return Ok(None);
        };
        let slot = match self.streams.iter().position(|s| s.id == basic.id) {
            Some(slot) => slot,
            None => self.open_stream(&basic)?,
        };
        let stream = &mut self.streams[slot];
        // Chunks that continue a message have format 3 (§5.3.1.2.4); any other would begin one.
        if stream.missing > 0 && basic.format != 3 {
            return Err(Error::invalid(
                "chunk header",
                "a new message inside an unfinished one",
            ));
        }
        let Some(fields) = Fields::parse(&basic, stream, input) else {
            return Ok(None);
        };
        if stream.missing == 0 {
            stream.begin_message(basic.format, &fields);
            self.limits.check_message(stream.kind, stream.length)?;
        }
        input.advance(fields.len);
        Ok(Some(Chunk {
            slot,
            remaining: stream.missing.min(self.chunk_size),
        }))
    }

    /// Opens a chunk stream, which begins with a full header. librtmp sends its first control message in format 1.
    fn open_stream(&mut self, basic: &BasicHeader) -> Result<usize, Error> {
        if basic.format != 0 && !(basic.format == 1 && basic.id == CONTROL_CHUNK_STREAM) {
            return Err(Error::invalid(
                "chunk header",
                format!(
                    "chunk stream {} begins with format {}",
                    basic.id, basic.format
                ),
            ));
        }
        let used = self.streams.len();
        if used >= self.limits.chunk_streams {
            let limit = self.limits.chunk_streams;
            return Err(Error::too_large("number of chunk streams", used + 1, limit));
        }
        self.streams.push(ChunkStream {
            id: basic.id,
            ..ChunkStream::default()
        });
        Ok(used)
    }

    /// Returns the message's payload if this chunk completes it; leaves the chunk in `current` when input ran out.
    fn read_payload(
        &mut self,
        mut chunk: Chunk,
        input: &mut BytesMut,
    ) -> Result<Option<Bytes>, Error> {
        let stream = &mut self.streams[chunk.slot];
        // With large chunks the common case: no copy, and nothing counts as unfinished.
        let is_only_chunk = stream.assembly.is_empty() && chunk.remaining == stream.missing;
        if is_only_chunk && input.len() >= stream.missing {
            let whole = std::mem::take(&mut stream.missing);
            return Ok(Some(match whole {
                0 => Bytes::new(),
                _ => input.split_to(whole).freeze(),
            }));
        }

        let arrived = chunk.remaining.min(input.len());
        if self.unfinished + arrived > self.limits.unfinished {
            let limit = self.limits.unfinished;
            let size = self.unfinished + arrived;
            return Err(Error::too_large("sum of unfinished messages", size, limit));
        }
        stream.append(&input[..arrived], self.limits.reserve);
        input.advance(arrived);
        self.unfinished += arrived;
        chunk.remaining -= arrived;

        if stream.missing == 0 {
            let payload = std::mem::take(&mut stream.assembly).freeze();
            self.unfinished -= payload.len();
            return Ok(Some(payload));
        }
        if chunk.remaining > 0 {
            self.current = Some(chunk);
        }
        Ok(None)
    }
}

impl ChunkLimits {
    fn check_message(&self, message_kind: u8, length: usize) -> Result<(), Error> {
        let (what, limit) = match message_kind {
            kind::AUDIO | kind::VIDEO | kind::AGGREGATE => ("media message", self.media),
            _ => ("message", self.command),
        };
        if length > limit {
            return Err(Error::too_large(what, length, limit));
        }
        Ok(())
    }
}

impl ChunkStream {
    /// Begins a message. Encoders in use add nothing when a type 3 chunk begins a message right after a type 0 one,
    /// contrary to §5.3.1.2.4; the delta is 0 then.
    fn begin_message(&mut self, format: usize, fields: &Fields) {
        match format {
            0 => {
                self.timestamp_ms = fields.time;
                self.delta_ms = 0;
            }
            1 | 2 => {
                self.delta_ms = fields.time;
                self.timestamp_ms = self.timestamp_ms.wrapping_add(self.delta_ms);
            }
            _ => self.timestamp_ms = self.timestamp_ms.wrapping_add(self.delta_ms),
        }
        self.length = fields.length;
        self.kind = fields.kind;
        self.stream_id = fields.stream_id;
        self.extended = fields.extended;
        self.missing = fields.length;
    }

    fn append(&mut self, piece: &[u8], reserve: usize) {
        let held = self.assembly.len();
        if self.assembly.capacity() - held < piece.len() {
            // Grows with what arrived: a declared length alone reserves at most `reserve`.
            let wanted = reserve.max(held * 3).min(self.missing);
            self.assembly.reserve(wanted.max(piece.len()));
        }
        self.assembly.extend_from_slice(piece);
        self.missing -= piece.len();
    }

    fn message(&self, payload: Bytes) -> Message {
        Message {
            timestamp_ms: self.timestamp_ms,
            kind: self.kind,
            stream_id: self.stream_id,
            payload,
        }
    }
}

impl BasicHeader {
    /// Parses the basic header (§5.3.1.1); `None` when more input is needed.
    fn parse(input: &[u8]) -> Option<Self> {
        let first = *input.first()?;
        let (id, len) = match first & 0x3F {
            0 => (64 + u32::from(*input.get(1)?), 2),
            1 => {
                let id = input.get(1..3)?;
                (64 + u32::from(id[0]) + 256 * u32::from(id[1]), 3)
            }
            id => (u32::from(id), 1),
        };
        Some(Self {
            format: usize::from(first >> 6),
            id,
            len,
        })
    }
}

impl Fields {
    /// Parses the message header (§5.3.1.2); `None` when more input is needed.
    fn parse(basic: &BasicHeader, stream: &ChunkStream, input: &[u8]) -> Option<Self> {
        let rest = &input[basic.len..];
        let fields_len = FIELDS_LEN[basic.format];
        let given = rest.get(..fields_len)?;
        let mut fields = Self {
            time: 0,
            length: stream.length,
            kind: stream.kind,
            stream_id: stream.stream_id,
            extended: stream.extended,
            len: basic.len + fields_len,
        };
        if basic.format <= 2 {
            fields.time = be24(&given[..3]);
            fields.extended = None;
        }
        if basic.format <= 1 {
            fields.length = be24(&given[3..6]) as usize;
            fields.kind = given[6];
        }
        if basic.format == 0 {
            // The protocol's only little-endian field.
            fields.stream_id = u32::from_le_bytes([given[7], given[8], given[9], given[10]]);
        }

        let has_extended = match basic.format {
            3 => stream.extended.is_some(),
            _ => fields.time == EXTENDED,
        };
        if has_extended {
            let word = rest.get(fields_len..fields_len + 4)?;
            let word = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
            if basic.format == 3 {
                if stream.missing == 0 || stream.repeats_extended(word) {
                    fields.len += 4;
                }
            } else {
                fields.time = word;
                fields.extended = Some(word);
                fields.len += 4;
            }
        }
        Some(fields)
    }
}

impl ChunkStream {
    /// Returns whether the word repeats the extended field. Some encoders leave it out of the chunks that continue a
    /// message; then the word is payload.
    fn repeats_extended(&self, word: u32) -> bool {
        self.extended == Some(word) || self.timestamp_ms == word
    }
}

fn be24(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
