//! A parser answers any bytes; it never panics.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::codec::test_bytes::{self, AV1_AOM, AVC_HIGH, HEVC_MAIN, hex};

const VIDEO: [(VideoCodec, &str); 3] = [
    (VideoCodec::Avc, AVC_HIGH),
    (VideoCodec::Hevc, HEVC_MAIN),
    (VideoCodec::Av1, AV1_AOM),
];

fn parse_as_everything(data: &[u8]) {
    let record = Bytes::copy_from_slice(data);
    for (codec, _) in VIDEO {
        if let Ok(config) = VideoConfig::parse(codec, record.clone()) {
            assert!((1..=MAX_PIXELS_PER_SIDE).contains(&u32::from(config.width)));
            assert!((1..=MAX_PIXELS_PER_SIDE).contains(&u32::from(config.height)));
            assert!(config.sample_format().is_some());
        }
    }
    for codec in [AudioCodec::Aac, AudioCodec::Opus, AudioCodec::Mp3] {
        if let Ok(config) = AudioConfig::parse(codec, record.clone()) {
            assert!((1..=8).contains(&config.channels) && config.sample_rate > 0);
            config.samples_in(data);
            config.opus_head();
        }
    }
    let _ = VideoConfig::from_av1_key_frame(data);
    let _ = AudioConfig::from_mp3_frame(data);
    for config in [test_bytes::avc(), test_bytes::hevc(), test_bytes::av1()] {
        let _ = check_payload(&config, data);
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        parse_as_everything(&data);
    }

    #[test]
    fn damaged_records_never_panic(
        which in 0..VIDEO.len(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut record = hex(VIDEO[which].1).to_vec();
        for (at, value) in damage {
            let at = at.index(record.len());
            record[at] = value;
        }
        parse_as_everything(&record);
        parse_as_everything(&record[..keep.index(record.len())]);
    }
}

#[test]
fn records_of_absurd_length_are_refused() {
    for (codec, record) in VIDEO {
        let mut record = hex(record).to_vec();
        record.resize(MAX_VIDEO_RECORD_BYTES + 1, 0);
        assert!(VideoConfig::parse(codec, record.into()).is_err());
    }
}
