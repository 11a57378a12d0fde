//! Random and mutated bytes: decoding always returns.

use std::{path::Path, sync::OnceLock, time::Duration};

use bytes::BytesMut;
use proptest::prelude::*;
use sluice_ingest::rtmp::{
    RtmpSettings, amf0,
    chunk::{ChunkLimits, ChunkReader},
    flv::Demuxer,
    message::kind,
    session::{DecodeState, ServerSession},
};

use crate::client;

/// Feeds a session these bytes in pieces of this size, and admits every publisher; returns the number of units.
fn drive(bytes: &[u8], piece: usize) -> usize {
    let mut count = 0;
    let mut session = ServerSession::new(&RtmpSettings::default(), |buffer| buffer.fill(7));
    let mut input = BytesMut::new();
    let mut units = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        input.extend_from_slice(piece);
        session.count_received(piece.len());
        loop {
            units.clear();
            let progress = session.receive(&mut input, Duration::ZERO, &mut units);
            session.output().clear();
            count += units.len();
            match progress {
                Ok(DecodeState::Asked(_)) => session.admit(Duration::ZERO),
                Ok(DecodeState::Paused) => {}
                Ok(DecodeState::Starved) => break,
                Ok(DecodeState::Ended) | Err(_) => return count,
            }
        }
    }
    count
}

/// A publish with every kind of message, all of them right.
fn capture() -> &'static [u8] {
    static CAPTURE: OnceLock<Vec<u8>> = OnceLock::new();
    CAPTURE.get_or_init(|| {
        let aac = [&[0xAF, 0][..], &[0x11, 0x90]].concat();
        let audio = [&[0xAF, 1][..], &[0x21; 300]].concat();
        let multitrack = b"\x96\x13avc1\x00\x00\x00\x06\x00\x00\x00\x02\x41\xFF\x01\x00\x00\x06\x00\x00\x00\x02\x41\xFF";
        let mod_ex = b"\xA7\x02\x07\xA1\x20\x03avc1\x00\x00\x00\x02\x41\xFF";
        let aggregate = [9, 0, 0, 5, 0, 0, 9, 0, 0, 0, 0, 0x27, 1, 0, 0, 0, 0, 0, 0, 16];
        let mut bytes = client::opening("live", "slug.key");
        for (kind, payload) in [
            (kind::AUDIO, &aac[..]),
            (kind::AUDIO, &audio),
            (kind::VIDEO, multitrack),
            (kind::VIDEO, mod_ex),
            (kind::AGGREGATE, &aggregate),
            (kind::USER_CONTROL, &[0, 6, 0, 0, 0, 1]),
            (kind::DATA_AMF0, b"\x02\x00\x01a\x08\x00\x00\x00\x01\x00\x01b\x00\x3F\xF0\0\0\0\0\0\0\0\0\x09"),
        ] {
            bytes.extend(client::video_configuration());
            bytes.extend(client::key_frame(0x0100_0000));
            bytes.extend(client::message(6, kind, 1, 40, payload));
        }
        bytes.extend(client::delete_stream());
        bytes
    })
}

proptest! {
    #[test]
    fn sessions_survive_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..4000), piece in 1usize..2000) {
        drive(&bytes, piece);
        drive(&[client::handshake(), bytes.clone()].concat(), piece);
        drive(&[client::opening("live", "a.b"), bytes].concat(), piece);
    }

    #[test]
    fn sessions_survive_mutated_captures(
        changes in prop::collection::vec((3073usize..8000, any::<u8>()), 1..8),
        end in 3073usize..8000,
        piece in 1usize..2000,
    ) {
        let mut bytes = capture().to_vec();
        bytes.truncate(end);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        drive(&bytes, piece);
    }

    #[test]
    fn chunk_readers_hold_no_more_than_arrived(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let limits = ChunkLimits { chunk_streams: 16, command: 1 << 20, media: 1 << 20, unfinished: 1 << 20, reserve: 64 };
        let mut reader = ChunkReader::new(limits);
        let mut input = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = reader.next(&mut input) {}
        prop_assert!(reader.unfinished() <= bytes.len());
    }

    #[test]
    fn amf0_and_tags_survive(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut values = amf0::Reader::new(&bytes);
        while let Ok(Some(_)) = values.next_value() {}
        let (mut demuxer, mut units) = (Demuxer::new(), Vec::new());
        let _ = demuxer.video(0, bytes.clone().into(), &mut units);
        let _ = demuxer.audio(0, bytes.into(), &mut units);
    }
}

#[test]
fn the_capture_is_right() {
    let mut session = ServerSession::new(&RtmpSettings::default(), |buffer| buffer.fill(7));
    let mut input = BytesMut::from(capture());
    let mut units = Vec::new();
    let asked = session.receive(&mut input, Duration::ZERO, &mut units);
    assert!(matches!(asked, Ok(DecodeState::Asked(_))));
    session.admit(Duration::ZERO);
    let ended = session.receive(&mut input, Duration::ZERO, &mut units);
    assert_eq!(ended.unwrap(), DecodeState::Ended);
    let corruption = session.report().last_damage;
    assert_eq!(
        corruption.as_deref(),
        Some("only the first video track is carried")
    );
}

/// Checks captures of real encoders, truncated in the middle: each is decoded, in pieces of any size.
#[test]
fn captures_of_encoders_give_the_same_units_in_any_pieces() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/rtmp_session");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        let path = seed.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let units = drive(&bytes, bytes.len());
        assert!(units > 10, "{}: {units} units", path.display());
        for piece in [1, 7, 1000] {
            assert_eq!(drive(&bytes, piece), units, "{}", path.display());
        }
        count += 1;
    }
    assert_eq!(count, 4, "captures under fuzz/seeds/rtmp_session");
}
