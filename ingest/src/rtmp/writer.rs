//! Writes RTMP messages as chunks: our chunk size, acknowledgements, pings, commands. Every message has a full header:
//! answers are rare, and of media it is 12 bytes.

use super::{
    amf0,
    chunk::DEFAULT_CHUNK_SIZE,
    message::{event, kind},
};

/// Chunk streams of our messages, as other servers choose them.
const CONTROL: u8 = 2;
const COMMAND: u8 = 3;
/// Chunk size that we announce.
const CHUNK_SIZE: u32 = 4096;
/// Marker in the 24-bit time field: the value is in the extended field, which every chunk of the message repeats.
const EXTENDED: u32 = 0xFF_FFFF;
/// The longest message, by its 24-bit length field.
pub(crate) const LONGEST_MESSAGE: usize = 0xFF_FFFF;

/// Collects the bytes to send.
#[derive(Debug)]
pub(crate) struct Writer {
    output: Vec<u8>,
    chunk_size: usize,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self {
            output: Vec::new(),
            chunk_size: DEFAULT_CHUNK_SIZE,
        }
    }

    /// Returns everything that waits to be sent, in order; the sender empties it.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Raises the chunk size from here on: longer messages need fewer chunks.
    pub(crate) fn raise_chunk_size(&mut self) {
        self.control(kind::SET_CHUNK_SIZE, &CHUNK_SIZE.to_be_bytes());
        self.chunk_size = CHUNK_SIZE as usize;
    }

    pub(crate) fn acknowledge(&mut self, bytes_received: u64) {
        let sequence = (bytes_received & u64::from(u32::MAX)) as u32;
        self.control(kind::ACKNOWLEDGEMENT, &sequence.to_be_bytes());
    }

    pub(crate) fn window_acknowledgement_size(&mut self, size: u32) {
        self.control(kind::WINDOW_ACKNOWLEDGEMENT_SIZE, &size.to_be_bytes());
    }

    /// Writes Set Peer Bandwidth with limit type 2, dynamic.
    pub(crate) fn peer_bandwidth(&mut self, size: u32) {
        let [a, b, c, d] = size.to_be_bytes();
        self.control(kind::SET_PEER_BANDWIDTH, &[a, b, c, d, 2]);
    }

    pub(crate) fn stream_begin(&mut self, stream_id: u32) {
        self.user_control(event::STREAM_BEGIN, stream_id);
    }

    pub(crate) fn ping_request(&mut self, timestamp_ms: u32) {
        self.user_control(event::PING_REQUEST, timestamp_ms);
    }

    pub(crate) fn ping_response(&mut self, timestamp_ms: u32) {
        self.user_control(event::PING_RESPONSE, timestamp_ms);
    }

    /// Writes a command whose name, transaction and arguments `fill` writes.
    pub(crate) fn command(&mut self, stream_id: u32, fill: impl FnOnce(&mut amf0::Writer)) {
        let mut payload = amf0::Writer::new();
        fill(&mut payload);
        let header = Header {
            chunk_stream: COMMAND,
            kind: kind::COMMAND_AMF0,
            stream_id,
            timestamp_ms: 0,
        };
        self.message(header, &payload.into_bytes(), &[]);
    }

    /// Writes a message whose payload is `head` and `body`, together at most [`LONGEST_MESSAGE`].
    pub(crate) fn message(&mut self, header: Header, head: &[u8], body: &[u8]) {
        let length = u32::try_from(head.len() + body.len()).expect("bounded by the caller");
        let time = header.timestamp_ms.to_be_bytes();
        let extended: &[u8] = match header.timestamp_ms {
            EXTENDED.. => &time,
            _ => &[],
        };
        let output = &mut self.output;
        output.push(header.chunk_stream);
        output.extend(&header.timestamp_ms.min(EXTENDED).to_be_bytes()[1..]);
        output.extend(&length.to_be_bytes()[1..]);
        output.push(header.kind);
        output.extend(header.stream_id.to_le_bytes());
        output.extend(extended);
        let mut room = self.chunk_size;
        for mut piece in [head, body] {
            while !piece.is_empty() {
                if room == 0 {
                    output.push(0xC0 | header.chunk_stream);
                    output.extend(extended);
                    room = self.chunk_size;
                }
                let (fits, rest) = piece.split_at(piece.len().min(room));
                output.extend(fits);
                room -= fits.len();
                piece = rest;
            }
        }
    }

    fn user_control(&mut self, event: u16, value: u32) {
        let [a, b] = event.to_be_bytes();
        let [c, d, e, f] = value.to_be_bytes();
        self.control(kind::USER_CONTROL, &[a, b, c, d, e, f]);
    }

    fn control(&mut self, kind: u8, payload: &[u8]) {
        let header = Header {
            chunk_stream: CONTROL,
            kind,
            stream_id: 0,
            timestamp_ms: 0,
        };
        self.message(header, payload, &[]);
    }
}

/// Header of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// 2 to 63.
    pub(crate) chunk_stream: u8,
    /// Message type, of [`kind`].
    pub(crate) kind: u8,
    pub(crate) stream_id: u32,
    pub(crate) timestamp_ms: u32,
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::rtmp::chunk::{ChunkLimits, ChunkReader};

    #[test]
    fn what_is_written_is_read_back() {
        let mut writer = Writer::new();
        let long = "x".repeat(300);
        writer.command(1, |c| {
            c.string(&long);
        });
        writer.acknowledge((1 << 32) + 7);
        writer.ping_request(9);
        let mut input = BytesMut::from(&writer.output()[..]);
        let mut reader = ChunkReader::new(ChunkLimits {
            chunk_streams: 4,
            command: 1 << 10,
            media: 0,
            unfinished: 1 << 10,
            reserve: 0,
        });
        let mut messages = Vec::new();
        while let Some(message) = reader.next(&mut input).unwrap() {
            messages.push((message.kind, message.stream_id, message.payload.len()));
        }
        assert_eq!(messages, [(20, 1, 303), (3, 0, 4), (4, 0, 6)]);
    }

    #[test]
    fn late_times_are_repeated_in_every_chunk() {
        let mut writer = Writer::new();
        let header = Header {
            chunk_stream: 6,
            kind: kind::VIDEO,
            stream_id: 1,
            timestamp_ms: EXTENDED + 5,
        };
        let body: Vec<u8> = (0..300).map(|i| i as u8).collect();
        writer.message(header, &[7; 5], &body);
        let mut input = BytesMut::from(&writer.output()[..]);
        let mut reader = ChunkReader::new(ChunkLimits {
            chunk_streams: 4,
            command: 0,
            media: 1 << 10,
            unfinished: 1 << 10,
            reserve: 0,
        });
        let message = reader.next(&mut input).unwrap().expect("it is whole");
        assert_eq!(message.timestamp_ms, EXTENDED + 5);
        assert_eq!(message.payload, [&[7; 5][..], &body].concat());
        assert!(input.is_empty());
    }
}
