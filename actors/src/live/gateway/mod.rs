//! Gateway processes (SRT, WebRTC): start, restart pauses (`PAUSE_FIRST`, `PAUSE_LONGEST`), silence (`SILENT_FOR`), missing sandbox,
//! state in `/readyz`.
//!
//! A gateway is this program in a process of its own, which reads what strangers send. May be lost at any time: the process with
//! its connections, whose peers connect again.

mod process;

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdUnixStream},
    path::PathBuf,
    time::Duration,
};

use bytes::BytesMut;
use sluice_ingest::srt::message::Malformed;
use tokio::{
    io::AsyncReadExt as _,
    net::{UnixStream, unix::OwnedReadHalf},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::{
    component::{ComponentStatuses, doubled},
    compute::Sandbox,
};
use process::Process;

/// Most bytes of one read from a gateway.
const READ: usize = 256 << 10;
/// Silence after which a gateway is replaced; it reports every second.
const SILENT_FOR: Duration = Duration::from_secs(10);
/// The pause before a gateway is started again: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// Run time after which the failures of a gateway are forgotten.
const STEADY_AFTER: Duration = Duration::from_secs(30);
/// Failed starts in a row after which `/readyz` shows the gateway as parked.
const RED_AFTER: u32 = 3;

/// Parts of the service that every gateway process needs.
#[derive(Clone)]
pub struct GatewayHost {
    /// This program.
    pub program: PathBuf,
    /// Policy for a gateway that lacks a layer of the sandbox.
    pub sandbox: Sandbox,
    pub component_statuses: ComponentStatuses,
    /// Ends the gateway.
    pub stop: CancellationToken,
}

/// Names of a gateway in logs and `/readyz`.
pub(super) struct GatewayNames {
    /// Name of the component, such as `SRT gateway`.
    pub component: &'static str,
    /// Sub-command of this program.
    pub command: &'static str,
    /// Setting that turns the protocol on.
    pub setting: &'static str,
    /// Fate of the connections of one that ended.
    pub aftermath: &'static str,
}

/// The service's side of a gateway.
pub(super) trait Gateway: Clone + Send + Sync + 'static {
    const NAMES: GatewayNames;

    fn host(&self) -> &GatewayHost;

    /// Arguments of the sub-command.
    fn arguments(&self) -> Vec<String>;

    /// The socket that the process gets as its standard output.
    fn output(&self) -> io::Result<OwnedFd>;

    /// Sends what has to be the first on the gateway's socket.
    fn greet(&self, _socket: &StdUnixStream) -> io::Result<()> {
        Ok(())
    }

    /// Serves a started process until its socket ends.
    fn serve(&self, socket: UnixStream) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Marks the gateway as running in `/readyz`.
    fn note_ready(&self) {
        let statuses = &self.host().component_statuses;
        statuses.running(Self::NAMES.component);
    }

    /// Marks the gateway as parked in `/readyz`.
    fn note_parked(&self, reason: String) {
        let statuses = &self.host().component_statuses;
        statuses.parked(Self::NAMES.component, reason);
    }
}

/// Reason why a gateway ended; reads on after its name.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("ended: {0}")]
    Ended(String),
    #[error(
        "does not start: this machine lacks a layer of the sandbox (`sluice doctor` names it): give the service a kernel that has it, or set image_workers.sandbox = \"best-effort\""
    )]
    Unsandboxed,
    #[error("said nothing for {SILENT_FOR:?}")]
    Silent,
    #[error("does not read what it is sent")]
    Deaf,
    #[error("broke off: {0}")]
    Malformed(#[from] Malformed),
}

impl Failure {
    /// Returns the sentence for logs and `/readyz`.
    fn text(&self, names: &GatewayNames) -> String {
        let (name, setting) = (names.component, names.setting);
        match self {
            Self::Unsandboxed => format!("the {name} {self}, or {setting} = false"),
            _ => format!("the {name} {self}"),
        }
    }
}

/// Keeps a gateway process running until the service stops.
pub(super) async fn keep_running<G: Gateway>(gateway: G) {
    let (names, host) = (G::NAMES, gateway.host());
    let mut failures = 0_u32;
    while !host.stop.is_cancelled() {
        let started = Instant::now();
        let Err(failure) = run_once(&gateway).await else {
            return;
        };
        let text = failure.text(&names);
        if let Failure::Unsandboxed = failure {
            // The kernel will not change while the service runs.
            warn!("{text}");
            gateway.note_parked(text);
            return host.stop.cancelled().await;
        }
        if started.elapsed() > STEADY_AFTER {
            failures = 0;
        }
        failures += 1;
        let (name, aftermath) = (names.component, names.aftermath);
        warn!(failure = text, "the {name} is started again; {aftermath}");
        if failures == RED_AFTER {
            gateway.note_parked(text);
        }
        tokio::select! {
            () = sleep(doubled(PAUSE_FIRST, PAUSE_LONGEST, failures)) => {}
            () = host.stop.cancelled() => return,
        }
    }
}

/// Runs one gateway process to its end; `Ok` when the service stops.
async fn run_once<G: Gateway>(gateway: &G) -> Result<(), Failure> {
    let (process, socket) = Process::start(gateway).map_err(Failure::Start)?;
    let outcome = tokio::select! {
        outcome = gateway.serve(socket) => outcome,
        () = gateway.host().stop.cancelled() => return Ok(()),
    };
    // The socket is closed by now, so that the gateway ends by itself.
    match outcome {
        Ok(()) => Err(process.end().await),
        Err(failure) => Err(failure),
    }
}

/// Passes the messages of a gateway to `take` until it ends.
pub(super) async fn read_reports<R>(
    reading: &mut OwnedReadHalf,
    decode: impl Fn(&mut BytesMut) -> Result<Option<R>, Malformed>,
    mut take: impl FnMut(R),
) -> Result<(), Failure> {
    let mut input = BytesMut::new();
    loop {
        input.reserve(READ);
        let read = timeout(SILENT_FOR, reading.read_buf(&mut input)).await;
        match read.map_err(|_| Failure::Silent)? {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        while let Some(report) = decode(&mut input)? {
            take(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pauses_are_well_below_a_second() {
        let pauses: Vec<u128> = (1..=9)
            .map(|it| doubled(PAUSE_FIRST, PAUSE_LONGEST, it).as_millis())
            .collect();
        assert_eq!(
            pauses,
            [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
    }

    #[test]
    fn a_missing_sandbox_names_the_setting_that_turns_the_protocol_off() {
        let names = GatewayNames {
            component: "SRT gateway",
            command: "srt-gateway",
            setting: "srt.enabled",
            aftermath: "its encoders reconnect",
        };
        let text = Failure::Unsandboxed.text(&names);
        assert!(text.starts_with("the SRT gateway does not start"), "{text}");
        assert!(text.ends_with(", or srt.enabled = false"), "{text}");
    }
}
