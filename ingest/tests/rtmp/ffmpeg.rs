//! The real encoders: Debian's ffmpeg, and a current one where Python's `imageio-ffmpeg` brought it.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use tokio::process::Command;

use crate::support::DEADLINE;

pub const DEBIAN: &str = "ffmpeg";

/// The path of a current ffmpeg; `None` where there is none.
pub async fn current() -> Option<PathBuf> {
    let script = "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())";
    let asked = Command::new("python3").args(["-c", script]).output().await;
    let output = asked.ok().filter(|output| output.status.success())?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.exists().then_some(path)
}

/// Runs to the end, at most for the tests' deadline.
pub async fn run(program: impl AsRef<Path>, arguments: &[&str]) -> Output {
    let child = Command::new(program.as_ref())
        .args(["-hide_banner", "-nostdin", "-y"])
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    tokio::time::timeout(DEADLINE * 2, child)
        .await
        .expect("ffmpeg ends in time")
        .expect("ffmpeg starts")
}

/// Makes a source of some seconds with a frame and a tone, and returns its path.
pub async fn source(program: impl AsRef<Path>, folder: &Path, codecs: &[&str]) -> String {
    let path = folder.join("source.mp4").display().to_string();
    let mut arguments = vec![
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=320x180:rate=30:duration=3",
        "-f",
        "lavfi",
        "-i",
        "sine=frequency=440:sample_rate=48000:duration=3",
    ];
    arguments.extend(codecs);
    arguments.push(&path);
    let made = run(program, &arguments).await;
    assert!(made.status.success(), "{}", stderr(&made));
    path
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Packet as reported by ffprobe, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    pub pts_ms: f64,
    pub dts_ms: f64,
    pub key: bool,
}

/// The packets of one stream of a file: `v` or `a`.
pub async fn packets(path: &str, stream: &str) -> Vec<Packet> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", stream, "-of", "csv=p=0"])
        .args(["-show_entries", "packet=pts_time,dts_time,flags", path])
        .output()
        .await
        .expect("ffprobe starts");
    let text = String::from_utf8(output.stdout).unwrap();
    // Packets with side data come with a line of commas alone.
    text.lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let ms = |field: &str| field.parse::<f64>().unwrap() * 1000.0;
            Packet {
                pts_ms: ms(fields[0]),
                dts_ms: ms(fields[1]),
                key: fields[2].starts_with('K'),
            }
        })
        .collect()
}
