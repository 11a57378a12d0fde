//! avcC, hvcC and av1C: the same bytes as each of them, and as an AV1 key frame.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use sluice_media::codec::{MAX_PIXELS_PER_SIDE, VideoCodec, VideoConfig};

fuzz_target!(|data: &[u8]| {
    let record = Bytes::copy_from_slice(data);
    for codec in [VideoCodec::Avc, VideoCodec::Hevc, VideoCodec::Av1] {
        if let Ok(config) = VideoConfig::parse(codec, record.clone()) {
            let sides = [u32::from(config.width), u32::from(config.height)];
            assert!(
                sides
                    .iter()
                    .all(|side| (1..=MAX_PIXELS_PER_SIDE).contains(side))
            );
            assert!(config.frame_rate.is_none_or(f64::is_finite));
        }
    }
    if let Ok(config) = VideoConfig::from_av1_key_frame(data) {
        assert_eq!(
            VideoConfig::parse(VideoCodec::Av1, config.record.clone()),
            Ok(config)
        );
    }
});
