//! Payloads by the structures of their specifications, and taken apart again.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn frame(codec: VideoCodec, key: bool, data: Vec<u8>) -> VideoFrame {
    VideoFrame {
        of: 1,
        codec,
        key,
        pts_90k: 0,
        wallclock_us: 0,
        data: data.into(),
    }
}

fn length_prefixed(units: &[Vec<u8>]) -> Vec<u8> {
    let mut data = Vec::new();
    for nal in units {
        data.extend((nal.len() as u32).to_be_bytes());
        data.extend_from_slice(nal);
    }
    data
}

fn payloads(codec: VideoCodec, data: Vec<u8>) -> Vec<Vec<u8>> {
    let packets = packetize(&frame(codec, true, data)).unwrap();
    check_bounds(&packets);
    packets
        .iter()
        .map(|packet| packet.payload.to_vec())
        .collect()
}

fn check_bounds(packets: &[Packet]) {
    for (index, packet) in packets.iter().enumerate() {
        assert!((1..=MAX_PAYLOAD).contains(&packet.payload.len()));
        assert_eq!(packet.marker, index + 1 == packets.len());
    }
}

/// Takes H.264 payloads apart (RFC 6184 §5.6 to §5.8).
fn h264_units(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    let mut is_open = false;
    for payload in payloads {
        match payload[0] & 0x1f {
            24 => units.extend(aggregated(&payload[1..])),
            28 => {
                let (is_first, is_last) = (payload[1] & 0x80 != 0, payload[1] & 0x40 != 0);
                assert!(payload[1] & 0x20 == 0 && !(is_first && is_last));
                assert_eq!(is_first, !is_open);
                let header = payload[0] & 0xe0 | payload[1] & 0x1f;
                if is_first {
                    units.push(vec![header]);
                }
                let unit = units.last_mut().unwrap();
                assert_eq!(unit[0], header);
                unit.extend_from_slice(&payload[2..]);
                is_open = !is_last;
            }
            1..=23 => units.push(payload.clone()),
            other => panic!("type {other}"),
        }
    }
    assert!(!is_open);
    units
}

/// Takes HEVC payloads apart (RFC 7798 §4.4).
fn h265_units(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    let mut is_open = false;
    for payload in payloads {
        match payload[0] >> 1 {
            48 => units.extend(aggregated(&payload[2..])),
            49 => {
                let (is_first, is_last) = (payload[2] & 0x80 != 0, payload[2] & 0x40 != 0);
                assert!(!(is_first && is_last));
                assert_eq!(is_first, !is_open);
                let header = [payload[0] & 0x81 | (payload[2] & 0x3f) << 1, payload[1]];
                if is_first {
                    units.push(header.to_vec());
                }
                let unit = units.last_mut().unwrap();
                assert_eq!(unit[..2], header);
                unit.extend_from_slice(&payload[3..]);
                is_open = !is_last;
            }
            0..48 => units.push(payload.clone()),
            other => panic!("type {other}"),
        }
    }
    assert!(!is_open);
    units
}

fn aggregated(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut units = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let (nal, behind) = behind.split_at(u16::from_be_bytes(*length).into());
        units.push(nal.to_vec());
        rest = behind;
    }
    assert!(rest.is_empty() && units.len() > 1);
    units
}

/// Takes AV1 payloads apart ("RTP Payload Format For AV1" §4): units without sizes.
fn av1_units(payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    let mut is_continued = false;
    for payload in payloads {
        let continues = payload[0] & 0x80 != 0;
        assert_eq!(continues, is_continued);
        is_continued = payload[0] & 0x40 != 0;
        let count = payload[0] >> 4 & 3;
        assert!(count > 0 && payload[0] & 7 == 0);
        let mut rest = &payload[1..];
        for index in 0..count {
            let (element, behind) = if index + 1 == count {
                (rest, &[][..])
            } else {
                let (size, behind) = leb128(rest);
                behind.split_at(size)
            };
            assert!(!element.is_empty());
            rest = behind;
            if index == 0 && continues {
                units.last_mut().unwrap().extend_from_slice(element);
            } else {
                units.push(element.to_vec());
            }
        }
    }
    assert!(!is_continued);
    units
}

fn leb128(bytes: &[u8]) -> (usize, &[u8]) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let value = bytes[..length]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    (value, &bytes[length..])
}

/// A unit of the low-overhead format.
fn obu(kind: u8, extension: Option<u8>, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind << 3 | 2 | u8::from(extension.is_some()) << 2];
    bytes.extend(extension);
    let mut size = body.len();
    while size >= 0x80 {
        bytes.push(size as u8 | 0x80);
        size >>= 7;
    }
    bytes.push(size as u8);
    bytes.extend_from_slice(body);
    bytes
}

fn sized(unit: &[u8]) -> Vec<u8> {
    let has_extension = unit[0] & 4 != 0;
    let extension = has_extension.then(|| unit[1]);
    obu(
        unit[0] >> 3 & 15,
        extension,
        &unit[1 + usize::from(has_extension)..],
    )
}

