//! Converts frames of an input for the gateway: lengths of 4 bytes, parameter sets at the beginning of each key frame.
//!
//! Pure.

use bytes::{BufMut as _, Bytes, BytesMut};
use sluice_media::{
    codec::{VideoCodec, VideoConfig, check_payload},
    unit::VideoUnit,
};

/// Bytes of `av1C` before its units (AV1-ISOBMFF §2.3).
const AV1C_HEADER: usize = 4;

/// Returns the data of a frame; `None` where its NAL units contradict their lengths.
pub(super) fn frame_data(config: &VideoConfig, frame: &VideoUnit) -> Option<Bytes> {
    match config.codec {
        VideoCodec::Av1 => av1_data(config, frame),
        VideoCodec::Avc | VideoCodec::Hevc if !frame.key && config.nal_length_size == 4 => {
            check_payload(config, &frame.data).ok()?;
            Some(frame.data.clone())
        }
        VideoCodec::Avc | VideoCodec::Hevc => nal_data(config, frame),
    }
}

fn av1_data(config: &VideoConfig, frame: &VideoUnit) -> Option<Bytes> {
    let facts = check_payload(config, &frame.data).ok()?;
    let units = config.record.get(AV1C_HEADER..).unwrap_or_default();
    if !frame.key || facts.has_parameter_sets || units.is_empty() {
        return Some(frame.data.clone());
    }
    Some([units, &frame.data].concat().into())
}

fn nal_data(config: &VideoConfig, frame: &VideoUnit) -> Option<Bytes> {
    let sets = match frame.key {
        true => config.parameter_sets(),
        false => Vec::new(),
    };
    let mut data = BytesMut::with_capacity(frame.data.len() + 512);
    for set in &sets {
        put_nal(set, &mut data);
    }
    let mut rest = &frame.data[..];
    while !rest.is_empty() {
        let (length, behind) = rest.split_at_checked(config.nal_length_size.into())?;
        let length = length
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (nal, behind) = behind.split_at_checked(length)?;
        rest = behind;
        if !nal.is_empty() && !sets.iter().any(|set| set == nal) {
            put_nal(nal, &mut data);
        }
    }
    (!data.is_empty()).then(|| data.freeze())
}

fn put_nal(nal: &[u8], data: &mut BytesMut) {
    data.put_u32(nal.len() as u32);
    data.put_slice(nal);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration with one sequence and one picture parameter set.
    const AVC: &[u8] = &[1, 66, 0, 40, 0xff, 0xe1, 0, 3, 0x67, 1, 2, 1, 0, 2, 0x68, 4];

    fn config(codec: VideoCodec, record: &'static [u8], nal_length_size: u8) -> VideoConfig {
        VideoConfig {
            codec,
            record: Bytes::from_static(record),
            width: 160,
            height: 90,
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

    fn data(config: &VideoConfig, key: bool, data: &'static [u8]) -> Option<Vec<u8>> {
        let frame = VideoUnit {
            dts_90k: 0,
            cts_90k: 0,
            key,
            data: Bytes::from_static(data),
        };
        frame_data(config, &frame).map(|data| data.to_vec())
    }

    #[test]
    fn key_frames_begin_with_their_parameter_sets() {
        let avc = config(VideoCodec::Avc, AVC, 4);
        let key = b"\0\0\0\x03\x67\x01\x02\0\0\0\x02\x68\x04\0\0\0\x02\x65\x09";
        assert_eq!(data(&avc, true, b"\0\0\0\x02\x65\x09").unwrap(), key);
        // Sets that are in the frame too are sent once.
        assert_eq!(data(&avc, true, key).unwrap(), key);
        let other = b"\0\0\0\x02\x41\x09";
        assert_eq!(data(&avc, false, other).unwrap(), other);
        assert_eq!(data(&avc, false, b"\0\0\0\x03\x41\x09"), None);
    }

    #[test]
    fn lengths_get_four_bytes() {
        let avc = config(VideoCodec::Avc, AVC, 2);
        let frame = data(&avc, false, b"\0\x02\x41\x09\0\x02\x41\x0a");
        assert_eq!(frame.unwrap(), b"\0\0\0\x02\x41\x09\0\0\0\x02\x41\x0a");
        assert_eq!(data(&avc, false, b"\0\x03\x41\x09"), None);
    }

    #[test]
    fn av1_key_frames_have_a_sequence_header() {
        // A sequence header of one byte in the record; frames of one byte.
        let av1 = config(VideoCodec::Av1, &[0x81, 0, 0, 0, 0x0a, 1, 7], 0);
        let frame = b"\x32\x01\x10";
        assert_eq!(
            data(&av1, true, frame).unwrap(),
            b"\x0a\x01\x07\x32\x01\x10"
        );
        assert_eq!(data(&av1, false, frame).unwrap(), frame);
        let whole = b"\x0a\x01\x07\x32\x01\x10";
        assert_eq!(data(&av1, true, whole).unwrap(), whole);
    }
}
