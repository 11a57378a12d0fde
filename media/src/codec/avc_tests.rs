//! H.264 records as encoders write them, and as none should.

use super::*;
use crate::codec::test_bytes::{AVC_HIGH, BitWriter, hex};

#[test]
fn explains_what_encoders_send() {
    let ntsc = 30_000.0 / 1001.0;
    for (record, size, aspect, rate, codecs, profile, level, depth, may_reorder) in [
        (
            AVC_HIGH,
            (1920, 1080),
            (1, 1),
            30.0,
            "avc1.640028",
            "High",
            "4.0",
            8,
            Some(true),
        ),
        (
            "0142c01effe100176742c01eda0280bfe5c04400000fa40003a9803c58ba8001000468ce0fc8",
            (640, 360),
            (1, 1),
            ntsc,
            "avc1.42c01e",
            "Constrained Baseline",
            "3.0",
            8,
            Some(false),
        ),
        (
            "016e0020ffe1001a676e0020a6cd9405005bb011000003000100000300640f18319601000468ef8fcbfdfafa00",
            (1280, 720),
            (1, 1),
            50.0,
            "avc1.6e0020",
            "High 10",
            "3.2",
            10,
            Some(true),
        ),
        (
            "017a001effe1001d677a001ebcb405a0937fe0020001e2000003000200000300651e2c5d4001000468ef0fcbfef8f800",
            (720, 576),
            (16, 15),
            25.0,
            "avc1.7a001e",
            "High 4:2:2",
            "3.0",
            8,
            Some(false),
        ),
        (
            "01f4000dffe1001b67f4000d919b282a33c7c5e022000003000200000300641e28532c01000668ef8f192190fff8f800",
            (322, 182),
            (1, 1),
            25.0,
            "avc1.f4000d",
            "High 4:4:4 Predictive",
            "1.3",
            8,
            Some(true),
        ),
        (
            "01640028ffe1001a67640028acd94078044fde0220000003002000000643e2c5b2c001000468fe8fcbfdf8f800",
            (1920, 1080),
            (1, 1),
            25.0,
            "avc1.640028",
            "High",
            "4.0",
            8,
            Some(true), // interlaced
        ),
    ] {
        let config = parse(hex(record)).unwrap_or_else(|error| panic!("{record}: {error}"));
        assert_eq!((config.width, config.height), size, "{record}");
        assert_eq!(config.pixel_aspect, aspect, "{record}");
        assert_eq!(config.frame_rate, Some(rate), "{record}");
        assert_eq!(
            (
                config.codecs.as_str(),
                config.profile.as_str(),
                config.level.as_str()
            ),
            (codecs, profile, level)
        );
        assert_eq!(
            (config.bit_depth, config.may_reorder, config.nal_length_size),
            (depth, may_reorder, 4),
            "{record}"
        );
    }
}

#[test]
fn agrees_with_an_independent_reader() {
    use h264_reader::{nal::sps::SeqParameterSet, rbsp};
    let (_, nal) = {
        let record: &'static [u8] = hex(AVC_HIGH).to_vec().leak();
        read_record(record).unwrap()
    };
    let plain = rbsp::decode_nal(nal).unwrap();
    let theirs = SeqParameterSet::from_bits(rbsp::BitReader::new(&plain[..])).unwrap();
    let ours = Sps::parse(nal).unwrap();
    assert_eq!(
        theirs.pixel_dimensions().unwrap(),
        (u32::from(ours.width), u32::from(ours.height))
    );
    assert_eq!(theirs.fps(), vui::frame_rate(ours.vui.clock, 2));
    assert_eq!(theirs.rfc6381().to_string().to_lowercase(), "avc1.640028");
}

#[test]
fn levels_and_profiles_by_name() {
    for (profile_idc, constraints, level_idc, profile, level) in [
        (66, 0, 30, "Baseline", "3.0"),
        (66, 0b0101_0000, 11, "Constrained Baseline", "1b"),
        (77, 0b0001_0000, 11, "Main", "1b"),
        (100, 0b0001_0000, 11, "High", "1.1"),
        (100, 0b0000_1100, 9, "Constrained High", "1b"),
        (110, 0b0001_0000, 52, "High 10 Intra", "5.2"),
        (118, 0, 40, "profile 118", "4.0"),
    ] {
        let (width, height) = (16, 16);
        let sps = Sps {
            profile_idc,
            constraints,
            level_idc,
            chroma: Chroma {
                format: 1,
                separate_planes: false,
                bit_depth: 8,
                chroma_bit_depth: 8,
            },
            width,
            height,
            frames_only: true,
            vui: Vui::default(),
        };
        assert_eq!(
            (sps.profile_name().as_str(), sps.level_name().as_str()),
            (profile, level)
        );
    }
}

