//! Every codec that is carried, as ffmpeg muxes it, compared with ffprobe and with ffmpeg's own remuxing.

use std::{fs, path::Path};

use sha2::{Digest, Sha256};
use sluice_media::codec::{AudioCodec, VideoCodec};

use crate::{Demuxed, demux, ffmpeg};

const H264: &str = "-c:v libx264 -preset ultrafast -bf 3 -g 30 -x264-params b-adapt=0";
const HEVC: &str = "-c:v libx265 -preset ultrafast -x265-params bframes=3:keyint=30:log-level=none";

/// Checks a clean stream: nothing is counted, and times, keys and bytes are those that ffmpeg reports.
fn check(options: &str, video: VideoCodec, audio: AudioCodec) -> (Demuxed, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = ffmpeg::stream(folder.path(), options);
    let stream = fs::read(&path).unwrap();
    let demuxed = demux(&stream, 7 * 188);

    assert_eq!(demuxed.last_damage, None, "{options}");
    assert_eq!(demuxed.counters.continuity_errors, 0);
    assert_eq!(demuxed.counters.packets, stream.len() as u64 / 188);
    assert_eq!(demuxed.video_configs.len(), 1, "{options}");
    assert_eq!(demuxed.audio_configs.len(), 1, "{options}");
    assert_eq!(demuxed.video_configs[0].codec, video);
    assert_eq!(demuxed.audio_configs[0].codec, audio);
    assert_eq!(demuxed.audio_configs[0].sample_rate, 48_000);
    check_times(&demuxed, &path);
    check_audio(&demuxed, &path);
    check_video_frames(&demuxed, &path);
    (demuxed, stream)
}

fn check_times(demuxed: &Demuxed, path: &Path) {
    let probed = ffmpeg::packets(path, "v");
    assert_eq!(demuxed.video_frames.len(), probed.len());
    // ffprobe moves a stream that wraps soon to before zero: only distances are compared.
    let shift = probed[0].dts - demuxed.video_frames[0].dts_90k;
    for (video_frame, packet) in demuxed.video_frames.iter().zip(&probed) {
        assert_eq!(video_frame.dts_90k + shift, packet.dts);
        let pts_90k = video_frame.dts_90k + i64::from(video_frame.cts_90k);
        assert_eq!(pts_90k + shift, packet.pts);
        assert_eq!(video_frame.key, packet.key, "at {}", packet.dts);
    }
    let probed = ffmpeg::packets(path, "a");
    assert_eq!(demuxed.frames.len(), probed.len());
    for (frame, packet) in demuxed.frames.iter().zip(&probed) {
        let apart = frame.pts_90k + shift - packet.pts;
        assert!(apart.abs() <= 1, "{apart} ticks from {}", packet.pts);
    }
}

