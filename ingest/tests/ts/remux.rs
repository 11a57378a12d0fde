//! Streams of ffmpeg's through our demuxer and our multiplexer, and ffprobe's and ffmpeg's report of the result.

use std::{fs, path::Path};

use bytes::BytesMut;
use sluice_ingest::ts::mux::Muxer;
use sluice_media::unit::Unit;

use crate::{Demuxed, demux, ffmpeg};

const H264: &str = "-c:v libx264 -preset ultrafast -bf 3 -g 30 -x264-params b-adapt=0";
const HEVC: &str = "-c:v libx265 -preset ultrafast -x265-params bframes=3:keyint=30:log-level=none";

/// Units in the order in which an encoder sends them: by decode time.
pub fn interleaved(demuxed: &Demuxed) -> Vec<Unit> {
    let video_frames = demuxed
        .video_frames
        .iter()
        .map(|it| Unit::Video(it.clone()));
    let frames = demuxed.frames.iter().map(|it| Unit::Audio(it.clone()));
    let mut units: Vec<Unit> = video_frames.chain(frames).collect();
    units.sort_by_key(|unit| match unit {
        Unit::Video(it) => it.dts_90k,
        Unit::Audio(it) => it.pts_90k,
        Unit::VideoConfig(_) | Unit::AudioConfig(_) => 0,
    });
    units
}

fn remuxed(demuxed: &Demuxed) -> BytesMut {
    let mut muxer = Muxer::new();
    let video = demuxed.video_configs.first().map(AsRef::as_ref);
    let audio = demuxed.audio_configs.first().map(AsRef::as_ref);
    muxer.configure(video, audio).unwrap();
    let mut stream = BytesMut::new();
    for unit in interleaved(demuxed) {
        muxer.push(&unit, &mut stream).unwrap();
    }
    stream
}

/// Checks that every unit is preserved, for our demuxer as for ffmpeg's.
fn check(options: &str) {
    let folder = tempfile::tempdir().unwrap();
    let original = ffmpeg::stream(folder.path(), options);
    let before = demux(&fs::read(&original).unwrap(), 1316);
    let stream = remuxed(&before);
    let after = demux(&stream, 1316);
    assert_eq!(after.last_damage, None, "{options}");
    assert_eq!(after.counters.continuity_errors, 0);
    check_units(&before, &after);

    let written = folder.path().join("remuxed.ts");
    fs::write(&written, &stream).unwrap();
    for kind in ["v", "a"] {
        check_packets(&original, &written, kind);
    }
    let expected = ffmpeg::decoded_video_frames(&original);
    assert_eq!(
        ffmpeg::decoded_video_frames(&written),
        expected,
        "{options}"
    );
    assert_eq!(ffmpeg::complaints(&written), "", "{options}");
}

fn check_units(before: &Demuxed, after: &Demuxed) {
    assert_eq!(after.video_configs, before.video_configs);
    assert_eq!(after.audio_configs, before.audio_configs);
    let video_frames = |demuxed: &Demuxed| {
        let first = demuxed.video_frames.first().map_or(0, |it| it.dts_90k);
        let units = demuxed.video_frames.iter();
        units
            .map(|it| (it.dts_90k - first, it.cts_90k, it.key, it.data.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(video_frames(after), video_frames(before));
    let frames = |demuxed: &Demuxed| {
        let first = demuxed.video_frames.first().map_or(0, |it| it.dts_90k);
        let units = demuxed.frames.iter();
        units
            .map(|it| (it.pts_90k - first, it.data.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(frames(after), frames(before));
}

/// ffprobe finds the same packets at the same distances.
fn check_packets(original: &Path, written: &Path, kind: &str) {
    let (before, after) = (
        ffmpeg::packets(original, kind),
        ffmpeg::packets(written, kind),
    );
    assert_eq!(after.len(), before.len());
    let shift = after[0].dts - before[0].dts;
    for (after, before) in after.iter().zip(&before) {
        assert_eq!(after.key, before.key, "at {}", before.dts);
        for (after, before) in [(after.pts, before.pts), (after.dts, before.dts)] {
            let apart = after - shift - before;
            assert!(apart.abs() <= 1, "{kind}: {apart} ticks from {before}");
        }
    }
}

#[test]
fn h264_with_b_frames_and_aac() {
    check(&format!("{H264} -c:a aac"));
}

#[test]
fn h264_in_slices_and_mp3() {
    check(&format!(
        "{H264} -slices 4 -s 1280x720 -b:v 20M -c:a libmp3lame -b:a 128k"
    ));
}

#[test]
fn hevc_and_opus() {
    check(&format!("{HEVC} -c:a libopus -b:a 96k -ac 2"));
}

#[test]
fn hevc_and_surround_audio() {
    check(&format!("{HEVC} -c:a aac -ac 6"));
}

#[test]
fn times_continue_over_the_wrap() {
    check(&format!("{H264} -c:a aac -output_ts_offset 95441.5"));
}
