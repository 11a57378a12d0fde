//! A chunk stream; it must never hold more than arrived.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use sluice_ingest::rtmp::{
    chunk::{ChunkLimits, ChunkReader},
    message::kind,
};

const LIMITS: ChunkLimits = ChunkLimits {
    chunk_streams: 16,
    command: 16 << 10,
    media: 1 << 20,
    unfinished: 2 << 20,
    reserve: 1 << 10,
};

fuzz_target!(|bytes: &[u8]| {
    let mut reader = ChunkReader::new(LIMITS);
    let mut input = BytesMut::new();
    for piece in bytes.chunks(61) {
        input.extend_from_slice(piece);
        loop {
            match reader.next(&mut input) {
                Ok(Some(message)) if message.kind == kind::SET_CHUNK_SIZE => {
                    let _ = message
                        .control_value()
                        .and_then(|size| reader.set_chunk_size(size));
                }
                Ok(Some(message)) if message.kind == kind::ABORT => {
                    reader.abort(message.control_value().unwrap_or(0));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(reader.unfinished() <= bytes.len());
    }
});
