//! Check by Debian's ffprobe: any complaint about the stream is a failure.

use std::{ffi::OsStr, io::Write};

use serde::Deserialize;
use tokio::process::Command;

use super::Failure;

/// A stream of the media, read to its end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Stream {
    /// `h264`, `hevc`, `av1`, `aac`, `opus`.
    #[serde(rename = "codec_name")]
    pub codec: String,
    /// Number of packets, in decimal.
    #[serde(rename = "nb_read_packets")]
    packets: String,
}

impl Stream {
    /// Video frames, or audio frames.
    pub fn packets(&self) -> usize {
        self.packets.parse().unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
struct Output {
    streams: Vec<Stream>,
}

/// Reads an init section with its segments.
pub async fn probe_bytes(init_and_segments: &[u8]) -> Result<Vec<Stream>, Failure> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(init_and_segments)?;
    probe(&file.path().display().to_string()).await
}

/// Reads a file or an address, such as a playlist's.
pub async fn probe(source: &str) -> Result<Vec<Stream>, Failure> {
    let entries = "stream=codec_name,nb_read_packets";
    let arguments = ["-count_packets", "-show_entries", entries];
    let (json, complaints) = run(&arguments, source).await?;
    if !complaints.is_empty() {
        return Err(format!("ffprobe {source}: {complaints}").into());
    }
    let output: Output = serde_json::from_slice(&json)?;
    Ok(output.streams)
}

/// Returns its JSON, and its complaints; fails when it cannot read the source.
pub(super) async fn run(
    arguments: &[&str],
    source: impl AsRef<OsStr>,
) -> Result<(Vec<u8>, String), Failure> {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-of", "json"]).args(arguments);
    let source = source.as_ref();
    let output = command.arg(source).kill_on_drop(true).output().await?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("ffprobe {source:?}: {}: {complaints}", output.status).into());
    }
    Ok((output.stdout, complaints))
}
