//! AudioSpecificConfig, OpusHead, MP3 frame headers and Opus packets.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use sluice_media::codec::{AudioCodec, AudioConfig};

fuzz_target!(|data: &[u8]| {
    let record = Bytes::copy_from_slice(data);
    let configs = [
        AudioConfig::parse(AudioCodec::Aac, record.clone()),
        AudioConfig::parse(AudioCodec::Opus, record),
        AudioConfig::from_mp3_frame(data),
    ];
    for config in configs.into_iter().flatten() {
        assert!((1..=8).contains(&config.channels));
        assert!(config.sample_rate > 0 && config.samples_per_frame > 0);
        assert!(config.samples_in(data) > 0);
        assert_eq!(
            config.opus_head().is_some(),
            config.codec == AudioCodec::Opus
        );
    }
});
