//! HEVC records as encoders write them, and as none should.

use super::*;
use crate::codec::test_bytes::{BitWriter, HEVC_MAIN, hex};

#[test]
fn explains_what_encoders_send() {
    for (record, size, rate, codecs, profile, level, depth, may_reorder) in [
        (
            HEVC_MAIN,
            (1920, 1080),
            30.0,
            "hvc1.1.6.L120.90",
            "Main",
            "4.0",
            8,
            Some(true),
        ),
        (
            "01022000000090000000000078f000fcfdfafa00000f03a00001001840010c01ffff022000000300900000030000030078ba0240\
             a10001002d420101022000000300900000030000030078a00288802e1c444365ba4a4c2f016808000003000800000301e040a200\
             0100064401c073c189",
            (1282, 722),
            60.0,
            "hvc1.2.4.L120.90",
            "Main 10",
            "4.0",
            10,
            Some(false),
        ),
        (
            "010160000000800000000000baf000fcfdf8f800001303a00001001b40010c02ffff0160000003008000000300000300ba000004\
             021024a10001002b4201020160000003008000000300000300ba0000a0050201696c100864932ac04040000003004000000642a2\
             000100084401c062460a6480",
            (640, 360),
            25.0,
            "hvc1.1.6.L186.80",
            "Main",
            "6.2",
            8,
            Some(true),
        ),
    ] {
        let config = parse(hex(record)).unwrap_or_else(|error| panic!("{record}: {error}"));
        assert_eq!((config.width, config.height), size, "{record}");
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
fn codecs_strings_follow_the_annex() {
    for (space, high_tier, profile_idc, compatibility, constraints, level_idc, expected) in [
        (
            0,
            false,
            1,
            0x6000_0000,
            [0xb0, 0, 0, 0, 0, 0],
            93,
            "hvc1.1.6.L93.B0",
        ),
        (
            0,
            true,
            2,
            0x2000_0000,
            [0x90, 0, 0, 0, 0, 0],
            153,
            "hvc1.2.4.H153.90",
        ),
        (
            1,
            false,
            4,
            0x0800_0000,
            [0x9d, 0x08, 0, 0, 0, 0],
            120,
            "hvc1.A4.10.L120.9D.8",
        ),
        (0, false, 1, 0x6000_0000, [0; 6], 60, "hvc1.1.6.L60"),
        (
            3,
            false,
            4,
            1,
            [0, 1, 0, 0, 0, 2],
            30,
            "hvc1.C4.80000000.L30.0.1.0.0.0.2",
        ),
    ] {
        let tier_level = ProfileTierLevel {
            space,
            high_tier,
            profile_idc,
            compatibility,
            constraints,
            level_idc,
        };
        assert_eq!(tier_level.codecs(), expected);
    }
}

/// A Main profile parameter set with two sub-layers, up to the reorder depth.
fn sps(width: u32, height: u32, window: Option<[u32; 4]>) -> BitWriter {
    let mut bits = BitWriter::default();
    bits.put(4, 0).put(3, 1).put(1, 1);
    bits.put(8, 1)
        .put(32, 0x6000_0000)
        .put(48, 0x9000_0000_0000)
        .put(8, 93);
    bits.put(2, 0b11)
        .put(14, 0)
        .put(44, 0)
        .put(44, 0)
        .put(8, 90); // the lower layer has both
    bits.ue(0).ue(1).ue(width).ue(height);
    match window {
        Some(window) => window
            .iter()
            .fold(bits.put(1, 1), |bits, side| bits.ue(*side)),
        None => bits.put(1, 0),
    };
    bits.ue(0).ue(0).ue(4).put(1, 1);
    bits.ue(4).ue(1).ue(0).ue(4).ue(3).ue(0);
    bits
}

const HEADER: [u8; 2] = [0x42, 0x01];

#[test]
fn sizes_are_bounded() {
    for (width, height, window, expected) in [
        (1920, 1088, Some([0, 0, 0, 4]), Some((1920, 1080))),
        (16_384, 16_384, None, Some((16_384, 16_384))),
        (16_385, 1080, None, None),
        (65_535, 65_535, None, None),
        (0, 1080, None, None),
        (8, 8, Some([2, 2, 0, 0]), None),
        (8, 8, Some([u32::MAX - 1, u32::MAX - 1, 0, 0]), None),
    ] {
        let sps = Sps::parse(&sps(width, height, window).nal(&HEADER));
        assert_eq!(
            sps.ok().map(|sps| (sps.width, sps.height)),
            expected,
            "{width}×{height} {window:?}"
        );
    }
}

#[test]
fn the_clock_is_found_behind_every_optional_part() {
    let mut bits = sps(1280, 720, None);
    (0..6).for_each(|_| _ = bits.ue(0));
    bits.put(2, 0b11); // scaling lists, coded
    for size_id in 0..4 {
        for matrix in 0..if size_id == 3 { 2 } else { 6 } {
            let coded = matrix == 0;
            bits.put(1, u64::from(coded));
            let numbers = match (coded, size_id) {
                (false, _) => 1,
                (true, 0) => 16,
                (true, 1) => 64,
                (true, _) => 65,
            };
            (0..numbers).for_each(|_| _ = bits.ue(0));
        }
    }
    bits.put(2, 0).put(1, 1).put(8, 0x77).ue(0).ue(1).put(1, 0); // PCM
    bits.ue(3); // reference picture sets: two frames, then predicted, then predicted from that
    bits.ue(1).ue(1).ue(0).put(1, 1).ue(0).put(1, 1);
    bits.put(1, 1)
        .put(1, 0)
        .ue(0)
        .put(1, 1)
        .put(2, 0b01)
        .put(2, 0b00);
    bits.put(1, 1).put(1, 0).ue(0).put(3, 0b111);
    bits.put(1, 1).ue(2).put(9, 0).put(9, 0); // long-term frames, 8 bits of order count each
    bits.put(2, 0).put(1, 1);
    bits.put(4, 0).put(3, 0).put(1, 1).ue(0).ue(0).ue(0).ue(0); // VUI with a display window
    bits.put(1, 1).put(32, 1001).put(32, 60_000).put(8, 0);
    let sps = Sps::parse(&bits.nal(&HEADER)).unwrap();
    assert_eq!(vui::frame_rate(sps.vui.clock, 1), Some(60_000.0 / 1001.0));
    assert_eq!(sps.max_num_reorder, 3, "of the highest sub-layer");
}

#[test]
fn damage_behind_the_size_leaves_the_size() {
    let mut bits = sps(1280, 720, None);
    (0..6).for_each(|_| _ = bits.ue(0));
    bits.put(4, 0).ue(65); // 65 reference picture sets
    let sps = Sps::parse(&bits.nal(&HEADER)).unwrap();
    assert_eq!((sps.width, sps.height, sps.vui.clock), (1280, 720, None));
}

#[test]
fn parameter_sets_with_absurd_values_are_refused() {
    let eight_layers = {
        let mut bits = BitWriter::default();
        bits.put(4, 0).put(3, 7).put(1, 1);
        (0..13).for_each(|_| _ = bits.put(64, 0));
        bits.nal(&HEADER)
    };
    let whole = sps(1280, 720, None).nal(&HEADER);
    for (index, nal) in [
        eight_layers,
        whole[..12].to_vec(),
        vec![0x40, 0x01],
        vec![0x42],
        vec![],
    ]
    .iter()
    .enumerate()
    {
        assert!(Sps::parse(nal).is_err(), "case {index}");
    }
}

#[test]
fn every_truncation_of_a_record_is_an_error() {
    let record = hex(HEVC_MAIN);
    for length in 0..record.len() {
        assert!(parse(record.slice(..length)).is_err(), "{length} bytes");
    }
}

#[test]
fn records_without_a_parameter_set_are_refused() {
    let fixed = "01016000000090000000000078f000fcfdf8f800000f";
    for arrays in ["00", "01 a0 0001 0001 40", "01 a1 ffff", "ff"] {
        assert!(parse(hex(&format!("{fixed}{arrays}"))).is_err(), "{arrays}");
    }
}
