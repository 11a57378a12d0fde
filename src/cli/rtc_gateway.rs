//! `sluice rtc-gateway`: the process that holds the WebRTC ports, started by the service; its limits. Not for people.
//!
//! Its standard input is the socket to the service, its standard output the UDP socket; the TCP listener comes with the first byte
//! of the former. Nothing is set up for it, no log and no runtime: it must have one thread until its sandbox is on.

use std::{
    io::{self, IoSliceMut, Write as _},
    mem::MaybeUninit,
    net::{TcpListener, UdpSocket},
    os::{fd::AsFd as _, unix::net::UnixStream},
    process::ExitCode,
    time::Duration,
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use sluice_ingest::webrtc::{
    self,
    gateway::{self, Options},
};
use sluice_worker::sandbox::{self, Choice, limits::Bounds};

use super::Error;

/// Address space that the process begins with: queues, kept groups of pictures, threads.
const MEMORY: u64 = 4 << 30;
/// Address space of a session: its packets that may be asked for again, and its buffers.
const MEMORY_PER_SESSION: u64 = 8 << 20;
/// Descriptors beside those of TCP connections.
const DESCRIPTORS: u64 = 64;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// webrtc.threads
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// webrtc.max_sessions
    #[arg(long, default_value_t = 2_000)]
    max_sessions: usize,
    /// webrtc.max_pending
    #[arg(long, default_value_t = 256)]
    max_pending: usize,
    /// webrtc.handshake_timeout
    #[arg(long, default_value_t = 10_000)]
    handshake_timeout_ms: u64,
    /// webrtc.join_cache, in bytes
    #[arg(long, default_value_t = 8 << 20)]
    join_cache: usize,
    /// webrtc.playout
    #[arg(long, default_value = "immediate", value_parser = ["immediate", "adaptive"])]
    playout: String,
    /// webrtc.keyframe_interval
    #[arg(long, default_value_t = 2_000)]
    keyframe_interval_ms: u64,
    /// The service sends a TCP listener
    #[arg(long)]
    tcp: bool,
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

    fn bounds(&self) -> Bounds {
        let sessions = self.max_sessions as u64;
        Bounds {
            memory_bytes: MEMORY + MEMORY_PER_SESSION * sessions,
            // It can open no file (landlock); what it says on standard error may go into a long log.
            file_bytes: u64::MAX,
            // A session has a TCP connection or none; two while it changes from one to another.
            descriptors: DESCRIPTORS + 2 * sessions,
        }
    }

    fn options(&self) -> Options {
        Options {
            threads: self.threads,
            max_sessions: self.max_sessions,
            max_pending: self.max_pending,
            handshake_timeout: Duration::from_millis(self.handshake_timeout_ms),
            join_cache_bytes: self.join_cache,
            is_playout_adaptive: self.playout == "adaptive",
            keyframe_interval: Duration::from_millis(self.keyframe_interval_ms),
        }
    }
}

/// Serves until the service closes the socket; ends at once where the sandbox is required and a layer is missing.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let not_by_service = || Error::Rejected("the service starts the WebRTC gateway".into());
    let control = io::stdin().as_fd().try_clone_to_owned();
    let udp = io::stdout().as_fd().try_clone_to_owned();
    let (control, udp) = match (control, udp) {
        (Ok(control), Ok(udp)) => (UnixStream::from(control), UdpSocket::from(udp)),
        _ => return Err(not_by_service()),
    };
    if control.peer_addr().is_err() || udp.local_addr().is_err() {
        return Err(not_by_service());
    }
    let tcp = match arguments.tcp {
        true => Some(receive_listener(&control).map_err(|_| not_by_service())?),
        false => None,
    };
    let choice = arguments.choice();
    let layers = sandbox::enter(choice, arguments.bounds(), None).map_err(|source| Error::Io {
        action: "cannot enter the sandbox",
        source,
    })?;
    // Where all layers are not required, one that this kernel lacks is named by the doctor, with those of the workers.
    if let Some(rejection) = layers.rejection().filter(|_| arguments.require_sandbox) {
        // The service gives the reason, too: it knows the exit code.
        let _ = writeln!(
            io::stderr(),
            "the WebRTC gateway does not start: {rejection}"
        );
        return Ok(ExitCode::from(webrtc::UNSANDBOXED));
    }
    gateway::run(control, udp, tcp, arguments.options()).map_err(|source| Error::Io {
        action: "the WebRTC gateway cannot continue",
        source,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for the byte that comes with the TCP listener.
fn receive_listener(control: &UnixStream) -> io::Result<TcpListener> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        control,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message
            && let Some(listener) = descriptors.into_iter().next()
        {
            return Ok(listener.into());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}
