//! Units through the multiplexer and our own demultiplexer.

use std::sync::Arc;

use bytes::Bytes;
use sluice_media::codec::{AudioCodec, VideoCodec};

use super::*;
use crate::ts::{
    Demuxer, Limits,
    packet::{PACKET_BYTES, Packet},
};

const AVC: &str =
    "01640028ffe1001b67640028acd940780227e5c044000003000400000300f03c60c65801000468ef8fcbfdf8f800";
const HEVC: &str = "01016000000090000000000078f000fcfdf8f800000f03a00001001840010c01ffff01600000030090\
    0000030000030078959409a10001002b420101016000000300900000030000030078a003c0801107cb965654a4c2f0168080000003008000\
    000f04a2000100064401c073c189";
const AV1: &str = "81010c000a0b0000000cc4ff6736be4010";
const VIDEO_FRAME_90K: i64 = 3000;
const FRAME_90K: i64 = 1920;

fn video(codec: VideoCodec) -> Arc<VideoConfig> {
    let text = match codec {
        VideoCodec::Avc => AVC,
        VideoCodec::Hevc => HEVC,
        VideoCodec::Av1 => AV1,
    };
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    let record: Vec<u8> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect();
    Arc::new(VideoConfig::parse(codec, record.into()).unwrap())
}

fn aac() -> Arc<AudioConfig> {
    let record = Bytes::from_static(&[0x11, 0x90]);
    Arc::new(AudioConfig::parse(AudioCodec::Aac, record).unwrap())
}

/// Returns a frame that our own demultiplexer reads back unchanged.
fn video_frame(codec: VideoCodec, dts_90k: i64, key: bool, bytes: usize) -> Unit {
    let header: &[u8] = match (codec, key) {
        (VideoCodec::Hevc, true) => &[0x26, 1],
        (VideoCodec::Hevc, false) => &[0x02, 1],
        (_, true) => &[0x65],
        (_, false) => &[0x41],
    };
    let nal_bytes = (header.len() + bytes) as u32;
    let mut data = nal_bytes.to_be_bytes().to_vec();
    data.extend(header);
    data.extend((0..bytes).map(|at| 0x80 | at as u8));
    Unit::Video(VideoUnit {
        dts_90k,
        cts_90k: if key { 2 * VIDEO_FRAME_90K as i32 } else { 0 },
        key,
        data: data.into(),
    })
}

fn frame(pts_90k: i64) -> Unit {
    Unit::Audio(AudioUnit {
        pts_90k,
        data: Bytes::from_static(&[7; 300]),
    })
}

/// Returns half a second from this time on: a key frame first, and one frame that is too long for a declared length.
fn half_a_second(codec: VideoCodec, from_90k: i64) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut next_frame_90k = from_90k;
    for at in 0..15 {
        let dts_90k = from_90k + at * VIDEO_FRAME_90K;
        while next_frame_90k < dts_90k {
            units.push(frame(next_frame_90k));
            next_frame_90k += FRAME_90K;
        }
        let bytes = if at == 3 { 70_000 } else { 500 };
        units.push(video_frame(codec, dts_90k, at == 0, bytes));
    }
    units
}

fn muxed(muxer: &mut Muxer, units: &[Unit]) -> BytesMut {
    let mut out = BytesMut::new();
    for unit in units {
        muxer.push(unit, &mut out).unwrap();
    }
    out
}

/// Returns the demuxer's units, after checking that nothing was damaged.
fn demuxed(stream: &[u8]) -> Vec<Unit> {
    let mut demuxer = Demuxer::new(Limits::default());
    let mut units = Vec::new();
    demuxer.push(stream, &mut units);
    demuxer.flush(&mut units);
    let counters = demuxer.counters();
    let faults = (
        counters.continuity_errors,
        counters.resyncs,
        counters.damaged,
    );
    assert_eq!(faults, (0, 0, 0), "{:?}", demuxer.last_damage());
    assert_eq!(counters.packets, (stream.len() / PACKET_BYTES) as u64);
    units
}

/// (frame, time less the lead, composition offset, key, bytes), in the order of their decode times.
type Media = (bool, i64, i32, bool, Bytes);

fn media(units: &[Unit], less_90k: i64) -> Vec<Media> {
    let mut media: Vec<Media> = units
        .iter()
        .filter_map(|unit| match unit {
            Unit::Video(it) => Some((
                true,
                it.dts_90k - less_90k,
                it.cts_90k,
                it.key,
                it.data.clone(),
            )),
            Unit::Audio(it) => Some((false, it.pts_90k - less_90k, 0, true, it.data.clone())),
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => None,
        })
        .collect();
    // A frame of undeclared length is returned late.
    media.sort_by_key(|(is_video_frame, time_90k, ..)| (*time_90k, *is_video_frame));
    media
}

fn configured(codec: VideoCodec) -> Muxer {
    let mut muxer = Muxer::new();
    let (video, audio) = (video(codec), aac());
    muxer.configure(Some(&video), Some(&audio)).unwrap();
    muxer
}

