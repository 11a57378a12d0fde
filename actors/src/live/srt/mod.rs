//! SRT gateway in the service: start, restart pauses, silence, missing sandbox, state in `/readyz`, UDP socket; its
//! connections become publishers.
//!
//! Survives a restart (in `Args`): the bound UDP socket, so that the port stays, and the running sessions. May be lost:
//! the process with its connections, whose encoders reconnect. Messages of the gateway are read at once and put into bounded
//! queues, so that no session holds another back.

mod calls;
mod gateway_publisher;
mod passphrase;
mod process;

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytes::BytesMut;
use sluice_ingest::srt::{
    SrtSettings,
    message::{FromGateway, Malformed},
};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::OwnedReadHalf,
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{info, warn};

pub use passphrase::Passphrases;

use super::{Directory, LiveAuthorizer, listener::bind_with};
use crate::{
    Error,
    component::{Component, ComponentStatuses, doubled},
    compute::Sandbox,
};
use calls::Calls;
use process::Process;

const NAME: &str = "SRT gateway";
/// Most orders of sessions that wait for the gateway; a session that ends waits for room.
const ORDERS: usize = 256;
/// Most bytes of one read from the gateway.
const READ: usize = 256 << 10;
/// Silence after which the gateway is replaced; it reports every second.
const SILENT_FOR: Duration = Duration::from_secs(10);
/// The pause before the gateway is started again: the first, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LONGEST: Duration = Duration::from_secs(10);
/// Run time after which the failures of the gateway are forgotten.
const STEADY_AFTER: Duration = Duration::from_secs(30);
/// Failed starts in a row after which `/readyz` shows the gateway as parked.
const RED_AFTER: u32 = 3;

/// Arguments of the loop, the same after each restart.
#[derive(Clone)]
pub struct Args {
    pub udp: Arc<UdpSocket>,
    pub authorizer: LiveAuthorizer,
    pub directory: Arc<Directory>,
    pub passphrases: Passphrases,
    pub settings: Arc<SrtSettings>,
    /// Interval at which the gateway reads its sockets; zero: as often as it can.
    pub read_interval: Duration,
    /// This program.
    pub program: PathBuf,
    /// Policy for a gateway that lacks a layer of the sandbox.
    pub sandbox: Sandbox,
    pub component_statuses: ComponentStatuses,
    pub sessions: TaskTracker,
    /// Ends every session and the gateway.
    pub stop: CancellationToken,
}

/// Makes the component that runs the gateway.
pub fn component(args: Args) -> Component {
    Component::of_task(NAME, move || keep_running(args.clone()))
}

/// Binds the UDP address of a setting, as [`bind`](super::listener::bind) does for TCP.
pub async fn bind(setting: &str, address: SocketAddr) -> Result<Arc<UdpSocket>, Error> {
    bind_with(setting, address, async || UdpSocket::bind(address)).await
}

/// Reason why a gateway ended.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the SRT gateway cannot be started: {0}")]
    Start(io::Error),
    #[error("the SRT gateway ended: {0}")]
    Ended(String),
    #[error(
        "the SRT gateway does not start: this machine lacks a layer of the sandbox (`sluice doctor` names it): give the service a kernel that has it, or set image_workers.sandbox = \"best-effort\", or srt.enabled = false"
    )]
    Unsandboxed,
    #[error("the SRT gateway said nothing for {SILENT_FOR:?}")]
    Silent,
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

async fn keep_running(args: Args) {
    let mut failures = 0_u32;
    while !args.stop.is_cancelled() {
        let started = Instant::now();
        let Err(failure) = run_once(&args).await else {
            return;
        };
        if let Failure::Unsandboxed = failure {
            // The kernel will not change while the service runs.
            warn!(%failure, "SRT is not listened for");
            args.component_statuses.parked(NAME, failure.to_string());
            return args.stop.cancelled().await;
        }
        if started.elapsed() > STEADY_AFTER {
            failures = 0;
        }
        failures += 1;
        warn!(%failure, "the SRT gateway is started again; its encoders reconnect");
        if failures == RED_AFTER {
            args.component_statuses.parked(NAME, failure.to_string());
        }
        tokio::select! {
            () = sleep(doubled(PAUSE_FIRST, PAUSE_LONGEST, failures)) => {}
            () = args.stop.cancelled() => return,
        }
    }
}

/// Runs one gateway process to its end; `Ok` when the service stops.
async fn run_once(args: &Args) -> Result<(), Failure> {
    let (process, socket) = Process::start(args).map_err(Failure::Start)?;
    let (mut reading, writing) = socket.into_split();
    let (orders, queue) = mpsc::channel(ORDERS);
    let publishing = tokio::spawn(gateway_publisher::run(args.clone(), writing, queue));
    let outcome = tokio::select! {
        outcome = follow(args, &mut reading, Calls::new(args, orders)) => outcome,
        () = args.stop.cancelled() => return Ok(()).inspect(|()| publishing.abort()),
    };
    // Both ends of the socket have to close before the gateway ends by itself.
    publishing.abort();
    drop(reading);
    match outcome {
        Ok(()) => Err(process.end().await),
        Err(failure) => Err(failure),
    }
}

/// Passes the gateway's reports on until it ends.
async fn follow(
    args: &Args,
    reading: &mut OwnedReadHalf,
    mut calls: Calls<'_>,
) -> Result<(), Failure> {
    let mut input = BytesMut::new();
    loop {
        input.reserve(READ);
        let read = timeout(SILENT_FOR, reading.read_buf(&mut input)).await;
        match read.map_err(|_| Failure::Silent)? {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        while let Some(report) = FromGateway::decode(&mut input)? {
            if let FromGateway::Ready { version } = report {
                let (major, minor, patch) = (version >> 16, version >> 8 & 0xff, version & 0xff);
                info!(
                    libsrt = format!("{major}.{minor}.{patch}"),
                    "SRT is listened for"
                );
                args.component_statuses.running(NAME);
            }
            calls.take(report);
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
}
