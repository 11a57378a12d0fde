//! Writes video frames for MPEG-TS outputs in Annex B form: delimiter, parameter sets before key frames, start codes.

use bytes::Bytes;
use sluice_media::{
    codec::{VideoCodec, VideoConfig},
    unit::VideoUnit,
};

use super::Unsupported;
use crate::ts::annex_b::{self, NalKind};

const START_CODE: [u8; 4] = [0, 0, 0, 1];
/// Access unit delimiters that allow slices of every type (H.264 §7.3.2.4, HEVC §7.3.2.5).
const AVC_DELIMITER: &[u8] = &[0x09, 0xf0];
const HEVC_DELIMITER: &[u8] = &[0x46, 0x01, 0x50];

/// Writes the frames of one configuration.
#[derive(Debug)]
pub(super) struct VideoWriter {
    codec: VideoCodec,
    length_bytes: usize,
    /// Parameter sets of the record.
    sets: Vec<Bytes>,
}

impl VideoWriter {
    pub(super) fn new(config: &VideoConfig) -> Result<Self, Unsupported> {
        if config.codec == VideoCodec::Av1 {
            return Err(Unsupported {
                what: "AV1 video",
                choose: "H.264 or HEVC at the encoder, or an RTMP address",
            });
        }
        Ok(Self {
            codec: config.codec,
            length_bytes: config.nal_length_size.into(),
            sets: config.parameter_sets(),
        })
    }

    pub(super) fn codec(&self) -> VideoCodec {
        self.codec
    }

    /// Appends a frame; `None` where its NAL units contradict their lengths or none of them has coded data.
    pub(super) fn write(&self, video_frame: &VideoUnit, out: &mut Vec<u8>) -> Option<()> {
        let delimiter = match self.codec {
            VideoCodec::Hevc => HEVC_DELIMITER,
            _ => AVC_DELIMITER,
        };
        put_nal(delimiter, out);
        if video_frame.key {
            for set in &self.sets {
                put_nal(set, out);
            }
        }
        let mut has_slice = false;
        let mut rest = &video_frame.data[..];
        while !rest.is_empty() {
            let (length, behind) = rest.split_at_checked(self.length_bytes)?;
            let length = length
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            let (nal, behind) = behind.split_at_checked(length)?;
            rest = behind;
            if nal.is_empty() {
                continue;
            }
            let kind = annex_b::kind(self.codec, nal)?;
            has_slice |= matches!(kind, NalKind::Slice | NalKind::RandomAccessSlice);
            let is_written = video_frame.key && self.holds(kind, nal);
            if kind != NalKind::Dispensable && !is_written {
                put_nal(nal, out);
            }
        }
        has_slice.then_some(())
    }

    /// Returns whether this is one of the parameter sets of the record.
    fn holds(&self, kind: NalKind, nal: &[u8]) -> bool {
        let is_set = matches!(kind, NalKind::Vps | NalKind::Sps | NalKind::Pps);
        is_set && self.sets.iter().any(|set| set == nal)
    }
}

fn put_nal(nal: &[u8], out: &mut Vec<u8>) {
    out.extend(START_CODE);
    out.extend_from_slice(nal);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video_frames(codec: VideoCodec, length_bytes: usize, record: &[u8]) -> VideoWriter {
        let config = VideoConfig {
            codec,
            record: Bytes::copy_from_slice(record),
            width: 160,
            height: 90,
            pixel_aspect: (1, 1),
            frame_rate: None,
            nal_length_size: length_bytes as u8,
            codecs: String::new(),
            profile: String::new(),
            level: String::new(),
            bit_depth: 8,
            may_reorder: None,
        };
        VideoWriter::new(&config).unwrap()
    }

    /// Two sequence and one picture parameter set, and what a High profile appends.
    const AVC: &[u8] = &[
        1, 100, 0, 40, 0xff, 0xe2, 0, 3, 0x67, 1, 2, 0, 2, 0x67, 3, 1, 0, 2, 0x68, 4, 0xfd, 0xf8,
        0xf8, 0,
    ];

    fn hevc() -> Vec<u8> {
        let mut record = vec![0; 22];
        record.push(4);
        for (header, body) in [(0x40, 1), (0x42, 2), (0x44, 3), (0x4e, 4)] {
            record.extend([header >> 1, 0, 1, 0, 3, header, 1, body]);
        }
        record
    }

    fn written(video_frames: &VideoWriter, key: bool, data: &'static [u8]) -> Option<Vec<u8>> {
        let video_frame = VideoUnit {
            dts_90k: 0,
            cts_90k: 0,
            key,
            data: Bytes::from_static(data),
        };
        let mut out = Vec::new();
        video_frames.write(&video_frame, &mut out).map(|()| out)
    }

    fn annex_b(nal_units: &[&[u8]]) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for nal in nal_units {
            put_nal(nal, &mut bytes);
        }
        Some(bytes)
    }

    #[test]
    fn key_frames_bring_their_parameter_sets_once() {
        let avc = video_frames(VideoCodec::Avc, 4, AVC);
        let sets: [&[u8]; 3] = [&[0x67, 1, 2], &[0x67, 3], &[0x68, 4]];
        let key = [&[AVC_DELIMITER], &sets[..], &[&[0x65, 9]]].concat();
        // A delimiter and a set of the record are in the frame too.
        let data = b"\0\0\0\x02\x09\x10\0\0\0\x02\x68\x04\0\0\0\x02\x65\x09";
        assert_eq!(written(&avc, true, data), annex_b(&key));
        let other_set = b"\0\0\0\x02\x68\x05\0\0\0\x02\x65\x09";
        let expected = [&[AVC_DELIMITER], &sets[..], &[&[0x68, 5], &[0x65, 9]]].concat();
        assert_eq!(written(&avc, true, other_set), annex_b(&expected));
        let plain = annex_b(&[AVC_DELIMITER, &[0x41, 9]]);
        assert_eq!(written(&avc, false, b"\0\0\0\x02\x41\x09"), plain);

        let hevc = video_frames(VideoCodec::Hevc, 1, &hevc());
        let key: [&[u8]; 5] = [
            HEVC_DELIMITER,
            &[0x40, 1, 1],
            &[0x42, 1, 2],
            &[0x44, 1, 3],
            &[0x26, 1, 7],
        ];
        assert_eq!(written(&hevc, true, b"\x03\x26\x01\x07"), annex_b(&key));
    }

    #[test]
    fn frames_that_are_none_are_left_out() {
        let avc = video_frames(VideoCodec::Avc, 4, AVC);
        for data in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\x03\x41\x09",         // longer than the frame
            b"\0\0\0\x02\x06\x01",         // a message alone
            b"\0\0\0\x02\xc1\x09",         // the forbidden bit
            b"\0\0\0\x02\x41\x09\xff\xff", // half a length behind
        ] {
            assert_eq!(written(&avc, false, data), None, "{data:02x?}");
        }
    }

    #[test]
    fn damaged_records_are_read_as_far_as_they_go() {
        for (codec, record) in [(VideoCodec::Avc, AVC), (VideoCodec::Hevc, &hevc())] {
            let whole = video_frames(codec, 4, record).sets.len();
            assert_eq!(whole, 3, "{codec:?}");
            for cut in 0..record.len() {
                assert!(video_frames(codec, 4, &record[..cut]).sets.len() <= whole);
            }
        }
    }
}
