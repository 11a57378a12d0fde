//! Source material: the trailer of Big Buck Bunny (`scripts/install.sh bench` fetches it), or a generated clip in its
//! place.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use sluice_testkit::Failure;

/// The clip in moviepy's source archive: 55 s, 1280×720, 24 frames a second, H.264 and MP3.
const TRAILER: &str = "target/tools/film/trailer.mp4";

/// Returns a video of that size and length below `target/load`, H.264 and AAC at a high quality; makes it when missing.
pub(super) fn obtain(root: &Path, height: u32, seconds: u32) -> Result<PathBuf, Failure> {
    let path = root.join(format!("target/load/clip-{height}-{seconds}.mp4"));
    if path.exists() {
        return Ok(path);
    }
    println!("making {} (once, some minutes)", path.display());
    let trailer = root.join(TRAILER);
    let scale = format!("scale=-2:{height}");
    let drawn = format!("testsrc2=size=1920x1080:rate=24:duration={seconds}");
    let tone = format!("sine=frequency=440:duration={seconds}");
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-y", "-loglevel", "error"]);
    match trailer.exists() {
        true => command.args(["-stream_loop", "-1", "-i"]).arg(&trailer),
        false => command.args(["-f", "lavfi", "-i", &drawn, "-f", "lavfi", "-i", &tone]),
    };
    let unfinished = path.with_extension("unfinished.mp4");
    let status = command
        .args(["-t", &seconds.to_string(), "-vf", &scale])
        .args([
            "-c:v", "libx264", "-preset", "faster", "-crf", "18", "-g", "250",
        ])
        .args(["-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "160k"])
        .args(["-movflags", "+faststart"])
        .arg(&unfinished)
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("ffmpeg cannot make a video: {status}").into());
    }
    std::fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// Returns a video of about that many hours: one video repeated without recoding.
pub(super) fn obtain_long(root: &Path, hours: u32) -> Result<PathBuf, Failure> {
    let path = root.join(format!("target/load/clip-{hours}h.mp4"));
    if path.exists() {
        return Ok(path);
    }
    let one = obtain(root, 720, 60)?;
    println!("making {} (once)", path.display());
    let unfinished = path.with_extension("unfinished.mp4");
    let status = Command::new("ffmpeg")
        .args(["-nostdin", "-y", "-loglevel", "error"])
        .args(["-stream_loop", &(hours * 60 - 1).to_string(), "-i"])
        .arg(&one)
        .args(["-c", "copy", "-movflags", "+faststart"])
        .arg(&unfinished)
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("ffmpeg cannot make a long video: {status}").into());
    }
    std::fs::rename(&unfinished, &path)?;
    Ok(path)
}