/// The frames' bytes are those of ffmpeg's own remuxing to MP4.
fn check_audio(demuxed: &Demuxed, path: &Path) {
    let remuxed = path.with_extension("mp4");
    let (from, to) = (path.display().to_string(), remuxed.display().to_string());
    ffmpeg::run(&["-i", &from, "-map", "0:a", "-c", "copy", &to]);
    let expected = ffmpeg::packets(&remuxed, "a");
    let hash = |data: &[u8]| {
        let digest = Sha256::digest(data);
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let got: Vec<String> = demuxed
        .frames
        .iter()
        .map(|frame| hash(&frame.data))
        .collect();
    let expected: Vec<String> = expected.into_iter().map(|packet| packet.sha256).collect();
    assert_eq!(got, expected);
}

/// A decoder sees the same frames in configuration and units as in the stream itself.
fn check_video_frames(demuxed: &Demuxed, path: &Path) {
    let config = &demuxed.video_configs[0];
    let mut plain = Vec::new();
    for set in parameter_sets(config.codec, &config.record) {
        plain.extend([0, 0, 0, 1]);
        plain.extend(set);
    }
    for video_frame in &demuxed.video_frames {
        let mut rest = &video_frame.data[..];
        while let Some((length, behind)) = rest.split_first_chunk() {
            let (nal, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
            plain.extend([0, 0, 0, 1]);
            plain.extend(nal);
            rest = behind;
        }
    }
    let extension = match config.codec {
        VideoCodec::Avc => "h264",
        _ => "hevc",
    };
    let written = path.with_extension(extension);
    fs::write(&written, plain).unwrap();
    let expected = ffmpeg::decoded_video_frames(path);
    assert_eq!(expected.len(), 60);
    assert_eq!(ffmpeg::decoded_video_frames(&written), expected);
}

/// The NAL units in a record.
fn parameter_sets(codec: VideoCodec, record: &[u8]) -> Vec<Vec<u8>> {
    let mut sets = Vec::new();
    let mut at = if codec == VideoCodec::Avc { 5 } else { 23 };
    let arrays = if codec == VideoCodec::Avc {
        2
    } else {
        usize::from(record[22])
    };
    for _ in 0..arrays {
        let count = if codec == VideoCodec::Avc {
            at += 1;
            usize::from(record[at - 1] & 0x1f)
        } else {
            at += 3;
            usize::from(record[at - 1])
        };
        for _ in 0..count {
            let length = usize::from(u16::from_be_bytes([record[at], record[at + 1]]));
            sets.push(record[at + 2..at + 2 + length].to_vec());
            at += 2 + length;
        }
    }
    sets
}

#[test]
fn h264_with_b_frames_and_aac() {
    let (demuxed, stream) = check(
        &format!("{H264} -c:a aac"),
        VideoCodec::Avc,
        AudioCodec::Aac,
    );
    let reordered = demuxed
        .video_frames
        .iter()
        .filter(|p| p.cts_90k != 0)
        .count();
    assert!(reordered > 30, "{reordered} frames are shown out of order");
    let keys: Vec<usize> = (0..60).filter(|at| demuxed.video_frames[*at].key).collect();
    assert_eq!(keys, [0, 30]);

    for piece in [1, 100, 188, 1316, 65_536] {
        let again = demux(&stream, piece);
        assert_eq!(again.bytes(), demuxed.bytes(), "in pieces of {piece}");
        assert_eq!(again.counters, demuxed.counters);
    }
}

#[test]
fn hevc_and_mp3() {
    let options = format!("{HEVC} -c:a libmp3lame -b:a 128k");
    check(&options, VideoCodec::Hevc, AudioCodec::Mp3);
}

#[test]
fn h264_and_opus() {
    let options = format!("{H264} -c:a libopus -b:a 96k");
    let (demuxed, _) = check(&options, VideoCodec::Avc, AudioCodec::Opus);
    assert_eq!(demuxed.audio_configs[0].channels, 1);
}

#[test]
fn times_continue_over_the_wrap() {
    let options = format!("{H264} -c:a aac -output_ts_offset 95441.5");
    let (demuxed, _) = check(&options, VideoCodec::Avc, AudioCodec::Aac);
    let (first, last) = (&demuxed.video_frames[0], &demuxed.video_frames[59]);
    assert!(first.dts_90k < 1 << 33 && last.dts_90k > 1 << 33);
}

#[test]
fn frames_that_tell_their_length_need_no_successor() {
    let options = format!("{H264} -c:a aac -omit_video_pes_length 0");
    check(&options, VideoCodec::Avc, AudioCodec::Aac);
}

/// Returns the demuxed stream of one second with these options.
fn demuxed(options: &str) -> Demuxed {
    let folder = tempfile::tempdir().unwrap();
    let path = ffmpeg::stream(folder.path(), &format!("-t 1 {options}"));
    demux(&fs::read(path).unwrap(), 1316)
}

#[test]
fn what_is_not_carried_is_named() {
    for (options, video_frames, words) in [
        (
            "-c:v libx264 -preset ultrafast -c:a ac3",
            30,
            "audio codec AC-3 is not carried: choose AAC",
        ),
        (
            "-c:v libx264 -preset ultrafast -c:a aac -mpegts_flags latm",
            30,
            "audio codec AAC in LATM is not carried: choose AAC",
        ),
        (
            "-c:v libx264 -preset ultrafast -c:a mp2",
            30,
            "MPEG audio is not supported: layer 2; layer 3 is",
        ),
        (
            "-c:v mpeg2video -c:a aac",
            0,
            "video codec MPEG-2 is not carried: choose H.264 or HEVC",
        ),
    ] {
        let demuxed = demuxed(options);
        assert_eq!(demuxed.video_frames.len(), video_frames, "{options}");
        assert_eq!(demuxed.frames.is_empty(), video_frames > 0, "{options}");
        assert_eq!(demuxed.last_damage.as_deref(), Some(words));
    }
}

#[test]
fn one_track_of_a_kind_is_carried() {
    let demuxed = demuxed("-c:v libx264 -preset ultrafast -c:a aac -map 0:v -map 1:a -map 1:a");
    let words = "only the first audio track is carried";
    assert_eq!(demuxed.last_damage.as_deref(), Some(words));
    assert_eq!(
        (demuxed.video_frames.len(), demuxed.audio_configs.len()),
        (30, 1)
    );
}

#[test]
fn audio_alone_and_frame_alone() {
    let audio = demuxed("-vn -c:a aac");
    assert!(audio.video_frames.is_empty() && audio.frames.len() > 40);
    let video_frame = demuxed("-an -c:v libx264 -preset ultrafast");
    assert!(video_frame.frames.is_empty() && video_frame.video_frames.len() == 30);
}

#[test]
fn a_program_may_become_another() {
    let folder = tempfile::tempdir().unwrap();
    let second = "-mpegts_start_pid 0x200 -mpegts_pmt_start_pid 0x1010 -mpegts_service_id 2";
    let mut stream = Vec::new();
    for options in [
        format!("-t 1 {H264} -c:a aac"),
        format!("-t 1 {HEVC} -c:a libmp3lame {second}"),
        format!("-t 1 {HEVC} -an {second}"),
        format!("-t 1 {HEVC} -s 640x360 -c:a aac {second}"),
    ] {
        stream.extend(fs::read(ffmpeg::stream(folder.path(), &options)).unwrap());
    }
    let demuxed = demux(&stream, 1316);
    let video: Vec<_> = demuxed
        .video_configs
        .iter()
        .map(|c| (c.codec, c.width))
        .collect();
    let expected = [
        (VideoCodec::Avc, 320),
        (VideoCodec::Hevc, 320),
        (VideoCodec::Hevc, 640),
    ];
    assert_eq!(video, expected);
    let audio: Vec<_> = demuxed.audio_configs.iter().map(|c| c.codec).collect();
    assert_eq!(audio, [AudioCodec::Aac, AudioCodec::Mp3, AudioCodec::Aac]);
    // A stream that restarts on the same PIDs breaks their counters: at worst the frame before is left out.
    assert!(
        demuxed.video_frames.len() >= 118,
        "{}",
        demuxed.video_frames.len()
    );
}
