//! Streams by Debian's ffmpeg, and ffprobe's report of them.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Packet as reported by ffprobe.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    pub pts: i64,
    pub dts: i64,
    pub key: bool,
    pub sha256: String,
}

pub fn run(arguments: &[&str]) {
    let output = Command::new("ffmpeg")
        .args(["-hide_banner", "-nostdin", "-y", "-loglevel", "error"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("ffmpeg starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// Two seconds of a moving frame and a tone in a transport stream made with these options.
pub fn stream(folder: &Path, options: &str) -> PathBuf {
    let path = folder.join("stream.ts");
    let inputs = "-f lavfi -i testsrc2=size=320x180:rate=30:duration=2 \
                  -f lavfi -i sine=frequency=440:sample_rate=48000:duration=2";
    let mut arguments: Vec<&str> = inputs.split_whitespace().collect();
    arguments.extend(options.split_whitespace());
    let target = path.display().to_string();
    arguments.extend(["-f", "mpegts", &target]);
    run(&arguments);
    path
}

/// The packets of a file's stream (`v` or `a`), with times in ticks of its time base.
pub fn packets(path: &Path, stream: &str) -> Vec<Probed> {
    let output = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", stream, "-of", "default"])
        .args(["-show_entries", "packet=pts,dts,flags,data_hash"])
        .args(["-show_data_hash", "sha256"])
        .arg(path)
        .output()
        .expect("ffprobe starts");
    let text = String::from_utf8(output.stdout).unwrap();
    // Side data breaks the lines of the other writers.
    text.split("[PACKET]").skip(1).map(probed).collect()
}

fn probed(packet: &str) -> Probed {
    let field = |name: &str| {
        let found = packet.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("{name} in {packet}"))
    };
    Probed {
        pts: field("pts=").parse().unwrap(),
        dts: field("dts=").parse().unwrap(),
        key: field("flags=").starts_with('K'),
        sha256: field("data_hash=SHA256:").to_owned(),
    }
}

/// A hash of every frame that ffmpeg decodes from a file's video.
pub fn decoded_video_frames(path: &Path) -> Vec<String> {
    let output = Command::new("ffmpeg")
        .args(["-hide_banner", "-nostdin", "-loglevel", "error", "-i"])
        .arg(path)
        .args([
            "-map",
            "0:v",
            "-fps_mode",
            "passthrough",
            "-f",
            "framemd5",
            "-",
        ])
        .output()
        .expect("ffmpeg starts");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit(',').next())
        .map(|hash| hash.trim().to_owned())
        .collect()
}

/// Returns ffmpeg's output at the level of warnings while it reads all of a file.
pub fn complaints(path: &Path) -> String {
    let output = Command::new("ffmpeg")
        .args(["-hide_banner", "-nostdin", "-loglevel", "warning", "-i"])
        .arg(path)
        .args(["-map", "0", "-f", "null", "-"])
        .output()
        .expect("ffmpeg starts");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