#[test]
fn parameter_sets_of_h264_share_a_packet_and_slices_are_cut_evenly() {
    let idr: Vec<u8> = [0x65]
        .into_iter()
        .chain((0..3_000).map(|i| i as u8))
        .collect();
    let units = [
        vec![0x09, 0xf0],
        vec![0x67, 1, 2],
        vec![0x28, 3],
        vec![0x06, 5, 1, 0x80],
        idr.clone(),
        vec![0x0c, 0xff],
    ];
    let payloads = payloads(VideoCodec::Avc, length_prefixed(&units));
    assert_eq!(payloads[0], [0x78, 0, 3, 0x67, 1, 2, 0, 2, 0x28, 3]);
    let headers: Vec<_> = payloads[1..].iter().map(|payload| &payload[..2]).collect();
    assert_eq!(headers, [[0x7c, 0x85], [0x7c, 0x05], [0x7c, 0x45]]);
    let sizes: Vec<_> = payloads[1..].iter().map(Vec::len).collect();
    assert_eq!(sizes, [1_002; 3]);
    assert_eq!(h264_units(&payloads)[2], idr);
}

#[test]
fn parameter_sets_of_hevc_share_a_packet() {
    let idr: Vec<u8> = [0x26, 1]
        .into_iter()
        .chain((0..2_400).map(|i| i as u8))
        .collect();
    let units = [
        vec![0x46, 1, 0x50],
        vec![0x40, 2, 1],
        vec![0x42, 1, 2],
        vec![0x44, 1, 3],
        vec![0x4e, 1, 4],
        idr,
    ];
    let payloads = payloads(VideoCodec::Hevc, length_prefixed(&units));
    let sets = [
        0x60, 1, 0, 3, 0x40, 2, 1, 0, 3, 0x42, 1, 2, 0, 3, 0x44, 1, 3,
    ];
    assert_eq!(payloads[0], sets);
    let headers: Vec<_> = payloads[1..].iter().map(|payload| &payload[..3]).collect();
    assert_eq!(headers, [[0x62, 1, 0x93], [0x62, 1, 0x13], [0x62, 1, 0x53]]);
}

#[test]
fn a_key_frame_of_av1_begins_a_sequence_and_has_no_delimiter() {
    let body = [7; 2_000];
    let data = [
        obu(2, None, &[]),
        obu(1, None, &[1; 10]),
        obu(6, None, &body),
    ]
    .concat();
    let packets = payloads(VideoCodec::Av1, data.clone());
    // N, two elements of which the second goes on; the sequence header behind its length, without its size.
    assert_eq!(packets[0][..3], [0x40 | 0x20 | 0x08, 11, 0x08]);
    assert_eq!(packets[0][13], 0x30);
    assert_eq!(packets[0].len(), MAX_PAYLOAD);
    assert_eq!(packets[1][0], 0x80 | 0x10);
    assert_eq!(packets.len(), 2);
    assert_eq!(av1_units(&packets)[1].len(), 1 + body.len());

    let other = packetize(&frame(VideoCodec::Av1, false, data)).unwrap();
    assert_eq!(other[0].payload[0] & 0x08, 0);
}

#[test]
fn layers_of_av1_do_not_share_a_packet() {
    let data = [
        obu(6, Some(0), &[1]),
        obu(6, Some(0x08), &[2]),
        obu(5, None, &[3]),
    ]
    .concat();
    let packets = payloads(VideoCodec::Av1, data);
    assert_eq!(
        packets,
        [vec![0x18, 0x34, 0, 1], vec![0x20, 3, 0x34, 8, 2, 0x28, 3]]
    );
}

#[test]
fn frames_without_coded_data_have_no_packets() {
    for (codec, data) in [
        (VideoCodec::Avc, vec![]),
        (
            VideoCodec::Avc,
            length_prefixed(&[vec![], vec![0x09, 0xf0], vec![0x06, 1]]),
        ),
        (
            VideoCodec::Avc,
            length_prefixed(&[vec![0x18, 1], vec![0x1c, 0x85, 1]]),
        ),
        (
            VideoCodec::Hevc,
            length_prefixed(&[vec![0x60, 1, 1], vec![0x62, 1, 1]]),
        ),
        (VideoCodec::Av1, obu(2, None, &[])),
    ] {
        assert!(
            payloads(codec, data.clone()).is_empty(),
            "{codec:?} {data:02x?}"
        );
    }
}

