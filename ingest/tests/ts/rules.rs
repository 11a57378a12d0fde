//! Streams that no encoder sends but the standard allows, and streams that it does not.

use sluice_ingest::ts::Limits;

use crate::{demux, demux_within, mux::Mux};

const VIDEO: u16 = 0x100;
const AUDIO: u16 = 0x101;
const H264: u8 = 0x1b;
const ADTS: u8 = 0x0f;

const SPS: &[u8] = &[
    0, 0, 0, 1, 0x67, 0x64, 0, 0x28, 0xac, 0xd9, 0x40, 0x78, 0x02, 0x27, 0xe5, 0xc0, 0x44, 0, 0, 3,
    0, 4, 0, 0, 3, 0, 0xf0, 0x3c, 0x60, 0xc6, 0x58,
];
const PPS: &[u8] = &[0, 0, 0, 1, 0x68, 0xef, 0x8f, 0xcb];
const OTHER_PPS: &[u8] = &[0, 0, 0, 1, 0x68, 0xef, 0x8f, 0xcc];
const IDR: &[u8] = &[0, 0, 1, 0x65, 0x88, 0x84];
const SLICE: &[u8] = &[0, 0, 1, 0x41, 0x9a, 0x02];
const SEI: &[u8] = &[0, 0, 1, 0x06, 5, 1, 0xaa, 0x80];

/// An ADTS frame of AAC-LC, 48 kHz, stereo, with this many bytes inside.
fn adts(bytes: usize) -> Vec<u8> {
    let total = bytes + 7;
    let mut frame = vec![
        0xff,
        0xf1,
        0x4c,
        0x80 | (total >> 11) as u8,
        (total >> 3) as u8,
    ];
    frame.extend([(total << 5) as u8 | 0x1f, 0xfc]);
    frame.resize(total, 0x21);
    frame
}

#[test]
fn frames_straddle_pes_packets() {
    let mut mux = Mux::new(&[(ADTS, AUDIO)]);
    let three = [adts(300), adts(310), adts(320)].concat();
    mux.pes(AUDIO, Some(90_000), 0, &three[..500]);
    mux.pes(AUDIO, None, 0, &three[500..700]);
    mux.pes(
        AUDIO,
        Some(99_000),
        0,
        &[&three[700..], &adts(330)].concat(),
    );
    let demuxed = demux(&mux.bytes, 188);
    assert_eq!(demuxed.last_damage, None);
    let frames: Vec<_> = demuxed
        .frames
        .iter()
        .map(|f| (f.data.len(), f.pts_90k))
        .collect();
    let expected = [(300, 90_000), (310, 91_920), (320, 93_840), (330, 99_000)];
    assert_eq!(frames, expected);
}

#[test]
fn a_lost_audio_packet_costs_its_frames_alone() {
    let mut mux = Mux::new(&[(ADTS, AUDIO)]);
    for number in 0..4 {
        let frame = adts(300);
        let length = frame.len() as u16 + 8;
        mux.pes(AUDIO, Some(90_000 + number * 1_920), length, &frame);
    }
    // After two tables, each frame takes two packets: the first packet of the second frame is removed.
    mux.bytes.drain(4 * 188..5 * 188);
    let demuxed = demux(&mux.bytes, 188);
    let times: Vec<_> = demuxed.frames.iter().map(|frame| frame.pts_90k).collect();
    assert_eq!(times, [90_000, 93_840, 95_760]);
    assert_eq!(demuxed.counters.continuity_errors, 1);
    let words = "audio frame lost packets on its way";
    assert_eq!(demuxed.last_damage.as_deref(), Some(words));
}

#[test]
fn bytes_that_are_no_frame_are_passed_over() {
    let mut mux = Mux::new(&[(ADTS, AUDIO)]);
    let decoy = [0xff, 0xf1, 0x4c, 0x80, 2, 0, 0xfc];
    let garbage = [&[1, 2, 0xff, 3][..], &decoy, &adts(100), &adts(105)].concat();
    let garbage = [&garbage[..], &[0; 50], &adts(110), &adts(112)].concat();
    mux.pes(AUDIO, Some(90_000), 0, &garbage);
    let demuxed = demux(&mux.bytes, 188);
    let lengths: Vec<_> = demuxed
        .frames
        .iter()
        .map(|frame| frame.data.len())
        .collect();
    assert_eq!(
        (lengths, demuxed.counters.damaged),
        (vec![100, 105, 110, 112], 2)
    );
}

