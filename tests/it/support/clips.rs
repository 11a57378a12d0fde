//! Clips of every kind that users have, made by Debian's ffmpeg, and what ffmpeg makes of the results.
//!
//! Clips are made once per machine in `target/test-media`, under a lock, and moved into place whole.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tokio::process::Command;

use super::{Failure, ffprobe, media::target_folder};

/// Changes when clips of the same name would look different.
const GENERATION: u32 = 1;

/// Words that mean several arguments.
const WORDS: &[(&str, &str)] = &[
    // 25 frames a second with a counter in them, 2 s.
    (
        "VIDEO",
        "-f lavfi -i testsrc2=size=160x90:rate=25:duration=2",
    ),
    // 440 Hz, 2 s.
    (
        "AUDIO",
        "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=2",
    ),
    (
        "H264",
        "-c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p",
    ),
];

/// A clip by that name, whose end says the container, made with these arguments, which are separated by spaces. Blocks.
pub fn clip(name: &str, arguments: &str) -> Result<PathBuf, Failure> {
    let folder = target_folder()
        .join("test-media")
        .join(format!("clips-{GENERATION}"));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    let lock = File::create(folder.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !path.exists() {
        let unfinished = folder.join(format!("unfinished-{name}"));
        let mut command = std::process::Command::new("ffmpeg");
        command.args(["-v", "error", "-nostdin", "-y"]);
        for word in arguments.split_whitespace() {
            let meaning = WORDS.iter().find(|(short, _)| *short == word);
            command.args(meaning.map_or(word, |it| it.1).split_whitespace());
        }
        let made = command.args(["-threads", "1"]).arg(&unfinished).output()?;
        if !made.status.success() {
            return Err(format!("{name}: {}", String::from_utf8_lossy(&made.stderr)).into());
        }
        std::fs::rename(unfinished, &path)?;
    }
    Ok(path)
}

/// Facts of a file by ffprobe.
#[derive(Clone, Debug)]
pub struct Probed(Value);

impl Probed {
    pub async fn of(path: &Path) -> Result<Self, Failure> {
        let (json, _) = ffprobe::run(&["-show_streams", "-show_format"], path).await?;
        Ok(Self(serde_json::from_slice(&json)?))
    }

    /// The first track of a kind: `video`, `audio`.
    fn track(&self, kind: &str) -> &Value {
        let tracks = self.0["streams"].as_array();
        let found = tracks.and_then(|all| all.iter().find(|it| it["codec_type"] == kind));
        found.unwrap_or(&Value::Null)
    }

    /// Returns the codec of the first track of a kind; empty: there is none.
    pub fn codec(&self, kind: &str) -> &str {
        self.track(kind)["codec_name"].as_str().unwrap_or_default()
    }

    pub fn channels(&self) -> u64 {
        self.track("audio")["channels"].as_u64().unwrap_or_default()
    }

    /// Returns the size as a player shows it: in square pixels, and turned.
    pub fn shown_size(&self) -> (u64, u64) {
        let track = self.track("video");
        let side = |name: &str| track[name].as_u64().unwrap_or_default();
        let (mut width, height) = (side("width"), side("height"));
        let ratio = track["sample_aspect_ratio"].as_str().unwrap_or_default();
        if let Some((across, down)) = ratio.split_once(':')
            && let (Ok(across), Ok(down @ 1..)) = (across.parse::<u64>(), down.parse::<u64>())
        {
            width = width * across / down;
        }
        let lists = track["side_data_list"].as_array().into_iter().flatten();
        let turns = lists.filter_map(|it| it["rotation"].as_i64()).next();
        match turns.unwrap_or_default() % 180 {
            0 => (width, height),
            _ => (height, width),
        }
    }

    /// Returns the duration of the whole file.
    pub fn duration_s(&self) -> f64 {
        let text = self.0["format"]["duration"].as_str().unwrap_or_default();
        text.parse().unwrap_or_default()
    }
}

/// Returns ffmpeg's standard output; a file that it complains about fails.
pub async fn read_by_ffmpeg(path: &Path, arguments: &str) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-xerror", "-i"]);
    command.arg(path).args(arguments.split_whitespace());
    let output = command.arg("-").kill_on_drop(true).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() && said.is_empty() {
        true => Ok(output.stdout),
        false => Err(format!("ffmpeg: {}: {said}", output.status).into()),
    }
}

/// Fails when a decoder complains about any of it.
pub async fn decodes(path: &Path) -> Result<(), Failure> {
    // Two frames may share a time in the time base that ffmpeg infers for a variable rate.
    let arguments = "-fps_mode passthrough -enc_time_base -1 -f null";
    read_by_ffmpeg(path, arguments).await.map(drop)
}

/// The hash of each packet of the first track of a kind (`v`, `a`), in the order of the file.
pub async fn packets(path: &Path, kind: &str) -> Result<Vec<String>, Failure> {
    let arguments = format!("-map 0:{kind}:0 -c copy -f framehash -hash md5");
    let lines = String::from_utf8(read_by_ffmpeg(path, &arguments).await?)?;
    let packets = lines.lines().filter(|line| !line.starts_with('#'));
    Ok(packets
        .filter_map(|line| line.rsplit(',').next())
        .map(|hash| hash.trim().to_owned())
        .collect())
}

/// Fails unless a track was copied. Its first packet is an exception: a frame's may carry its parameter sets, and that
/// of audio, which an edit list hides since it only primes the decoder, may be missing; as yet its last one is, too.
pub async fn check_copied(source: &Path, result: &Path, kind: &str) -> Result<(), Failure> {
    let (before, after) = (packets(source, kind).await?, packets(result, kind).await?);
    let rest = before.get(1..).ok_or("the source has no packet")?;
    let is_copied = match after.len() == before.len() {
        true => after[1..] == *rest,
        false => kind == "a" && after.len() + 1 >= rest.len() && rest.starts_with(&after),
    };
    match is_copied {
        true => Ok(()),
        false => {
            let (before, after) = (before.len(), after.len());
            Err(format!("{kind}: {after} packets, not copies of {before}").into())
        }
    }
}

/// Samples of the first channel at 48 kHz, in −1 … 1.
pub async fn samples(path: &Path) -> Result<Vec<f32>, Failure> {
    let bytes = read_by_ffmpeg(path, "-map 0:a:0 -ac 1 -ar 48000 -f f32le").await?;
    let samples = bytes.as_chunks::<4>().0.iter();
    Ok(samples.copied().map(f32::from_le_bytes).collect())
}

/// Writes the bytes to a file that is removed on drop; `extension` without its dot.
pub fn on_disk(bytes: &[u8], extension: &str) -> Result<tempfile::NamedTempFile, Failure> {
    let suffix = format!(".{extension}");
    let mut file = tempfile::Builder::new().suffix(&suffix).tempfile()?;
    file.write_all(bytes)?;
    Ok(file)
}
