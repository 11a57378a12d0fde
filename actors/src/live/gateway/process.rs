//! Process of a gateway (`sluice srt-gateway`, `sluice rtc-gateway`): arguments, sockets, end, exit status.
//!
//! It is this same program, with the socket to the service as its standard input and the UDP socket as its output.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use sluice_ingest::srt::UNSANDBOXED;
use tokio::{
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use super::{Failure, Gateway};
use crate::compute::Sandbox;

/// Longest time for a gateway whose socket is closed to end by itself.
const END_WITHIN: Duration = Duration::from_secs(2);

// One exit code for all gateways.
const _: () = assert!(UNSANDBOXED == sluice_ingest::webrtc::UNSANDBOXED);

/// A running gateway; killed when dropped.
pub(super) struct Process(Child);

impl Process {
    /// Starts one, and returns our end of its socket.
    pub fn start<G: Gateway>(gateway: &G) -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        let host = gateway.host();
        let child = Command::new(&host.program)
            .arg0("sluice")
            .arg(G::NAMES.command)
            .args(gateway.arguments())
            .args((host.sandbox == Sandbox::Required).then_some("--require-sandbox"))
            .env_clear()
            .env("MALLOC_ARENA_MAX", "2")
            .current_dir("/")
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(gateway.output()?)
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        let process = Self(child);
        gateway.greet(&ours)?;
        ours.set_nonblocking(true)?;
        Ok((process, UnixStream::from_std(ours)?))
    }

    /// Waits for its end once its socket is closed, and returns the reason.
    pub async fn end(mut self) -> Failure {
        match timeout(END_WITHIN, self.0.wait()).await {
            Ok(Ok(status)) => failure_of(status),
            Ok(Err(error)) => Failure::Ended(error.to_string()),
            Err(_) => Failure::Ended("killed, because it did not end".to_owned()),
        }
    }
}

fn failure_of(status: ExitStatus) -> Failure {
    match status.code() {
        Some(code) if code == i32::from(UNSANDBOXED) => Failure::Unsandboxed,
        _ => Failure::Ended(status.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_gateway_without_a_sandbox_differs_from_one_that_fell() {
        let exited = |code: i32| failure_of(ExitStatus::from_raw(code << 8));
        assert!(matches!(exited(UNSANDBOXED.into()), Failure::Unsandboxed));
        assert!(matches!(exited(1), Failure::Ended(_)));
        let killed = failure_of(ExitStatus::from_raw(9));
        assert!(matches!(killed, Failure::Ended(_)));
    }
}
