//! The gateway's process: this same program, with the socket to us as its standard input and the UDP socket as its output.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    process::Stdio,
    time::Duration,
};

use tokio::{
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use super::Args;

/// How long a gateway whose socket is closed may take to end by itself.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A running gateway; killed when dropped.
pub(super) struct Process(Child);

impl Process {
    /// Starts one, and gives our end of its socket.
    pub fn start(args: &Args) -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let udp = args.udp.try_clone()?;
        let milliseconds = |duration: Duration| duration.as_millis().to_string();
        let settings = &args.settings;
        let child = Command::new(&args.program)
            .arg0("sluice")
            .arg("srt-gateway")
            .args(["--latency-ms", &milliseconds(settings.latency)])
            .args(["--idle-timeout-ms", &milliseconds(settings.idle_timeout)])
            .args(["--beat-ms", &milliseconds(args.read_beat)])
            .args(["--max-connections", &settings.max_connections.to_string()])
            .env_clear()
            .env("MALLOC_ARENA_MAX", "2")
            .current_dir("/")
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(OwnedFd::from(udp))
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        Ok((Self(child), UnixStream::from_std(ours)?))
    }

    /// How it ended, once its socket is closed.
    pub async fn end(mut self) -> String {
        match timeout(END_WITHIN, self.0.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "killed, because it did not end".to_owned(),
        }
    }
}
