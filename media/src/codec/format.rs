//! Sample format of a video: chroma subsampling, bits per sample, interlacing; what browsers' decoders of WebRTC ask for.

/// Chroma samples of a frame, relative to its luma samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chroma {
    Monochrome,
    /// 4:2:0, which every decoder reads.
    Yuv420,
    /// 4:2:2
    Yuv422,
    /// 4:4:4, RGB among it.
    Yuv444,
}

impl Chroma {
    /// `chroma_format_idc` of H.264 and HEVC.
    pub(super) fn of_idc(idc: u32) -> Self {
        match idc {
            0 => Self::Monochrome,
            1 => Self::Yuv420,
            2 => Self::Yuv422,
            _ => Self::Yuv444,
        }
    }
}

/// Format of a video's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleFormat {
    pub chroma: Chroma,
    /// Bits per luma or chroma sample, whichever has more.
    pub bit_depth: u8,
    /// True when frames may be coded as fields.
    pub is_interlaced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{
        VideoCodec, VideoConfig,
        test_bytes::{AV1_AOM, AVC_HIGH, HEVC_MAIN, hex},
    };

    #[test]
    fn formats_of_what_encoders_send() {
        use Chroma::{Yuv420, Yuv422, Yuv444};
        use VideoCodec::{Av1, Avc, Hevc};
        for (codec, record, chroma, bit_depth, is_interlaced) in [
            (Avc, AVC_HIGH, Yuv420, 8, false),
            (
                Avc, // constrained baseline
                "0142c01effe100176742c01eda0280bfe5c04400000fa40003a9803c58ba8001000468ce0fc8",
                Yuv420,
                8,
                false,
            ),
            (
                Avc, // high 10
                "016e0020ffe1001a676e0020a6cd9405005bb011000003000100000300640f18319601000468ef8fcbfdfafa00",
                Yuv420,
                10,
                false,
            ),
            (
                Avc, // high 4:2:2
                "017a001effe1001d677a001ebcb405a0937fe0020001e2000003000200000300651e2c5d4001000468ef0fcbfef8f800",
                Yuv422,
                8,
                false,
            ),
            (
                Avc, // high 4:4:4
                "01f4000dffe1001b67f4000d919b282a33c7c5e022000003000200000300641e28532c01000668ef8f192190fff8f800",
                Yuv444,
                8,
                false,
            ),
            (
                Avc, // high, interlaced
                "01640028ffe1001a67640028acd94078044fde0220000003002000000643e2c5b2c001000468fe8fcbfdf8f800",
                Yuv420,
                8,
                true,
            ),
            (Hevc, HEVC_MAIN, Yuv420, 8, false),
            (
                Hevc, // Main 10
                "01022000000090000000000078f000fcfdfafa00000f03a00001001840010c01ffff022000000300900000030000030078ba0240\
                 a10001002d420101022000000300900000030000030078a00288802e1c444365ba4a4c2f016808000003000800000301e040a200\
                 0100064401c073c189",
                Yuv420,
                10,
                false,
            ),
            (Av1, AV1_AOM, Yuv420, 8, false),
            (
                Av1, // SVT-AV1
                "81054c000a0c0200002d2a67fd9e017c2020",
                Yuv420,
                10,
                false,
            ),
        ] {
            let config = VideoConfig::parse(codec, hex(record)).unwrap();
            let expected = SampleFormat {
                chroma,
                bit_depth,
                is_interlaced,
            };
            assert_eq!(config.sample_format(), Some(expected), "{record}");
        }
    }

    #[test]
    fn a_corrupt_record_has_no_format() {
        for (codec, record) in [
            (VideoCodec::Avc, AVC_HIGH),
            (VideoCodec::Hevc, HEVC_MAIN),
            (VideoCodec::Av1, AV1_AOM),
        ] {
            let mut config = VideoConfig::parse(codec, hex(record)).unwrap();
            config.record = config.record.slice(..2);
            assert_eq!(config.sample_format(), None, "{codec:?}");
        }
    }
}
