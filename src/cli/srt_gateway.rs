//! `sluice srt-gateway`: the process that holds libsrt and its UDP port, started by the service; its memory limit. Not for people.
//!
//! Its standard input is the socket to the service, its standard output the UDP socket. Nothing is set up for it, no log and
//! no runtime: it must have one thread until its sandbox is on.

use std::{
    io::{self, Write as _},
    net::UdpSocket,
    os::{fd::AsFd as _, unix::net::UnixStream},
    process::ExitCode,
    time::Duration,
};

use sluice_ingest::srt::{
    self,
    gateway::{self, Options},
};
use sluice_worker::sandbox::{
    self, Choice,
    limits::{Bounds, DESCRIPTORS},
};

use super::Error;

/// Address space that libsrt begins with.
const MEMORY: u64 = 4 << 30;
/// Address space of a connection's buffers and its thread's stack.
const MEMORY_PER_CONNECTION: u64 = 32 << 20;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// srt.latency
    #[arg(long, default_value_t = 400)]
    latency_ms: u64,
    /// srt.idle_timeout
    #[arg(long, default_value_t = 5_000)]
    idle_timeout_ms: u64,
    /// live.read_interval
    #[arg(long, default_value_t = 50)]
    read_interval_ms: u64,
    /// srt.max_connections
    #[arg(long, default_value_t = 256)]
    max_connections: usize,
    /// Do not start where the kernel lacks a layer of the sandbox
    #[arg(long)]
    require_sandbox: bool,
    /// For tests: put on only these layers of the sandbox (limits, privileges, files, calls, all, none)
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "LAYERS", default_value = "all")]
    layers: String,
}

impl Arguments {
    #[cfg(debug_assertions)]
    fn choice(&self) -> Choice {
        sluice_worker::prove::choice(&self.layers).unwrap_or(Choice::ALL)
    }

    #[cfg(not(debug_assertions))]
    fn choice(&self) -> Choice {
        Choice::ALL
    }
}

/// Serves until the service closes the socket; ends at once where the sandbox is required and a layer is missing.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let control = io::stdin().as_fd().try_clone_to_owned();
    let udp = io::stdout().as_fd().try_clone_to_owned();
    let (control, udp) = match (control, udp) {
        (Ok(control), Ok(udp)) => (UnixStream::from(control), UdpSocket::from(udp)),
        _ => return Err(Error::Rejected("the service starts the SRT gateway".into())),
    };
    if control.peer_addr().is_err() || udp.local_addr().is_err() {
        return Err(Error::Rejected("the service starts the SRT gateway".into()));
    }
    let connections = arguments.max_connections as u64;
    let bounds = Bounds {
        memory_bytes: MEMORY + MEMORY_PER_CONNECTION * connections,
        // It can open no file (landlock); what it says on standard error may go into a long log.
        file_bytes: u64::MAX,
        descriptors: DESCRIPTORS,
    };
    let layers = sandbox::enter(arguments.choice(), bounds, None).map_err(|source| Error::Io {
        action: "cannot enter the sandbox",
        source,
    })?;
    // Where all layers are not required, one that this kernel lacks is named by the doctor, with those of the workers.
    if let Some(rejection) = layers.rejection().filter(|_| arguments.require_sandbox) {
        // The service gives the reason, too: it knows the exit code.
        let _ = writeln!(io::stderr(), "the SRT gateway does not start: {rejection}");
        return Ok(ExitCode::from(srt::UNSANDBOXED));
    }
    let options = Options {
        latency: Duration::from_millis(arguments.latency_ms),
        idle_timeout: Duration::from_millis(arguments.idle_timeout_ms),
        read_interval: Duration::from_millis(arguments.read_interval_ms),
        max_connections: arguments.max_connections,
    };
    gateway::run(control, udp, options).map_err(|source| Error::Io {
        action: "the SRT gateway cannot continue",
        source,
    })?;
    Ok(ExitCode::SUCCESS)
}
