//! Fuzz targets of the RTMP, SRT and MPEG-TS parsers (see [`sluice_media::fuzzing`]).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use sluice_media::{codec::VideoCodec, fuzzing::Target, unit::Unit};

use crate::{
    rtmp::{
        RtmpSettings, amf0,
        chunk::{ChunkLimits, ChunkReader},
        flv,
        message::kind,
        session::{DecodeState, ServerSession},
    },
    srt::{
        message::{FromGateway, ToGateway},
        stream_id::StreamId,
    },
    ts::{self, annex_b},
};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    Target::new("amf0", amf0_values),
    Target::new("rtmp_chunk", rtmp_chunks),
    Target::new("flv", flv_tags),
    Target::new("rtmp_session", rtmp_session),
    Target::new("mpeg_ts", mpeg_ts),
    Target::new("annex_b", nal_units),
    Target::new("to_gateway", to_gateway),
    Target::new("from_gateway", from_gateway),
    Target::new("srt_stream_id", srt_stream_id),
];

/// Reads the payload of a command.
fn amf0_values(bytes: &[u8]) {
    let mut values = amf0::Reader::new(bytes);
    while let Ok(Some(_)) = values.next_value() {}
}

/// Reads a chunk stream, which must never hold more than arrived.
fn rtmp_chunks(bytes: &[u8]) {
    let mut reader = ChunkReader::new(ChunkLimits {
        chunk_streams: 16,
        command: 16 << 10,
        media: 1 << 20,
        unfinished: 2 << 20,
        reserve: 1 << 10,
    });
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
}

/// Reads tag bodies, each behind a byte for its kind and a byte for its length.
fn flv_tags(bytes: &[u8]) {
    let mut demuxer = flv::Demuxer::new();
    let mut units = Vec::new();
    let mut rest = bytes;
    while let [kind, length, tail @ ..] = rest {
        let (body, next) = tail.split_at(tail.len().min(usize::from(*length)));
        let body = Bytes::copy_from_slice(body);
        let _ = match kind % 2 {
            0 => demuxer.video(0, body, &mut units),
            _ => demuxer.audio(0, body, &mut units),
        };
        rest = next;
    }
}

/// Reads everything that an encoder sends, from the first byte on, in pieces.
fn rtmp_session(bytes: &[u8]) {
    let mut session = ServerSession::new(&RtmpSettings::default(), |buffer| buffer.fill(7));
    let mut input = BytesMut::new();
    let mut units = Vec::new();
    for piece in bytes.chunks(1009) {
        input.extend_from_slice(piece);
        session.count_received(piece.len());
        loop {
            units.clear();
            let progress = session.receive(&mut input, Duration::ZERO, &mut units);
            assert!(units.len() <= 2 * 256, "a turn is bounded");
            session.output().clear();
            match progress {
                Ok(DecodeState::Asked(_)) => session.admit(Duration::ZERO),
                Ok(DecodeState::Paused) => {}
                Ok(DecodeState::Starved) => break,
                Ok(DecodeState::Ended) | Err(_) => return,
            }
        }
    }
    let _ = session.report();
}

/// Reads a transport stream in pieces; its media cannot exceed the input.
fn mpeg_ts(bytes: &[u8]) {
    let mut demuxer = ts::Demuxer::new(ts::Limits { pes_bytes: 4096 });
    let mut units = Vec::new();
    for (number, piece) in bytes.chunks(1009).enumerate() {
        demuxer.push(piece, &mut units);
        if number % 7 == 6 {
            demuxer.skipped();
        }
    }
    demuxer.flush(&mut units);
    let media: usize = units
        .iter()
        .map(|unit| match unit {
            Unit::Video(frame) => frame.data.len(),
            Unit::Audio(frame) => frame.data.len(),
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => 0,
        })
        .sum();
    assert!(media <= bytes.len() * 2);
}

/// Finds NAL units, which lie apart and in order.
fn nal_units(bytes: &[u8]) {
    let mut end = 0;
    for range in annex_b::nal_units(bytes) {
        assert!(range.start >= end && range.end <= bytes.len());
        end = range.end;
        let nal = &bytes[range];
        for codec in [VideoCodec::Avc, VideoCodec::Hevc] {
            let _ = annex_b::kind(codec, nal);
        }
    }
}

/// Decodes messages to the SRT gateway; each round-trips through encoding.
fn to_gateway(bytes: &[u8]) {
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(message)) = ToGateway::decode(&mut input) {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        let again = ToGateway::decode(&mut BytesMut::from(&encoded[..]));
        assert_eq!(again, Ok(Some(message)));
    }
}

/// Decodes messages of the SRT gateway; each round-trips through encoding.
fn from_gateway(bytes: &[u8]) {
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(message)) = FromGateway::decode(&mut input) {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        let mut encoded = BytesMut::from(&encoded[..]);
        let again = FromGateway::decode(&mut encoded).expect("own frames are well formed");
        let mut twice = Vec::new();
        again.expect("the frame is whole").encode(&mut twice);
        let mut once = Vec::new();
        message.encode(&mut once);
        assert_eq!(once, twice);
    }
}

/// Reads the stream id of an SRT caller.
fn srt_stream_id(bytes: &[u8]) {
    if let Ok(id) = StreamId::parse(bytes) {
        assert!(id.stream_name().len() <= 3 * bytes.len() + 1);
    }
}
