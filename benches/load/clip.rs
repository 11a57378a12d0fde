//! FLV clip that every load publisher sends: made once by ffmpeg, read once, kept ready for the wire.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use sluice_testkit::{Failure, flv::Clip};

/// Length of the file; the publishers repeat it.
const CLIP_SECONDS: u32 = 20;
const FRAMES_PER_SECOND: u32 = 30;
/// Between two other frames.
const B_FRAMES: u32 = 2;
const AUDIO_BITRATE_BPS: u64 = 128_000;

/// The clip of this total bitrate from `folder`, made there when it is missing.
pub(crate) fn obtain(folder: &Path, bitrate_bps: u64) -> Result<Arc<Clip>, Failure> {
    read(&flv(folder, bitrate_bps, B_FRAMES)?)
}

/// The same without B-frames, and the path of its file.
pub(crate) fn obtain_in_order(
    folder: &Path,
    bitrate_bps: u64,
) -> Result<(Arc<Clip>, PathBuf), Failure> {
    let path = flv(folder, bitrate_bps, 0)?;
    Ok((read(&path)?, path))
}

fn read(path: &Path) -> Result<Arc<Clip>, Failure> {
    let clip = Clip::read(&std::fs::read(path)?, CLIP_SECONDS * 1000)?;
    Ok(Arc::new(clip))
}

/// The clip as MPEG-TS, for programs that send files.
pub(crate) fn transport_stream(folder: &Path, bitrate_bps: u64) -> Result<PathBuf, Failure> {
    let flv = flv(folder, bitrate_bps, B_FRAMES)?;
    let path = flv.with_extension("ts");
    if !path.exists() {
        let mut command = Command::new("ffmpeg");
        command
            .args(["-nostdin", "-v", "error", "-y", "-i"])
            .arg(&flv)
            .args(["-c", "copy", "-f", "mpegts"]);
        make(&mut command, &path)?;
    }
    Ok(path)
}

fn flv(folder: &Path, bitrate_bps: u64, b_frames: u32) -> Result<PathBuf, Failure> {
    let order = if b_frames == 0 { "-in-order" } else { "" };
    let path = folder.join(format!("clip-{}k{order}.flv", bitrate_bps / 1000));
    if !path.exists() {
        println!("making {} (once, under a minute)", path.display());
        encode(&path, bitrate_bps, b_frames)?;
    }
    Ok(path)
}

/// Runs a program whose last argument is the file that it makes.
fn make(command: &mut Command, path: &Path) -> Result<(), Failure> {
    let unfinished = PathBuf::from(format!("{}.part", path.display()));
    let status = command
        .arg(&unfinished)
        .stdin(Stdio::null())
        .status()
        .map_err(|cause| format!("ffmpeg does not start: {cause}"))?;
    if !status.success() {
        return Err(format!("ffmpeg could not make {}: {status}", path.display()).into());
    }
    Ok(std::fs::rename(unfinished, path)?)
}

/// A moving test frame with noise, so that the rate is real and not filler, with so many B-frames and a key frame each 2 s.
fn encode(path: &Path, bitrate_bps: u64, b_frames: u32) -> Result<(), Failure> {
    let size = if bitrate_bps >= 3_000_000 {
        "1920x1080"
    } else {
        "1280x720"
    };
    let video_bps = bitrate_bps.saturating_sub(AUDIO_BITRATE_BPS).to_string();
    let video_frame = format!("testsrc2=size={size}:rate={FRAMES_PER_SECOND},noise=alls=12:allf=t");
    let mut command = Command::new("ffmpeg");
    command
        .args([
            "-nostdin",
            "-v",
            "error",
            "-y",
            "-f",
            "lavfi",
            "-i",
            &video_frame,
        ])
        .args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"])
        .args(["-t", &CLIP_SECONDS.to_string(), "-pix_fmt", "yuv420p"])
        .args([
            "-c:v",
            "libx264",
            "-preset",
            "veryfast",
            "-profile:v",
            "high",
            "-bf",
            &b_frames.to_string(),
        ])
        .args(["-g", "60", "-keyint_min", "60", "-sc_threshold", "0"])
        .args([
            "-b:v", &video_bps, "-minrate", &video_bps, "-maxrate", &video_bps, "-bufsize",
            &video_bps,
        ])
        .args(["-x264-params", "nal-hrd=cbr"])
        .args([
            "-c:a",
            "aac",
            "-b:a",
            &AUDIO_BITRATE_BPS.to_string(),
            "-ac",
            "2",
        ])
        .args(["-f", "flv"]);
    make(&mut command, path)
}
