//! The outbound side: messages to chunks. What we send is small and rare, so every message has a full header.

use super::{
    amf0,
    chunk::DEFAULT_CHUNK_SIZE,
    message::{event, kind},
};

/// Chunk streams of our messages, as other servers choose them.
const CONTROL: u8 = 2;
const COMMAND: u8 = 3;
const CHUNK_SIZE: u32 = 4096;

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

    /// Everything that waits to be sent, in order; whoever sends it empties it.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// From here on, longer messages need fewer chunks.
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

    /// Limit type 2, dynamic.
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

    /// A command whose name, transaction and arguments `fill` writes.
    pub(crate) fn command(&mut self, stream_id: u32, fill: impl FnOnce(&mut amf0::Writer)) {
        let mut payload = amf0::Writer::new();
        fill(&mut payload);
        self.message(
            COMMAND,
            kind::COMMAND_AMF0,
            stream_id,
            &payload.into_bytes(),
        );
    }

    fn user_control(&mut self, event: u16, value: u32) {
        let [a, b] = event.to_be_bytes();
        let [c, d, e, f] = value.to_be_bytes();
        self.control(kind::USER_CONTROL, &[a, b, c, d, e, f]);
    }

    fn control(&mut self, kind: u8, payload: &[u8]) {
        self.message(CONTROL, kind, 0, payload);
    }

    fn message(&mut self, chunk_stream: u8, kind: u8, stream_id: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("our messages are small");
        self.output.push(chunk_stream);
        self.output.extend([0; 3]);
        self.output.extend(&length.to_be_bytes()[1..]);
        self.output.push(kind);
        self.output.extend(stream_id.to_le_bytes());
        for (index, piece) in payload.chunks(self.chunk_size).enumerate() {
            if index > 0 {
                self.output.push(0xC0 | chunk_stream);
            }
            self.output.extend(piece);
        }
    }
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
}
