//! AV1 records as encoders write them, and as none should.

use super::*;
use crate::codec::test_bytes::{AV1_AOM, BitWriter, hex};

#[test]
fn explains_what_encoders_send() {
    for (record, size, codecs, level, depth) in [
        (AV1_AOM, (640, 360), "av01.0.01M.08", "2.1", 8),
        (
            "81054c000a0c0200002d2a67fd9e017c2020",
            (1280, 720),
            "av01.0.05M.10",
            "3.1",
            10,
        ), // SVT-AV1
    ] {
        let config = parse(hex(record)).unwrap_or_else(|error| panic!("{record}: {error}"));
        assert_eq!((config.width, config.height), size, "{record}");
        assert_eq!(
            (
                config.codecs.as_str(),
                config.profile.as_str(),
                config.level.as_str()
            ),
            (codecs, "Main", level)
        );
        assert_eq!(
            (config.bit_depth, config.nal_length_size, config.may_reorder),
            (depth, 0, Some(false))
        );
    }
}

#[test]
fn a_record_without_sequence_header_is_completed_from_the_first_key_frame() {
    let rav1e_record = hex("811f0c00");
    assert!(matches!(
        parse(rav1e_record),
        Err(Error::Unsupported { .. })
    ));

    let temporal_unit = hex("0a0e000000fa1e7fde210a88101010a0 320410024862");
    let config = from_key_frame(&temporal_unit).unwrap();
    assert_eq!((config.width, config.height), (320, 240));
    assert_eq!(parse(config.record.clone()), Ok(config));
    assert!(from_key_frame(&hex("1200 320410000000")).is_err());
}

/// A sequence header with timing, two operating points and the tools all off.
fn header(
    profile: u64,
    width_minus1: u64,
    height_minus1: u64,
    colour: impl FnOnce(&mut BitWriter),
) -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.put(3, profile).put(2, 0);
    bits.put(1, 1).put(32, 1).put(32, 60).put(1, 1).ue(0); // 60 frames per second
    bits.put(1, 1).put(5, 9).put(32, 1).put(5, 0).put(5, 0); // decoder model, delays of 10 bits
    bits.put(1, 1).put(5, 1); // initial display delay; two operating points
    bits.put(12, 0)
        .put(5, 13)
        .put(1, 1)
        .put(1, 1)
        .put(21, 0)
        .put(1, 1)
        .put(4, 2);
    bits.put(12, 0).put(5, 4).put(1, 0).put(1, 0);
    bits.put(4, 15)
        .put(4, 15)
        .put(16, width_minus1)
        .put(16, height_minus1);
    bits.put(1, 1).put(7, 0).put(3, 0).put(4, 0).put(1, 0); // frame ids present, no order hints
    bits.put(1, 0).put(1, 1).put(1, 0).put(1, 0).put(3, 0); // screen content forced, integer vectors not
    colour(&mut bits);
    bits.bytes()
}

/// (profile, writes color_config, codecs, packed chroma)
type ColourRow = (u64, fn(&mut BitWriter), &'static str, u8);

#[test]
fn colour_and_operating_points() {
    let rows: [ColourRow; 5] = [
        (
            0,
            |bits| _ = bits.put(2, 0b10).put(1, 0).put(4, 0),
            "av01.0.13H.10",
            0b01100,
        ),
        (
            0,
            |bits| _ = bits.put(2, 0b01).put(1, 0).put(4, 0),
            "av01.0.13H.08",
            0b11100,
        ), // monochrome
        (
            1,
            |bits| _ = bits.put(1, 0).put(1, 1).put(24, 0x01_0d_00),
            "av01.1.13H.08",
            0,
        ), // RGB
        (
            2,
            |bits| _ = bits.put(2, 0b11).put(2, 0).put(1, 0).put(2, 0b11).put(2, 2),
            "av01.2.13H.12",
            0b01110,
        ),
        (
            2,
            |bits| _ = bits.put(2, 0b10).put(2, 0).put(1, 0),
            "av01.2.13H.10",
            0b01000,
        ), // 4:2:2
    ];
    for (profile, colour, codecs, chroma) in rows {
        let header = SequenceHeader::parse(&header(profile, 1919, 1079, colour)).unwrap();
        assert_eq!(header.codecs(), codecs);
        assert_eq!(header.chroma, chroma, "{codecs}");
        assert_eq!(
            (header.width, header.height, header.frame_rate),
            (1920, 1080, Some(60.0)),
            "{codecs}"
        );
        assert_eq!(header.level_name(), "5.1");
    }
}

#[test]
fn sizes_are_bounded() {
    let plain = |bits: &mut BitWriter| _ = bits.put(8, 0);
    assert!(SequenceHeader::parse(&header(0, 16_383, 16_383, plain)).is_ok());
    assert!(SequenceHeader::parse(&header(0, 16_384, 1079, plain)).is_err());
    assert!(SequenceHeader::parse(&header(0, 65_535, 65_535, plain)).is_err());
}

#[test]
fn headers_that_make_no_stream_are_refused() {
    for (what, data) in [
        ("profile 3", "60"),
        ("a still picture", "10"),
        ("a reduced header", "18"),
        ("the end inside the timing", "04000000"),
        ("nothing", ""),
    ] {
        assert!(SequenceHeader::parse(&hex(data)).is_err(), "{what}");
    }
}

#[test]
fn records_that_are_cut_or_of_another_version_are_refused() {
    let record = hex(AV1_AOM);
    for length in 0..record.len() {
        assert!(parse(record.slice(..length)).is_err(), "{length} bytes");
    }
    for record in ["80010c00", "82010c00", "01010c00"] {
        assert!(parse(hex(record)).is_err(), "{record}");
    }
}
