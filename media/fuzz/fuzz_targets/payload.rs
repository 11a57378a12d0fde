//! Walking NAL units and OBUs; the first byte chooses codec and length size.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use sluice_media::codec::{VideoCodec, VideoConfig, check_payload};

fuzz_target!(|data: &[u8]| {
    let Some((choice, payload)) = data.split_first() else {
        return;
    };
    let (codec, nal_length_size) = match choice % 5 {
        0 => (VideoCodec::Avc, 4),
        1 => (VideoCodec::Avc, 2),
        2 => (VideoCodec::Avc, 1),
        3 => (VideoCodec::Hevc, 4),
        _ => (VideoCodec::Av1, 0),
    };
    if let Ok(facts) = check_payload(&config(codec, nal_length_size), payload) {
        assert!(facts.has_slice || !facts.has_idr);
    }
});

fn config(codec: VideoCodec, nal_length_size: u8) -> VideoConfig {
    VideoConfig {
        codec,
        record: Bytes::new(),
        width: 16,
        height: 16,
        pixel_aspect: (1, 1),
        frame_rate: None,
        nal_length_size,
        codecs: String::new(),
        profile: String::new(),
        level: String::new(),
        bit_depth: 8,
        may_reorder: None,
    }
}
