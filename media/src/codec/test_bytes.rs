//! Records that encoders wrote, and a writer for those that none should write. Made by ffmpeg 9.0 (libx264, libx265,
//! libkvazaar, libaom, libsvtav1) from `testsrc2`; the HEVC records are without their SEI array.

use bytes::Bytes;

use super::{VideoCodec, VideoConfig};

pub(super) const AVC_HIGH: &str =
    "01640028ffe1001b67640028acd940780227e5c044000003000400000300f03c60c65801000468ef8fcbfdf8f800";
pub(super) const HEVC_MAIN: &str = "01016000000090000000000078f000fcfdf8f800000f03a00001001840010c01ffff01600000030090\
    0000030000030078959409a10001002b420101016000000300900000030000030078a003c0801107cb965654a4c2f0168080000003008000\
    000f04a2000100064401c073c189";
pub(super) const AV1_AOM: &str = "81010c000a0b0000000cc4ff6736be4010";

/// Bytes of hexadecimal text; blanks are for the reader.
pub(super) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    assert!(
        digits.len().is_multiple_of(2),
        "odd number of digits in {text}"
    );
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

pub(super) fn avc() -> VideoConfig {
    VideoConfig::parse(VideoCodec::Avc, hex(AVC_HIGH)).unwrap()
}

pub(super) fn hevc() -> VideoConfig {
    VideoConfig::parse(VideoCodec::Hevc, hex(HEVC_MAIN)).unwrap()
}

pub(super) fn av1() -> VideoConfig {
    VideoConfig::parse(VideoCodec::Av1, hex(AV1_AOM)).unwrap()
}

/// Writes what `BitReader` reads.
#[derive(Clone, Debug, Default)]
pub(super) struct BitWriter {
    bits: Vec<bool>,
}

impl BitWriter {
    pub(super) fn put(&mut self, count: u32, value: u64) -> &mut Self {
        self.bits
            .extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
        self
    }

    pub(super) fn ue(&mut self, value: u32) -> &mut Self {
        let code = u64::from(value) + 1;
        let length = 64 - code.leading_zeros();
        self.put(length - 1, 0).put(length, code)
    }

    /// The bytes, with a stop bit and escape bytes, behind a NAL unit header.
    pub(super) fn nal(&self, header: &[u8]) -> Vec<u8> {
        let mut nal = header.to_vec();
        let mut zeros = 0;
        for byte in self.bytes() {
            if zeros >= 2 && byte <= 3 {
                nal.push(3);
                zeros = 0;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            nal.push(byte);
        }
        nal
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bits = self.bits.clone();
        bits.push(true);
        bits.chunks(8)
            .map(|chunk| {
                chunk
                    .iter()
                    .enumerate()
                    .fold(0, |byte, (index, bit)| byte | u8::from(*bit) << (7 - index))
            })
            .collect()
    }
}
