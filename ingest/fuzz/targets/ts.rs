//! A transport stream, in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sluice_ingest::ts::{Demuxer, Limits};
use sluice_media::unit::Unit;

fuzz_target!(|bytes: &[u8]| {
    let mut demuxer = Demuxer::new(Limits { pes_bytes: 4096 });
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
            Unit::Video(picture) => picture.data.len(),
            Unit::Audio(frame) => frame.data.len(),
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => 0,
        })
        .sum();
    assert!(media <= bytes.len() * 2, "media is made of what came");
});