/// Builds a High profile parameter set with the given size fields; `rest` writes the remaining fields.
fn sps(
    width_mbs_minus1: u32,
    height_minus1: u32,
    crop: Option<[u32; 4]>,
    rest: impl FnOnce(&mut BitWriter),
) -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.put(8, 100).put(8, 0).put(8, 40).ue(0);
    bits.ue(1).ue(0).ue(0).put(2, 0); // 4:2:0, 8 bit, no scaling
    bits.ue(0).ue(2).ue(1).put(1, 0);
    bits.ue(width_mbs_minus1).ue(height_minus1).put(2, 0b11);
    match crop {
        Some(crop) => crop
            .iter()
            .fold(bits.put(1, 1), |bits, side| bits.ue(*side)),
        None => bits.put(1, 0),
    };
    rest(&mut bits);
    bits.nal(&[0x67])
}

fn size_of(nal: &[u8]) -> Option<(u16, u16)> {
    Sps::parse(nal).ok().map(|sps| (sps.width, sps.height))
}

#[test]
fn sizes_are_bounded() {
    for (across, down, crop, expected) in [
        (0, 0, None, Some((16, 16))),
        (1023, 1023, None, Some((16_384, 16_384))),
        (1024, 0, None, None),
        (4095, 4095, None, None), // 65 536 × 65 536
        (u32::MAX - 1, u32::MAX - 1, None, None),
        (119, 67, Some([0, 0, 0, 4]), Some((1920, 1080))),
        (0, 0, Some([4, 3, 0, 0]), Some((2, 16))),
        (0, 0, Some([4, 4, 0, 0]), None), // nothing left
        (0, 0, Some([0, 0, u32::MAX - 1, u32::MAX - 1]), None), // no overflow
    ] {
        assert_eq!(
            size_of(&sps(across, down, crop, |bits| _ = bits.put(1, 0))),
            expected,
            "{across}×{down} {crop:?}"
        );
    }
}

#[test]
fn a_damaged_vui_leaves_the_size() {
    let whole = sps(119, 67, None, |bits| {
        bits.put(1, 1)
            .put(4, 0)
            .put(1, 1)
            .put(32, 1)
            .put(32, 120)
            .put(1, 1);
        bits.put(1, 1).ue(4000); // an HRD with 4001 buffers
    });
    let sps = Sps::parse(&whole).unwrap();
    assert_eq!((sps.width, sps.height), (1920, 1088));
    assert_eq!(vui::frame_rate(sps.vui.clock, 2), Some(60.0));
    assert_eq!(sps.may_reorder(), None);
}

#[test]
fn scaling_lists_are_stepped_over() {
    let mut bits = BitWriter::default();
    bits.put(8, 100).put(8, 0).put(8, 40).ue(0);
    bits.ue(1).ue(0).ue(0).put(1, 0).put(1, 1);
    bits.put(1, 1); // list 0: sixteen times "no change"
    (0..16).for_each(|_| _ = bits.ue(0));
    bits.put(1, 1).ue(16).put(6, 0); // list 1: −8 gives 0, which ends it; the other six absent
    bits.ue(0)
        .ue(0)
        .ue(0)
        .ue(1)
        .put(1, 0)
        .ue(9)
        .ue(9)
        .put(2, 0b11)
        .put(1, 0)
        .put(1, 0);
    assert_eq!(size_of(&bits.nal(&[0x67])), Some((160, 160)));
}

#[test]
fn parameter_sets_with_absurd_counts_are_refused() {
    let start = |id: u32| {
        let mut bits = BitWriter::default();
        bits.put(8, 66).put(8, 0).put(8, 30).ue(id);
        bits
    };
    let cases = [
        start(32).nal(&[0x67]),            // id
        start(0).ue(13).nal(&[0x67]),      // frame number bits
        start(0).ue(0).ue(3).nal(&[0x67]), // frame order type
        start(0)
            .ue(0)
            .ue(1)
            .put(1, 0)
            .ue(0)
            .ue(0)
            .ue(256)
            .nal(&[0x67]), // reference cycle
        start(0).ue(0).ue(2).ue(17).nal(&[0x67]), // reference frames
        start(0).put(40, 0).nal(&[0x67]),  // endless Exp-Golomb
        start(0).nal(&[0x68]),             // not a sequence parameter set
        vec![],
        vec![0x67],
    ];
    for (index, nal) in cases.iter().enumerate() {
        assert!(Sps::parse(nal).is_err(), "case {index}");
    }
}

#[test]
fn every_truncation_of_a_record_is_an_error() {
    // The last four bytes are the optional chroma fields of High profiles.
    let record = hex(AVC_HIGH);
    for length in 0..record.len() - 4 {
        assert!(parse(record.slice(..length)).is_err(), "{length} bytes");
    }
}

#[test]
fn records_that_contradict_themselves_are_refused() {
    for record in [
        "00640028ffe1001b67640028acd940780227e5c044000003000400000300f03c60c65801000468ef8fcb", // version
        "01640028fee1001b67640028acd940780227e5c044000003000400000300f03c60c65801000468ef8fcb", // 3-byte lengths
        "01640028ffe001000468ef8fcb", // no SPS
        "01640028ffe1001b67640028acd940780227e5c044000003000400000300f03c60c65800", // no PPS
        "01640028ffe10000 01000468ef8fcb", // empty SPS
        "01640028ffffffff67640028",   // 65 535 bytes of SPS
    ] {
        assert!(parse(hex(record)).is_err(), "{record}");
    }
}