#[test]
fn parameter_sets_are_announced_at_key_frames() {
    let mut mux = Mux::new(&[(H264, VIDEO)]);
    for (number, video_frame) in [
        [SLICE].concat(), // joined in the middle
        [SPS, PPS].concat(),
        [SEI, IDR].concat(),
        [SPS, PPS, IDR].concat(),
        [OTHER_PPS, SLICE].concat(), // a change between key frames stays where it is
        [SLICE].concat(),
        [IDR].concat(),
        [SPS, PPS, IDR].concat(), // and back
    ]
    .iter()
    .enumerate()
    {
        mux.pes(VIDEO, Some(90_000 + 3_000 * number as u64), 0, video_frame);
    }
    let demuxed = demux(&mux.bytes, 188);
    let video_frames: Vec<_> = demuxed
        .video_frames
        .iter()
        .map(|p| (p.key, p.data.len()))
        .collect();
    let (sei, slice, set) = (4 + 5, 4 + 3, 4 + 4);
    let expected = [
        (true, sei + slice),
        (true, slice),
        (false, set + slice),
        (false, slice),
        (true, slice),
        (true, slice),
    ];
    assert_eq!(video_frames, expected);
    assert_eq!(demuxed.video_configs.len(), 3);
    let words = "video came without its codec configuration";
    assert_eq!(demuxed.last_damage.as_deref(), Some(words));
    assert_eq!(demuxed.counters.damaged, 1);
}

#[test]
fn lengths_that_lie_cost_their_own_packet() {
    let video_frame = [SPS, PPS, IDR].concat();
    let mut mux = Mux::new(&[(H264, VIDEO)]);
    mux.pes(VIDEO, Some(90_000), 0, &video_frame);
    mux.pes(VIDEO, Some(93_000), 0xffff, &video_frame); // far longer than what comes
    mux.pes(VIDEO, Some(96_000), 1, &video_frame); // too short for its own header
    mux.pes(VIDEO, None, 0, &video_frame); // without a time
    mux.pes(VIDEO, Some(99_000), 0, &[0xff; 100]); // no byte stream
    mux.pes(VIDEO, Some(102_000), 0, &video_frame);
    let demuxed = demux(&mux.bytes, 188);
    let times: Vec<_> = demuxed.video_frames.iter().map(|p| p.dts_90k).collect();
    assert_eq!(times, [90_000, 102_000]);
    assert_eq!(demuxed.counters.damaged, 4);
}

#[test]
fn a_frame_without_end_is_bounded() {
    let limits = Limits { pes_bytes: 10_000 };
    let mut mux = Mux::new(&[(H264, VIDEO)]);
    mux.pes(
        VIDEO,
        Some(90_000),
        0,
        &[SPS, PPS, IDR, &[0x55; 100_000]].concat(),
    );
    mux.pes(VIDEO, Some(93_000), 0, &[SPS, PPS, IDR].concat());
    let demuxed = demux_within(limits, &mux.bytes, 1316);
    let words = "video frame is larger than the 10000 bytes allowed";
    assert_eq!(demuxed.last_damage.as_deref(), Some(words));
    assert_eq!(
        (demuxed.video_frames.len(), demuxed.counters.damaged),
        (1, 1)
    );
}

#[test]
fn nal_units_and_sets_without_number_are_bounded() {
    let mut mux = Mux::new(&[(H264, VIDEO)]);
    mux.pes(VIDEO, Some(90_000), 0, &[SPS, PPS, IDR].concat());
    mux.pes(VIDEO, Some(93_000), 0, &[0, 0, 1, 0x67].repeat(100_000));
    for number in 0..200_u8 {
        let set = [0, 0, 1, 0x67, number + 1].repeat(2);
        mux.pes(VIDEO, Some(96_000), 0, &[&set[..], SLICE].concat());
    }
    mux.pes(VIDEO, Some(99_000), 0, &[SPS, PPS, IDR].concat());
    let demuxed = demux(&mux.bytes, 1316);
    assert_eq!(
        (demuxed.counters.damaged, demuxed.video_configs.len()),
        (1, 1)
    );
    assert_eq!(demuxed.video_frames.len(), 202);
}

#[test]
fn a_presentation_far_from_its_decoding_is_refused() {
    let mut mux = Mux::new(&[(H264, VIDEO)]);
    let payload = [SPS, PPS, IDR].concat();
    let start = [0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 10];
    let times = [0x35, 0, 1, 0, 1, 0x11, 0, 1, 0, 1]; // 6.6 hours apart
    mux.packet(VIDEO, true, &[&start[..], &times, &payload].concat());
    let demuxed = demux(&mux.bytes, 188);
    assert!(demuxed.video_frames.is_empty());
    assert!(demuxed.last_damage.unwrap().contains("10 s apart"));
}

#[test]
fn scrambled_streams_are_named() {
    let mut mux = Mux::new(&[(H264, VIDEO)]);
    mux.pes(VIDEO, Some(90_000), 0, &[SPS, PPS, IDR].concat());
    mux.bytes[2 * 188 + 3] |= 0x80;
    let demuxed = demux(&mux.bytes, 188);
    assert!(demuxed.last_damage.unwrap().contains("scrambled"));
}
