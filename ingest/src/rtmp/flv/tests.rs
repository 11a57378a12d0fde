use super::*;

const AVC_RECORD: &str =
    "01640028ffe1001b67640028acd940780227e5c044000003000400000300f03c60c65801000468ef8fcbfdf8f800";
const AV1_RECORD: &str = "81010c000a0b0000000cc4ff6736be4010";
/// AAC-LC, 48 kHz, stereo.
const AAC_RECORD: &str = "1190";
/// Version 1, stereo, pre-skip 312, 48 kHz.
const OPUS_HEAD: &str = "4f707573486561640102380180bb0000000000";
/// An IDR slice of two bytes, and a plain slice of two bytes.
const IDR: &str = "000000026588";
const SLICE: &str = "0000000241ff";

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn body(head: &[u8], payload: &str) -> Bytes {
    [head, &hex(payload)].concat().into()
}

/// Returns the outcome of one body, in short.
fn outcome(result: Result<(), Corruption>, units: &[Unit]) -> String {
    let units = units.iter().map(|unit| match unit {
        Unit::VideoConfig(config) => format!("config {}", config.codec.name()),
        Unit::AudioConfig(config) => format!("config {}", config.codec.name()),
        Unit::Video(v) => format!(
            "video {} {} {}{}",
            v.dts_90k,
            v.cts_90k,
            v.data.len(),
            if v.key { " key" } else { "" }
        ),
        Unit::Audio(a) => format!("audio {} {}", a.pts_90k, a.data.len()),
    });
    let corruption = result
        .err()
        .map(|corruption| format!("corruption: {corruption}"));
    units.chain(corruption).collect::<Vec<_>>().join("; ")
}

fn configured() -> Demuxer {
    let mut demuxer = Demuxer::new();
    let mut units = Vec::new();
    demuxer
        .video(0, body(&[0x17, 0, 0, 0, 0], AVC_RECORD), &mut units)
        .unwrap();
    demuxer
        .audio(0, body(&[0xAF, 0], AAC_RECORD), &mut units)
        .unwrap();
    assert_eq!(outcome(Ok(()), &units), "config h264; config aac");
    demuxer
}

#[test]
fn video_bodies() {
    let cases: [(&str, Bytes, &str); 27] = [
        (
            "empty",
            Bytes::new(),
            "corruption: video tag ends before its declared length",
        ),
        (
            "legacy head only",
            body(&[0x17], ""),
            "corruption: video tag ends before its declared length",
        ),
        (
            "legacy key frame",
            body(&[0x17, 1, 0, 0, 0], IDR),
            "video 900 0 6 key",
        ),
        (
            "legacy composition offset",
            body(&[0x27, 1, 0, 0, 40], SLICE),
            "video 900 3600 6",
        ),
        (
            "negative composition offset",
            body(&[0x27, 1, 0xFF, 0xFF, 0xFF], SLICE),
            "video 900 -90 6",
        ),
        (
            "key frame flag without a key frame",
            body(&[0x17, 1, 0, 0, 0], SLICE),
            "video 900 0 6",
        ),
        (
            "key frame without its flag",
            body(&[0x27, 1, 0, 0, 0], IDR),
            "video 900 0 6 key",
        ),
        ("legacy end of sequence", body(&[0x17, 2, 0, 0, 0], ""), ""),
        ("legacy command frame", body(&[0x57, 0], ""), ""),
        (
            "configuration repeated",
            body(&[0x17, 0, 0, 0, 0], AVC_RECORD),
            "",
        ),
        ("empty frame", body(&[0x27, 1, 0, 0, 0], ""), ""),
        (
            "unknown packet type",
            body(&[0x27, 9, 0, 0, 0], ""),
            "corruption: video packet type 9 is not known",
        ),
        (
            "Sorenson",
            body(&[0x22, 1], ""),
            "corruption: video codec Sorenson H.263 is not carried: choose H.264, HEVC or AV1",
        ),
        (
            "VP9",
            body(b"\x91vp09", "00"),
            "corruption: video codec VP9 is not carried: choose H.264, HEVC or AV1",
        ),
        (
            "unprintable codec",
            body(b"\x91\x00\x1b[0", "00"),
            "corruption: video codec \\x00\\x1b[0 is not carried: choose H.264, HEVC or AV1",
        ),
        (
            "HEVC without configuration",
            body(b"\xA3hvc1", IDR),
            "corruption: video came without its codec configuration",
        ),
        (
            "enhanced frame",
            body(b"\x91avc1\x00\x00\x05", IDR),
            "video 900 450 6 key",
        ),
        (
            "enhanced frame without offset",
            body(b"\xA3avc1", SLICE),
            "video 900 0 6",
        ),
        ("enhanced metadata", body(b"\xC4avc1", "020000"), ""),
        ("enhanced command frame", body(&[0xD0, 0], ""), ""),
        ("enhanced configuration", body(b"\x90avc1", AVC_RECORD), ""),
        (
            "AV1 configuration",
            body(b"\x90av01", AV1_RECORD),
            "config av1",
        ),
        (
            "ModEx with 500 µs",
            body(b"\xA7\x02\x07\xA1\x20\x03avc1", SLICE),
            "video 945 0 6",
        ),
        (
            "ModEx cut off",
            body(&[0xA7, 0xFF, 0xFF, 0xFF, 0], ""),
            "corruption: video tag ends before its declared length",
        ),
        (
            "ModEx without end",
            Bytes::from(vec![0xA7; 300_000]),
            "corruption: video tag ends before its declared length",
        ),
        (
            "one track in a multitrack body",
            body(b"\x96\x03avc1\x00", SLICE),
            "video 900 0 6",
        ),
        (
            "many tracks of an unknown form",
            body(&[0x96, 0x31, 0], ""),
            "corruption: video packet type 3 is not known",
        ),
    ];
    for (name, body, expected) in cases {
        let mut units = Vec::new();
        let result = configured().video(10, body, &mut units);
        assert_eq!(outcome(result, &units), expected, "{name}");
    }
}