#[test]
fn units_come_back_as_they_were() {
    for codec in [VideoCodec::Avc, VideoCodec::Hevc] {
        let units = half_a_second(codec, 0);
        let back = demuxed(&muxed(&mut configured(codec), &units));
        assert_eq!(media(&back, LEAD_90K), media(&units, 0), "{codec:?}");
        let configs: Vec<&Unit> = back
            .iter()
            .filter(|unit| matches!(unit, Unit::VideoConfig(_) | Unit::AudioConfig(_)))
            .collect();
        let [Unit::VideoConfig(first), Unit::AudioConfig(second)] = configs[..] else {
            panic!("{configs:?}");
        };
        assert_eq!(first.record, video(codec).record);
        assert_eq!(**second, *aac());
    }
}

#[test]
fn times_wrap_and_continue() {
    let from_90k = (1 << 33) - LEAD_90K - 5 * VIDEO_FRAME_90K;
    let units = half_a_second(VideoCodec::Avc, from_90k);
    let back = demuxed(&muxed(&mut configured(VideoCodec::Avc), &units));
    assert_eq!(media(&back, LEAD_90K), media(&units, 0));
}

#[test]
fn a_unit_is_complete_without_the_next() {
    let mut muxer = configured(VideoCodec::Avc);
    let mut demuxer = Demuxer::new(Limits::default());
    for unit in [video_frame(VideoCodec::Avc, 0, true, 500), frame(10)] {
        let mut units = Vec::new();
        demuxer.push(&muxed(&mut muxer, &[unit]), &mut units);
        assert_eq!(units.len(), 2, "a configuration and what goes with it");
    }
}

#[test]
fn a_stream_begins_with_tables_and_a_key_frame() {
    let mut muxer = Muxer::new();
    let units = half_a_second(VideoCodec::Avc, 0);
    assert!(
        muxed(&mut muxer, &units).is_empty(),
        "nothing is configured"
    );

    muxer
        .configure(Some(&video(VideoCodec::Avc)), None)
        .unwrap();
    assert!(
        muxed(&mut muxer, &units[1..]).is_empty(),
        "no key frame, and no audio track"
    );
    let stream = muxed(&mut muxer, &units);
    let pids: Vec<u16> = stream
        .chunks(PACKET_BYTES)
        .take(3)
        .map(|packet| u16::from_be_bytes([packet[1] & 0x1f, packet[2]]))
        .collect();
    assert_eq!(pids, [0, 0x1000, FIRST_TRACK_PID]);
    let third: &[u8; PACKET_BYTES] = stream[2 * PACKET_BYTES..].first_chunk().unwrap();
    assert!(Packet::parse(third).unwrap().random_access);
    assert_eq!(media(&demuxed(&stream), LEAD_90K).len(), 15);
}

#[test]
fn audio_alone_carries_the_clock() {
    let mut muxer = Muxer::new();
    muxer.configure(None, Some(&aac())).unwrap();
    let units: Vec<Unit> = (0..20).map(|at| frame(at * FRAME_90K)).collect();
    let stream = muxed(&mut muxer, &units);
    assert_eq!(media(&demuxed(&stream), LEAD_90K), media(&units, 0));
    let clocks = stream
        .chunks(PACKET_BYTES)
        .filter(|packet| packet[3] & 0x20 != 0 && packet[4] > 0 && packet[5] & 0x10 != 0);
    assert_eq!(clocks.count(), units.len());
}

#[test]
fn a_track_may_change_its_codec_and_end() {
    let mut muxer = configured(VideoCodec::Avc);
    let mut stream = muxed(&mut muxer, &half_a_second(VideoCodec::Avc, 0));
    let change = Unit::VideoConfig(video(VideoCodec::Hevc));
    stream.extend(muxed(&mut muxer, &[change]));
    stream.extend(muxed(&mut muxer, &half_a_second(VideoCodec::Hevc, 45_000)));
    muxer.configure(None, Some(&aac())).unwrap();
    stream.extend(muxed(&mut muxer, &half_a_second(VideoCodec::Hevc, 90_000)));

    let back = demuxed(&stream);
    let codecs: Vec<VideoCodec> = back
        .iter()
        .filter_map(|unit| match unit {
            Unit::VideoConfig(config) => Some(config.codec),
            _ => None,
        })
        .collect();
    assert_eq!(codecs, [VideoCodec::Avc, VideoCodec::Hevc]);
    let video_frames = back.iter().filter(|it| matches!(it, Unit::Video(_)));
    assert_eq!(video_frames.count(), 30);
}

#[test]
fn what_cannot_be_carried_is_refused_and_changes_nothing() {
    let mut muxer = configured(VideoCodec::Avc);
    let av1 = video(VideoCodec::Av1);
    let mut out = BytesMut::new();
    let refused = muxer.push(&Unit::VideoConfig(av1.clone()), &mut out);
    assert_eq!(muxer.configure(Some(&av1), None), refused);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "AV1 video cannot be sent in MPEG-TS: choose H.264 or HEVC at the encoder, or an RTMP address"
    );
    let units = half_a_second(VideoCodec::Avc, 0);
    let back = demuxed(&muxed(&mut muxer, &units));
    assert_eq!(media(&back, LEAD_90K), media(&units, 0));
}
