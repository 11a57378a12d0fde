//! Tag bodies, each behind a byte for its kind and a byte for its length.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use sluice_ingest::rtmp::flv::Demuxer;

fuzz_target!(|bytes: &[u8]| {
    let mut demuxer = Demuxer::new();
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
});
