//! `srt-live-transmit`, libsrt's own tool, as a caller.

use std::{path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, Command},
    time::timeout,
};

use crate::support::Failure;

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(15);

/// A transport stream, sent in real time through `srt-live-transmit`. Both are killed when this is dropped.
pub struct Transmit {
    _source: Child,
    transmit: Child,
}

impl Transmit {
    /// Publishes a clip as it is.
    pub fn start(clip: &Path, url: &str) -> Result<Self, Failure> {
        let mut source = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-re", "-i"])
            .arg(clip)
            .args(["-c", "copy", "-f", "mpegts", "-flush_packets", "1", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stream: Stdio = source.stdout.take().ok_or("no pipe")?.try_into()?;
        let transmit = Command::new("srt-live-transmit")
            .args(["-loglevel:warning", "-autoreconnect:no", "file://con", url])
            .stdin(stream)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self {
            _source: source,
            transmit,
        })
    }

    /// Reads its output until these words come. The program does not always end after a rejection.
    pub async fn says(mut self, words: &str) -> Result<(), Failure> {
        let mut output = self.transmit.stderr.take().ok_or("no pipe")?;
        let mut said = Vec::new();
        let reading = timeout(SOON, async {
            while !String::from_utf8_lossy(&said).contains(words) {
                if output.read_buf(&mut said).await? == 0 {
                    return Ok::<_, Failure>(false);
                }
            }
            Ok(true)
        });
        match reading.await {
            Ok(Ok(true)) => Ok(()),
            Ok(Err(error)) => Err(error),
            _ => Err(format!("{words} is not in: {}", String::from_utf8_lossy(&said)).into()),
        }
    }

    /// SIGINT, as Ctrl-C: it says goodbye to its peer.
    pub async fn stop(&mut self) -> Result<(), Failure> {
        let id = self.transmit.id().ok_or("srt-live-transmit has ended")?;
        let pid = Pid::from_raw(i32::try_from(id)?).ok_or("no process id")?;
        kill_process(pid, Signal::INT)?;
        timeout(SOON, self.transmit.wait())
            .await
            .map_err(|_| "srt-live-transmit continues")??;
        Ok(())
    }
}
