//! Pulls RTSP sources (`pullUrl`): pauses between retries (`rtsp.retry_first`, `retry_longest`), `rtsp.max_pulls`, TCP or
//! UDP, errors in health.
//!
//! Each source has a task. Survives a restart (in `Args`): nothing but the handles; the sources are in the rows. May be
//! lost: the connections, which are made again inside their inputs' reconnect windows. A source that fails is tried again
//! with back-off for as long as its row wants it, and gives way while an encoder publishes. Of a cluster's nodes one pulls it
//! (`placement`).

mod placement;
pub(crate) mod url;

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt as _;
use sluice_ingest::rtsp::{Failure, Orders, RtspSettings, RtspSource, RtspTransport, pull};
use tokio::time::{Instant, sleep};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tracing::{info, warn};
use uuid::Uuid;

pub use url::{PullUrl, PullUrlError, masked};

use placement::Placement;

use super::{Directory, LiveAuthorizer, retry_pause};
use crate::{
    cluster::Peers,
    component::Component,
    outbound::{Outbound, Target},
};

const NAME: &str = "RTSP pulls";
/// Time of sending after which the failures of a source are forgotten.
const STEADY_AFTER: Duration = Duration::from_secs(30);

/// Arguments of the loop, the same after each restart.
#[derive(Clone)]
pub struct Args {
    pub authorizer: LiveAuthorizer,
    pub directory: Arc<Directory>,
    /// Other nodes, which pull what this one does not.
    pub peers: Peers,
    pub outbound: Outbound,
    pub settings: Arc<RtspSettings>,
    pub sessions: TaskTracker,
    /// Ends every pull; their broadcasts wait for the next process.
    pub stop: CancellationToken,
}

/// Makes the component that pulls.
pub fn component(args: Args) -> Component {
    Component::of_task(NAME, move || follow_rows(args.clone()))
}

/// A pull that runs until it is dropped.
struct Running {
    url: String,
    _over: DropGuard,
}

/// Starts and ends pulls by the rows and by the nodes.
async fn follow_rows(args: Args) {
    let mut changes = args.directory.follow();
    let mut placement = Placement::new(args.peers.clone());
    let mut running: HashMap<Uuid, Running> = HashMap::new();
    loop {
        changes.mark_unchanged();
        let wanted = wanted(&args.directory, &placement);
        running.retain(|id, pull| wanted.get(id) == Some(&pull.url));
        for (input_id, url) in wanted {
            if running.contains_key(&input_id) {
                continue;
            }
            if running.len() >= args.settings.max_pulls {
                warn!(input = %input_id, "a source is not pulled: rtsp.max_pulls is reached");
                note(
                    &args,
                    input_id,
                    Some("rtsp.max_pulls is reached".to_owned()),
                );
                continue;
            }
            running.insert(input_id, start(&args, input_id, url));
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = placement.changed() => {}
            () = args.stop.cancelled() => return,
        }
    }
}

/// Returns the sources to pull by the ids of their inputs. Takes back what was noted of one that another node pulls.
fn wanted(directory: &Directory, placement: &Placement) -> HashMap<Uuid, String> {
    let mut wanted = HashMap::new();
    for row in directory.rows().into_iter().filter(|row| row.enabled) {
        let Some(url) = &row.pull_url else {
            continue;
        };
        if placement.is_here(row.id) {
            wanted.insert(row.id, url.clone());
        } else if let Some(playback) = directory.by_input(row.id) {
            playback.set_pull_error(None);
        }
    }
    wanted
}

fn start(args: &Args, input_id: Uuid, url: String) -> Running {
    let orders = Orders {
        stop: args.stop.clone(),
        over: CancellationToken::new(),
    };
    let over = orders.over.clone().drop_guard();
    let (pulling, text) = (args.clone(), url.clone());
    args.sessions.spawn(async move {
        keep_pulling(&pulling, input_id, &text, &orders).await;
        note(&pulling, input_id, None);
    });
    Running { url, _over: over }
}

