//! Running a task on files, and reading what it made.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;
use sluice_media::{
    av::{AudioWork, AvTask, Concat, Report, Transcode, VideoWork},
    format::Format,
    task::{Done, Failure},
};
use sluice_worker::av;

pub use crate::clips::ffmpeg;
use crate::clips::{LIMITS, folder};

/// A conversion that asks for nothing but the format.
pub fn to(format: Format) -> Transcode {
    Transcode {
        format,
        range: None,
        video: Some(VideoWork::default()),
        audio: AudioWork::default(),
        keep_tags: true,
    }
}

/// A result, with what was said on the way.
#[derive(Debug)]
pub struct Made {
    pub path: PathBuf,
    pub done: Done,
    pub shares: Vec<f32>,
}

pub fn convert(clip: &Path, task: Transcode) -> Result<Made, Failure> {
    let format = task.format;
    perform(&AvTask::Transcode(task), &[clip], format)
}

pub fn join(clips: &[&Path], task: Concat) -> Result<Made, Failure> {
    let format = task.format;
    perform(&AvTask::Concat(task), clips, format)
}

pub fn perform(task: &AvTask, inputs: &[&Path], format: Format) -> Result<Made, Failure> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = folder().join(format!(
        "made-{}-{number}.{}",
        std::process::id(),
        format.extension()
    ));
    let output = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("a place for the result");
    let inputs = inputs
        .iter()
        .map(|path| File::open(path).expect("a clip").into())
        .collect();
    let mut shares = Vec::new();
    let done = av::perform(task, inputs, vec![output.into()], &LIMITS, &mut |report| {
        if let Report::Working { share } = report {
            shares.push(share);
        }
    })?;
    Ok(Made { path, done, shares })
}

impl Drop for Made {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Made {
    pub fn probed(&self) -> Probed {
        probed(&self.path)
    }
}

/// Facts of a file by ffprobe.
#[derive(Debug)]
pub struct Probed(Value);

pub fn probed(path: &Path) -> Probed {
    let output = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-of",
            "json",
            "-show_streams",
            "-show_format",
        ])
        .arg(path)
        .output()
        .expect("ffprobe runs");
    assert!(output.status.success(), "{path:?} cannot be probed");
    Probed(serde_json::from_slice(&output.stdout).expect("JSON"))
}

impl Probed {
    pub fn stream(&self, kind: &str) -> Option<&Value> {
        let streams = self.0["streams"].as_array()?;
        streams.iter().find(|stream| stream["codec_type"] == kind)
    }

    /// Returns the codec of the first track of a kind; empty: there is none.
    pub fn codec(&self, kind: &str) -> &str {
        self.text(kind, "codec_name")
    }

    pub fn text(&self, kind: &str, name: &str) -> &str {
        let stream = self.stream(kind);
        stream
            .and_then(|stream| stream[name].as_str())
            .unwrap_or("")
    }

    pub fn number(&self, kind: &str, name: &str) -> i64 {
        self.stream(kind)
            .and_then(|stream| stream[name].as_i64())
            .unwrap_or(-1)
    }

    pub fn size(&self) -> (i64, i64) {
        (
            self.number("video", "width"),
            self.number("video", "height"),
        )
    }

    /// In square pixels.
    pub fn shown_size(&self) -> (i64, i64) {
        let (width, height) = self.size();
        let ratio = self.text("video", "sample_aspect_ratio").split_once(':');
        let ratio = ratio.and_then(|(x, y)| Some((x.parse::<i64>().ok()?, y.parse::<i64>().ok()?)));
        match ratio {
            Some((x, y)) if y > 0 => (width * x / y, height),
            _ => (width, height),
        }
    }

    pub fn duration_s(&self) -> f64 {
        let text = self.0["format"]["duration"].as_str().unwrap_or("0");
        text.parse().unwrap_or(0.0)
    }

    pub fn tag(&self, name: &str) -> Option<&str> {
        let tags = self.0["format"]["tags"].as_object()?;
        let found = tags.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.as_str())
    }
}

/// Returns ffmpeg's complaints while it decodes a file.
pub fn complaints(path: &Path) -> String {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-i"])
        .arg(path)
        .args(["-fps_mode", "passthrough", "-f", "null", "-"])
        .output()
        .expect("ffmpeg runs");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The luma in the middle of each frame.
pub fn luma(path: &Path) -> Vec<u8> {
    const SIDE: usize = 16;
    let bytes = ffmpeg(
        path,
        "-map 0:v -fps_mode passthrough -enc_time_base 1:1000 -vf scale=16:16:flags=area,format=yuv420p -f rawvideo",
    );
    bytes
        .chunks_exact(SIDE * SIDE * 3 / 2)
        .map(|video_frame| video_frame[SIDE * SIDE / 2 + SIDE / 2])
        .collect()
}

/// Samples of the first channel.
pub fn samples(path: &Path) -> Vec<f32> {
    let bytes = ffmpeg(path, "-map 0:a -ac 1 -f f32le");
    let samples = bytes.as_chunks::<4>().0.iter();
    samples.copied().map(f32::from_le_bytes).collect()
}