#[test]
fn frames_that_contradict_themselves_are_errors() {
    for (codec, data) in [
        (VideoCodec::Avc, &b"\0\0\0"[..]),
        (VideoCodec::Avc, b"\0\0\0\x03\x65\x01"),
        (VideoCodec::Avc, b"\xff\xff\xff\xff\x65\x01"),
        (VideoCodec::Avc, b"\0\0\0\x02\x65\x01\0"),
        (VideoCodec::Avc, b"\0\0\0\x02\xe5\x01"),
        (VideoCodec::Hevc, b"\0\0\0\x01\x26"),
        (VideoCodec::Hevc, b"\0\0\0\x02\xa6\x01"),
        (VideoCodec::Av1, b"\x32\x05\x01"),
        (VideoCodec::Av1, b"\x32\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (VideoCodec::Av1, b"\xb2\x01\x01"),
        (VideoCodec::Av1, b"\x36"),
    ] {
        let packets = packetize(&frame(codec, true, data.to_vec()));
        assert!(packets.is_err(), "{codec:?} {data:02x?}");
    }
}

#[test]
fn packets_of_a_frame_are_bounded() {
    let mut units = Vec::new();
    for _ in 0..=MAX_PACKETS / 2 {
        // Two units that do not fit into one packet, for each of which one is made.
        units.extend([vec![0x41; 2], vec![0x41; MAX_PAYLOAD]]);
    }
    let packets = packetize(&frame(VideoCodec::Avc, false, length_prefixed(&units)));
    assert_eq!(packets, Err(Malformed("frame has too many packets")));

    let largest = length_prefixed(&[vec![0x41; MAX_MEDIA - 4]]);
    assert!(packetize(&frame(VideoCodec::Avc, false, largest)).is_ok());
}

#[test]
fn frames_of_depacketisers_get_lengths() {
    let annex_b = b"\0\0\0\x01\x09\xf0\0\0\0\x01\x67\x01\0\0\x01\x68\x02\0\0\0\x01\x65\x03";
    let frame = depacketized(VideoCodec::Avc, annex_b).unwrap().unwrap();
    assert!(frame.key);
    let expected = length_prefixed(&[vec![0x67, 1], vec![0x68, 2], vec![0x65, 3]]);
    assert_eq!(frame.data, Bytes::from(expected));

    let frame = depacketized(VideoCodec::Hevc, b"\0\0\0\x01\x02\x01\x03").unwrap();
    assert!(!frame.unwrap().key);
    assert_eq!(
        depacketized(VideoCodec::Hevc, b"\0\0\0\x01\x46\x01\x50"),
        Ok(None)
    );
    assert!(depacketized(VideoCodec::Avc, b"\0\0\0\x01\xe5\x01").is_err());

    let units = [obu(1, None, &[1]), obu(6, Some(0x20), &[2; 200])].concat();
    let with_delimiter = [obu(2, None, &[]), units.clone()].concat();
    let frame = depacketized(VideoCodec::Av1, &with_delimiter)
        .unwrap()
        .unwrap();
    assert!(frame.key);
    assert_eq!(frame.data, Bytes::from(units));
    assert!(depacketized(VideoCodec::Av1, &[0x32, 9]).is_err());
}

/// Bodies of units, some far larger than a packet.
fn bodies() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let size = prop_oneof![0_usize..40, 1_140_usize..1_170, 0_usize..9_000];
    let body = (size, any::<u8>()).prop_map(|(size, first)| {
        let bytes = (0..size).map(|index| first.wrapping_add(index as u8));
        bytes.collect()
    });
    prop::collection::vec(body, 0..12)
}

proptest! {
    #[test]
    fn h264_survives_its_packets(bodies in bodies(), headers in prop::collection::vec(0_u8..0x80, 12)) {
        let units: Vec<Vec<u8>> = bodies.iter().zip(headers).map(|(body, header)| {
            [&[header], &body[..]].concat()
        }).collect();
        let sent = units.iter().filter(|nal| matches!(nal[0] & 0x1f, 1..=5 | 7 | 8));
        let sent: Vec<_> = sent.cloned().collect();
        prop_assert_eq!(h264_units(&payloads(VideoCodec::Avc, length_prefixed(&units))), sent);
    }

    #[test]
    fn h265_survives_its_packets(bodies in bodies(), headers in prop::collection::vec(0_u8..0x80, 12)) {
        let units: Vec<Vec<u8>> = bodies.iter().zip(headers).map(|(body, header)| {
            [&[header, 1], &body[..]].concat()
        }).collect();
        let sent = units.iter().filter(|nal| nal[0] >> 1 <= 34);
        let sent: Vec<_> = sent.cloned().collect();
        prop_assert_eq!(h265_units(&payloads(VideoCodec::Hevc, length_prefixed(&units))), sent);
    }

    #[test]
    fn av1_survives_its_packets(
        bodies in bodies(),
        kinds in prop::collection::vec((0_u8..16, prop::option::of(any::<u8>())), 12),
    ) {
        let units: Vec<Vec<u8>> = bodies.iter().zip(kinds).map(|(body, (kind, extension))| {
            obu(kind, extension, body)
        }).collect();
        let sent = units.iter().filter(|unit| !matches!(unit[0] >> 3 & 15, 2 | 8 | 15));
        let sent: Vec<_> = sent.cloned().collect();
        let received = av1_units(&payloads(VideoCodec::Av1, units.concat()));
        prop_assert_eq!(received.iter().map(|unit| sized(unit)).collect::<Vec<_>>(), sent);
    }

    #[test]
    fn any_bytes_are_an_error_or_packets(data in prop::collection::vec(any::<u8>(), 0..400), zeros in 0_usize..4) {
        let data = [vec![0; zeros], data].concat();
        for codec in VideoCodec::ALL.iter().copied() {
            if let Ok(packets) = packetize(&frame(codec, true, data.clone())) {
                check_bounds(&packets);
            }
            let _ = depacketized(codec, &data);
        }
    }
}
