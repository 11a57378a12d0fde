//! Everything a client sends, from the first byte on, in pieces.
#![no_main]

use std::time::Duration;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use sluice_ingest::rtmp::{
    RtmpSettings,
    session::{Progress, Session},
};

fuzz_target!(|bytes: &[u8]| {
    let mut session = Session::new(&RtmpSettings::default(), |buffer| buffer.fill(7));
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
                Ok(Progress::Asked(_)) => session.admit(Duration::ZERO),
                Ok(Progress::Paused) => {}
                Ok(Progress::Starved) => break,
                Ok(Progress::Ended) | Err(_) => return,
            }
        }
    }
    let _ = session.report();
});
