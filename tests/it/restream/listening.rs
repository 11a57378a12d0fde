//! ffmpeg that waits for one publisher and keeps what it gets.

use std::{path::PathBuf, process::Stdio};

use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::SOON;
use crate::support::{Failure, media::read_numbers_of};

pub struct Listening {
    child: Child,
    file: PathBuf,
    _folder: TempDir,
}

impl Listening {
    /// At this address, by these options; what comes is kept as the format of `name`.
    pub fn start(options: &[&str], url: &str, name: &str) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join(name);
        let child = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error"])
            .args(options)
            .args(["-i", url, "-c", "copy"])
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self {
            child,
            file,
            _folder: folder,
        })
    }

    async fn wait(&mut self) -> Result<(), Failure> {
        let status = timeout(SOON, self.child.wait()).await??;
        match status.success() {
            true => Ok(()),
            false => Err(format!("ffmpeg: {status}").into()),
        }
    }

    /// The numbers in what came, once the publisher has ended it.
    pub async fn numbers(mut self) -> Result<Vec<u32>, Failure> {
        self.wait().await?;
        read_numbers_of(&self.file)
    }

    /// Decodes what came, once the publisher has ended it; fails when the decoder complains.
    pub async fn decode(mut self) -> Result<(), Failure> {
        self.wait().await?;
        let decoded = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-i"])
            .arg(&self.file)
            .args(["-f", "null", "-"])
            .output()
            .await?;
        let complaints = String::from_utf8_lossy(&decoded.stderr).into_owned();
        match decoded.status.success() && complaints.is_empty() {
            true => Ok(()),
            false => Err(format!("decoding: {complaints}").into()),
        }
    }
}
