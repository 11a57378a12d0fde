//! What Debian's ffprobe makes of the result: any complaint is a failure.

use std::io::Write;

use serde::Deserialize;
use tokio::process::Command;

use super::Failure;

/// One stream of the media, read to its end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Stream {
    /// `h264`, `hevc`, `av1`, `aac`, `opus`.
    #[serde(rename = "codec_name")]
    pub codec: String,
    /// As a decimal number.
    #[serde(rename = "nb_read_packets")]
    packets: String,
}

impl Stream {
    /// Pictures, or frames of audio.
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
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-count_packets", "-of", "json"]);
    command.args(["-show_entries", "stream=codec_name,nb_read_packets"]);
    let output = command.arg(source).kill_on_drop(true).output().await?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !complaints.is_empty() {
        return Err(format!("ffprobe {source}: {}: {complaints}", output.status).into());
    }
    let output: Output = serde_json::from_slice(&output.stdout)?;
    Ok(output.streams)
}
