//! Real encoders in, a real player's demuxer out: ffmpeg makes an FLV, the packager makes segments, ffprobe reads them.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use bytes::Bytes;

use super::*;
use crate::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};

/// The newest ffmpeg of PyPI's imageio-ffmpeg, for what Debian's cannot put into FLV.
const MODERN_FFMPEG: &str = "/root/.pyenv/versions/3.11.7/lib/python3.11/site-packages/\
                             imageio_ffmpeg/binaries/ffmpeg-linux-x86_64-v9.0.2";
const SOURCES: [&str; 8] = [
    "-f",
    "lavfi",
    "-i",
    "testsrc2=size=320x180:rate=30:duration=6.5",
    "-f",
    "lavfi",
    "-i",
    "sine=frequency=440:sample_rate=48000:duration=6.5",
];
const VIDEO_FRAMES: usize = 195;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sluice-hls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a program; its standard output. `None`, with a loud word, when it is not there.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    // SVT-AV1 writes to the standard error unless this is set.
    let Ok(output) = Command::new(program)
        .env("SVT_LOG", "0")
        .args(arguments)
        .output()
    else {
        eprintln!("SKIPPED: {program} is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && errors.is_empty(),
        "{program} {arguments:?}: {errors}"
    );
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Encodes the test frame and tone with these codec arguments into an FLV.
fn encode(ffmpeg: &str, codecs: &[&str], path: &Path) -> Option<Vec<u8>> {
    let mut arguments = vec!["-v", "error", "-y"];
    arguments.extend(SOURCES);
    arguments.extend(["-pix_fmt", "yuv420p", "-g", "60"]);
    arguments.extend(codecs);
    arguments.extend(["-f", "flv", path.to_str().unwrap()]);
    run(ffmpeg, &arguments)?;
    Some(std::fs::read(path).unwrap())
}

/// The units of an FLV file, legacy or enhanced (FourCC).
fn demux(flv: &[u8]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut at = 13;
    while at + 11 <= flv.len() {
        let tag = &flv[at..];
        let size = be24(&tag[1..]) as usize;
        let stamp_ms = i64::from(be24(&tag[4..]) | u32::from(tag[7]) << 24);
        let body = Bytes::copy_from_slice(&tag[11..11 + size]);
        match tag[0] {
            8 => units.extend(audio_unit(&body, stamp_ms * 90)),
            9 => units.extend(video_unit(&body, stamp_ms * 90)),
            _ => {}
        }
        at += 11 + size + 4;
    }
    units
}

fn be24(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}

fn video_unit(body: &Bytes, dts_90k: i64) -> Option<Unit> {
    let enhanced = body[0] & 0x80 != 0;
    let key = body[0] >> 4 & 7 == 1;
    let (codec, kind, rest) = if enhanced {
        let codec = match &body[1..5] {
            b"hvc1" => VideoCodec::Hevc,
            b"av01" => VideoCodec::Av1,
            _ => VideoCodec::Avc,
        };
        (codec, body[0] & 0x0f, 5)
    } else {
        (VideoCodec::Avc, body[1], 2)
    };
    let offset_ms = || (be24(&body[rest..]) as i32) << 8 >> 8;
    let (cts_90k, payload) = match (kind, codec) {
        (0, _) if enhanced => {
            let config = VideoConfig::parse(codec, body.slice(rest..)).unwrap();
            return Some(Unit::VideoConfig(Arc::new(config)));
        }
        (0, _) => {
            let config = VideoConfig::parse(codec, body.slice(rest + 3..)).unwrap();
            return Some(Unit::VideoConfig(Arc::new(config)));
        }
        (1, VideoCodec::Avc | VideoCodec::Hevc) => (offset_ms() * 90, rest + 3),
        (1 | 3, _) => (0, rest),
        _ => return None,
    };
    Some(Unit::Video(VideoUnit {
        dts_90k,
        cts_90k,
        key,
        data: body.slice(payload..),
    }))
}

fn audio_unit(body: &Bytes, pts_90k: i64) -> Option<Unit> {
    let (codec, kind, rest) = match body[0] >> 4 {
        9 => {
            let codec = if &body[1..5] == b"Opus" {
                AudioCodec::Opus
            } else {
                AudioCodec::Aac
            };
            (codec, body[0] & 0x0f, 5)
        }
        10 => (AudioCodec::Aac, body[1], 2),
        _ => return None,
    };
    match kind {
        0 => {
            let config = AudioConfig::parse(codec, body.slice(rest..)).unwrap();
            Some(Unit::AudioConfig(Arc::new(config)))
        }
        1 => Some(Unit::Audio(AudioUnit {
            pts_90k,
            data: body.slice(rest..),
        })),
        _ => None,
    }
}

/// Packages the file; what a player would have after fetching everything: the init section and all parts.
fn package(flv: &[u8]) -> (Vec<Output>, Vec<u8>) {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    for unit in demux(flv) {
        packager.push(unit, NOON_MS, &mut out);
    }
    packager.end_session(&mut out);
    assert_eq!(packager.dropped(), 0);
    let mut movie = Vec::new();
    for output in &out {
        match output {
            Output::Init(init) => movie.extend_from_slice(&init.data),
            Output::Part(part) => movie.extend_from_slice(&part.data),
            Output::SegmentEnd { .. } => {}
        }
    }
    (out, movie)
}

/// Presentation times in milliseconds of a stream's decoded frames, as ffprobe sees them.
fn presented_ms(path: &Path, stream: &str) -> Option<Vec<i64>> {
    let arguments = [
        "-v",
        "error",
        "-select_streams",
        stream,
        "-show_entries",
        "frame=pts_time",
        "-of",
        "csv=p=0",
        path.to_str().unwrap(),
    ];
    let text = run("ffprobe", &arguments)?;
    let seconds = text
        .lines()
        .filter_map(|line| line.trim_matches(',').parse::<f64>().ok());
    Some(
        seconds
            .map(|seconds| (seconds * 1_000.0).round() as i64)
            .collect(),
    )
}

/// Encodes, packages and reads back: every frame once, in order, at the encoder's own times.
fn check(name: &str, ffmpeg: &str, codecs: &[&str]) {
    let folder = Folder::new(name);
    let source = folder.0.join("source.flv");
    let Some(flv) = encode(ffmpeg, codecs, &source) else {
        return;
    };
    let (out, movie) = package(&flv);
    let read = reader::segments(&out);
    reader::check_always(&read, 4);
    reader::check_full_parts(&read);
    assert_eq!(read.len(), 4, "6.5 s in segments of 2 s");

    let path = folder.0.join("movie.mp4");
    std::fs::write(&path, &movie).unwrap();
    let Some(video_frames) = presented_ms(&path, "v") else {
        return;
    };
    assert_eq!(video_frames.len(), VIDEO_FRAMES);
    assert!(
        video_frames
            .windows(2)
            .all(|pair| (32..=35).contains(&(pair[1] - pair[0])))
    );
    let sent = demux(&flv);
    let first_ms = |units: &[Unit]| {
        let times = units.iter().filter_map(|unit| match unit {
            Unit::Video(video_frame) => Some(video_frame.dts_90k),
            _ => None,
        });
        times.min().unwrap() / 90
    };
    let mut expected: Vec<i64> = sent
        .iter()
        .filter_map(|unit| match unit {
            Unit::Video(video_frame) => {
                Some((video_frame.dts_90k + i64::from(video_frame.cts_90k)) / 90)
            }
            _ => None,
        })
        .map(|pts_ms| pts_ms - first_ms(&sent))
        .collect();
    expected.sort_unstable();
    assert_eq!(video_frames, expected);

    let audio_times = presented_ms(&path, "a").unwrap();
    let frames = sent
        .iter()
        .filter(|unit| matches!(unit, Unit::Audio(_)))
        .count();
    assert!(
        audio_times.len() + 2 >= frames,
        "{} of {frames} audio frames",
        audio_times.len()
    );
    run(
        "ffmpeg",
        &[
            "-v",
            "error",
            "-xerror",
            "-i",
            path.to_str().unwrap(),
            "-f",
            "null",
            "-",
        ],
    );
}

fn check_modern(name: &str, codecs: &[&str]) {
    if Path::new(MODERN_FFMPEG).exists() {
        check(name, MODERN_FFMPEG, codecs);
    } else {
        eprintln!("SKIPPED: {name} needs {MODERN_FFMPEG}");
    }
}

#[test]
fn h264_with_b_frames_and_aac() {
    check(
        "h264",
        "ffmpeg",
        &["-c:v", "libx264", "-bf", "2", "-c:a", "aac", "-ac", "2"],
    );
}

#[test]
fn hevc_and_aac() {
    let x265 = [
        "-c:v",
        "libx265",
        "-x265-params",
        "log-level=none:keyint=60:open-gop=0",
    ];
    check_modern(
        "hevc",
        &[&x265[..], &["-preset", "ultrafast", "-c:a", "aac"]].concat(),
    );
}

#[test]
fn av1_and_opus() {
    let svt = [
        "-c:v",
        "libsvtav1",
        "-preset",
        "12",
        "-svtav1-params",
        "pred-struct=1",
    ];
    check_modern("av1", &[&svt[..], &["-c:a", "libopus"]].concat());
}
