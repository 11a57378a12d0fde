//! H.264 and HEVC sequence parameter sets behind a record that is right, so that every input reaches the bit reader.

#![no_main]

use bytes::{BufMut, Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use sluice_media::codec::{VideoCodec, VideoConfig};

const AVC_FIXED: [u8; 6] = [1, 0x64, 0, 0x28, 0xff, 0xe1];
const HEVC_FIXED_BYTES: usize = 21;
const HEVC_NAL_TYPES: [u8; 3] = [32, 33, 34];

fuzz_target!(|data: &[u8]| {
    let Ok(length) = u16::try_from(data.len()) else {
        return;
    };
    let _ = VideoConfig::parse(VideoCodec::Avc, avc_record(data, length));
    let _ = VideoConfig::parse(VideoCodec::Hevc, hevc_record(data, length));
});

fn avc_record(sps: &[u8], length: u16) -> Bytes {
    let mut record = BytesMut::new();
    record.put_slice(&AVC_FIXED);
    record.put_u16(length);
    record.put_slice(sps);
    record.put_slice(&[1, 0, 1, 0x68]);
    record.freeze()
}

fn hevc_record(sps: &[u8], length: u16) -> Bytes {
    let mut record = BytesMut::new();
    record.put_u8(1);
    record.put_bytes(0, HEVC_FIXED_BYTES - 1);
    record.put_u8(0x0f);
    record.put_u8(HEVC_NAL_TYPES.len() as u8);
    for nal_type in HEVC_NAL_TYPES {
        record.put_u8(nal_type);
        record.put_u16(1);
        if nal_type == 33 {
            record.put_u16(length);
            record.put_slice(sps);
        } else {
            record.put_u16(0);
        }
    }
    record.freeze()
}