async fn keep_pulling(args: &Args, input_id: Uuid, url: &str, orders: &Orders) {
    let mut failures = 0_u32;
    loop {
        let started = Instant::now();
        note(args, input_id, None);
        // The library that reads what the source sends is not ours: a panic in it costs this try.
        let pulled = AssertUnwindSafe(pull_once(args, input_id, url, orders)).catch_unwind();
        let outcome = pulled
            .await
            .unwrap_or_else(|_| Err("its stream could not be read".into()));
        if orders.over.is_cancelled() || orders.stop.is_cancelled() {
            return;
        }
        if started.elapsed() > STEADY_AFTER {
            failures = 0;
        }
        failures += 1;
        let pause = retry_pause(
            args.settings.retry_first,
            args.settings.retry_longest,
            failures,
        );
        let reason = outcome
            .err()
            .unwrap_or_else(|| "the source ended its stream".to_owned());
        warn!(input = %input_id, reason, ?pause, "a source is tried again");
        note(args, input_id, Some(reason));
        tokio::select! {
            () = sleep(pause) => {}
            () = orders.over.cancelled() => return,
            () = orders.stop.cancelled() => return,
        }
    }
}

/// Notes the problem in the health beside the broadcast.
fn note(args: &Args, input_id: Uuid, error: Option<String>) {
    if let Some(playback) = args.directory.by_input(input_id) {
        playback.set_pull_error(error);
    }
}

/// Makes one attempt; errors are for the person who gave the address.
async fn pull_once(args: &Args, input_id: Uuid, url: &str, orders: &Orders) -> Result<(), String> {
    let pull_url = PullUrl::parse(url).map_err(|error| error.to_string())?;
    let outbound = &args.outbound;
    let target = pull_url
        .target(outbound)
        .map_err(|rejection| rejection.to_string())?;
    let addresses = outbound.addresses_of(&target).await.map_err(message_of)?;
    let Some(address) = addresses.first().copied() else {
        return Err("its name has no address".to_owned());
    };
    let source = RtspSource {
        url: pull_url.url.clone(),
        credentials: pull_url.credentials.clone(),
        remote: SocketAddr::new(address, pull_url.port()),
    };
    let authorizer = args.authorizer.pulled(input_id);
    let line = outbound.connect_to(&target).await.map_err(message_of)?;
    info!(input = %input_id, source = %source.remote, "a source is pulled");
    let over_tcp = RtspTransport::Tcp(line);
    match pull(
        source.clone(),
        over_tcp,
        &args.settings,
        &authorizer,
        orders,
    )
    .await
    {
        Ok(()) => Ok(()),
        Err(Failure::WantsUdp) => {
            let source = udp_source(outbound, &pull_url, &target, source, &addresses)?;
            let udp: RtspTransport<tokio::net::TcpStream> = RtspTransport::Udp;
            let pulled = pull(source, udp, &args.settings, &authorizer, orders).await;
            pulled.map_err(|failure| failure.to_string())
        }
        Err(failure) => Err(failure.to_string()),
    }
}

/// Returns the source for UDP, with an address that the operator named: a source itself states the origin of its UDP packets.
fn udp_source(
    outbound: &Outbound,
    pull_url: &PullUrl,
    target: &Target,
    mut source: RtspSource,
    addresses: &[IpAddr],
) -> Result<RtspSource, String> {
    let named = addresses
        .iter()
        .find(|address| outbound.is_named(**address));
    let Some(address) = named.filter(|_| !pull_url.is_tls) else {
        return Err(format!(
            "{} sends over UDP only, which is taken from addresses in outbound.allow without TLS",
            target.host()
        ));
    };
    let host = match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    };
    let set = source.url.set_host(Some(&host)).is_ok();
    let set = set && source.url.set_port(Some(pull_url.port())).is_ok();
    source.remote.set_ip(*address);
    set.then_some(source)
        .ok_or_else(|| "its address cannot be used".to_owned())
}

/// Returns the connector's message, which names HTTP schemes, with those of RTSP.
fn message_of(error: crate::outbound::Error) -> String {
    let text = error.to_string();
    text.replacen("https://", "rtsps://", 1)
        .replacen("http://", "rtsp://", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let settings = RtspSettings::default();
        let pauses: Vec<u64> = (1..=7)
            .map(|it| retry_pause(settings.retry_first, settings.retry_longest, it).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        let least = retry_pause(Duration::ZERO, Duration::ZERO, u32::MAX);
        assert_eq!(least, Duration::from_millis(100));
    }
}