#[test]
fn audio_bodies() {
    let cases: [(&str, Bytes, &str); 14] = [
        (
            "empty",
            Bytes::new(),
            "corruption: audio tag ends before its declared length",
        ),
        (
            "AAC head only",
            body(&[0xAF], ""),
            "corruption: audio tag ends before its declared length",
        ),
        ("AAC", body(&[0xAF, 1], "2110"), "audio 900 2"),
        ("empty AAC", body(&[0xAF, 1], ""), ""),
        ("configuration repeated", body(&[0xAF, 0], AAC_RECORD), ""),
        (
            "Speex",
            body(&[0xB6], "00"),
            "corruption: audio codec Speex is not carried: choose AAC",
        ),
        ("enhanced AAC", body(b"\x91mp4a", "2110"), "audio 900 2"),
        (
            "AC-3",
            body(b"\x90ac-3", "00"),
            "corruption: audio codec AC-3 is not carried: choose AAC",
        ),
        (
            "FLAC",
            body(b"\x90fLaC", "00"),
            "corruption: audio codec FLAC is not carried: choose AAC",
        ),
        ("Opus", body(b"\x90Opus", OPUS_HEAD), "config opus"),
        ("channel order", body(b"\x94mp4a", "01020000"), ""),
        (
            "Opus without configuration",
            body(b"\x91Opus", "fc"),
            "corruption: audio came without its codec configuration",
        ),
        ("MP3", body(&[0x2F], "fffb9064"), "config mp3; audio 900 4"),
        (
            "MP3 too short",
            body(&[0x2F], "fffb"),
            "corruption: MP3 frame ends before its declared length",
        ),
    ];
    for (name, body, expected) in cases {
        let mut units = Vec::new();
        let result = configured().audio(10, body, &mut units);
        assert_eq!(outcome(result, &units), expected, "{name}");
    }
}

#[test]
fn lengths_beyond_the_tag_are_dropped() {
    for payload in ["000000ff65", "ffffffff65", "0000", "00000002658800000009"] {
        let mut units = Vec::new();
        let result = configured().video(0, body(&[0x17, 1, 0, 0, 0], payload), &mut units);
        assert!(matches!(result, Err(Corruption::Media(_))), "{payload}");
        assert!(units.is_empty(), "{payload}");
    }
}

#[test]
fn the_first_track_is_carried_and_others_are_named() {
    let two_tracks = |second: u8| {
        let mut bytes = b"\x96\x13avc1".to_vec();
        for (id, payload) in [(0, IDR), (second, SLICE)] {
            bytes.extend([id, 0, 0, 6]);
            bytes.extend(hex(payload));
        }
        Bytes::from(bytes)
    };
    let mut demuxer = configured();
    let mut units = Vec::new();
    let result = demuxer.video(10, two_tracks(1), &mut units);
    let expected = "video 900 0 6 key; corruption: only the first video track is carried";
    assert_eq!(outcome(result, &units), expected);

    units.clear();
    let second_alone = body(b"\x96\x03avc1\x01", SLICE);
    let result = demuxer.video(10, second_alone, &mut units);
    let expected = "corruption: only the first video track is carried";
    assert_eq!(outcome(result, &units), expected);

    units.clear();
    let many_codecs = body(b"\x96\x23avc1\x00\x00\x00\x06", SLICE);
    let result = demuxer.video(10, many_codecs, &mut units);
    assert_eq!(outcome(result, &units), "video 900 0 6");

    units.clear();
    let lying = body(b"\x96\x13avc1\x00\xFF\xFF\xFF", SLICE);
    let result = demuxer.video(10, lying, &mut units);
    assert!(outcome(result, &units).starts_with("corruption: video tag ends"));
}

#[test]
fn a_temporal_delimiter_is_left_out() {
    let mut demuxer = Demuxer::new();
    let mut units = Vec::new();
    demuxer
        .video(0, body(b"\x90av01", AV1_RECORD), &mut units)
        .unwrap();
    units.clear();
    // A temporal delimiter, then a padding OBU of one byte.
    let result = demuxer.video(0, body(b"\xA1av01", "12007a0180"), &mut units);
    assert_eq!(outcome(result, &units), "video 0 0 3");
}

#[test]
fn a_payload_is_not_copied() {
    let body = body(&[0x17, 1, 0, 0, 0], IDR);
    let payload_at = body[5..].as_ptr();
    let mut units = Vec::new();
    configured().video(0, body, &mut units).unwrap();
    let [Unit::Video(video_frame)] = &units[..] else {
        panic!("{units:?}")
    };
    assert_eq!(video_frame.data.as_ptr(), payload_at);
}
