//! Fuzz targets of the RTMP, SRT, MPEG-TS and WebRTC parsers (see [`sluice_media::fuzzing`]).

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
    webrtc::{
        message::{self as webrtc_message, AudioFrame, VideoFrame},
        payload::{MAX_PAYLOAD, depacketized, packetize},
        publish::PublishedTracks,
    },
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
    Target::new("rtp_h264", rtp_h264),
    Target::new("rtp_h265", rtp_h265),
    Target::new("rtp_av1", rtp_av1),
    Target::new("webrtc_publisher", webrtc_publisher),
    Target::new("to_webrtc_gateway", to_webrtc_gateway),
    Target::new("from_webrtc_gateway", from_webrtc_gateway),
    #[cfg(feature = "webrtc")]
    Target::new("peer_certificate", peer_certificate),
    #[cfg(feature = "webrtc")]
    Target::new("webrtc_offer", crate::webrtc::gateway::fuzzing::offer),
    #[cfg(feature = "webrtc")]
    Target::new(
        "webrtc_datagrams",
        crate::webrtc::gateway::fuzzing::datagrams,
    ),
    #[cfg(feature = "webrtc")]
    Target::new(
        "webrtc_tcp_frames",
        crate::webrtc::gateway::fuzzing::tcp_frames,
    ),
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

fn rtp_h264(bytes: &[u8]) {
    rtp_payloads(VideoCodec::Avc, bytes);
}

fn rtp_h265(bytes: &[u8]) {
    rtp_payloads(VideoCodec::Hevc, bytes);
}

fn rtp_av1(bytes: &[u8]) {
    rtp_payloads(VideoCodec::Av1, bytes);
}

/// Makes payloads of a frame, and of what a depacketiser gave.
fn rtp_payloads(codec: VideoCodec, bytes: &[u8]) {
    let frame = |data| VideoFrame {
        of: 1,
        codec,
        key: true,
        pts_90k: 0,
        wallclock_us: 0,
        data,
    };
    if let Ok(packets) = packetize(&frame(Bytes::copy_from_slice(bytes))) {
        let is_bounded = |len: usize| (1..=MAX_PAYLOAD).contains(&len);
        assert!(
            packets
                .iter()
                .all(|packet| is_bounded(packet.payload.len()))
        );
        let sent: usize = packets.iter().map(|packet| packet.payload.len()).sum();
        assert!(sent <= 4 * bytes.len());
        let last = packets.len().wrapping_sub(1);
        assert!(
            (0..)
                .zip(&packets)
                .all(|(at, packet)| packet.marker == (at == last))
        );
    }
    if let Ok(Some(frame_of_publisher)) = depacketized(codec, bytes) {
        let packets = packetize(&frame(frame_of_publisher.data));
        assert!(packets.is_ok(), "{packets:?}");
    }
}

/// Reads the frames of a publisher, each behind a byte for its kind, one for the step of its time and one for its length.
fn webrtc_publisher(bytes: &[u8]) {
    let mut tracks = PublishedTracks::new();
    let mut units = Vec::new();
    let (mut rest, mut pts_90k) = (bytes, 0_i64);
    while let [kind, step, length, tail @ ..] = rest {
        let (data, next) = tail.split_at(tail.len().min(usize::from(*length)));
        let data = Bytes::copy_from_slice(data);
        pts_90k += i64::from(*step as i8) * 1_000;
        let codec = match kind & 3 {
            0 => Some(VideoCodec::Avc),
            1 => Some(VideoCodec::Hevc),
            2 => Some(VideoCodec::Av1),
            _ => None,
        };
        match codec {
            Some(codec) => {
                let frame = VideoFrame {
                    of: 1,
                    codec,
                    key: kind & 4 != 0,
                    pts_90k,
                    wallclock_us: 0,
                    data,
                };
                tracks.video(frame, &mut units);
            }
            None => {
                let frame = AudioFrame {
                    of: 1,
                    pts_90k,
                    wallclock_us: 0,
                    data,
                };
                tracks.audio(frame, &mut units);
            }
        }
        if kind & 0x80 != 0 {
            tracks.lost();
        }
        rest = next;
    }
    let media: u64 = units.iter().map(Unit::media_len).sum();
    assert!(media <= 2 * bytes.len() as u64);
}

/// Decodes messages to the WebRTC gateway; each round-trips through encoding.
fn to_webrtc_gateway(bytes: &[u8]) {
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(message)) = webrtc_message::ToGateway::decode(&mut input) {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        let again = webrtc_message::ToGateway::decode(&mut BytesMut::from(&encoded[..]));
        assert_eq!(again, Ok(Some(message)));
    }
}

/// Decodes messages of the WebRTC gateway; each round-trips through encoding.
fn from_webrtc_gateway(bytes: &[u8]) {
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(message)) = webrtc_message::FromGateway::decode(&mut input) {
        // Compared as bytes: a statistic may be no number.
        let (mut once, mut twice) = (Vec::new(), Vec::new());
        message.encode(&mut once);
        let again = webrtc_message::FromGateway::decode(&mut BytesMut::from(&once[..]));
        let again = again.expect("own frames are well formed");
        again.expect("the frame is whole").encode(&mut twice);
        assert_eq!(once, twice);
    }
}

/// Finds the public key of a certificate of DTLS, and checks a signature of it.
#[cfg(feature = "webrtc")]
fn peer_certificate(bytes: &[u8]) {
    use crate::webrtc::gateway::crypto::{has_signed, public_key};
    if let Ok(key) = public_key(bytes) {
        assert!(bytes.as_ptr_range().contains(&key.point.as_ptr()) || key.point.is_empty());
        assert!(key.point.len() < bytes.len());
    }
    assert!(!has_signed(bytes, b"data", b"no signature"));
}
