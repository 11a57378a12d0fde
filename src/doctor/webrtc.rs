//! `sluice doctor` on WebRTC of the running service: viewers who fetched an answer and from whom no packet came, by its metrics.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use serde::Deserialize;

use super::finding::Finding;
use crate::config::Config;

const CHECK: &str = "webrtc viewers";
/// Longest wait for the service's metrics.
const PATIENCE: Duration = Duration::from_secs(3);
/// Most bytes of metrics that are read.
const MOST_BYTES: u64 = 4 << 20;

/// Fields that are read of `addresses.json`.
#[derive(Deserialize)]
struct Addresses {
    http: SocketAddr,
    https: bool,
}

/// Counts since the service's start.
#[derive(Debug, PartialEq)]
struct Counts {
    connected: u64,
    unreachable: u64,
}

/// Checks the service that holds the data folder. Nothing without one, and for one whose metrics cannot be read without a certificate.
pub(super) fn check(config: &Config, service: Option<u32>) -> Option<Finding> {
    service.filter(|_| config.webrtc.enabled)?;
    let counts = counts(&metrics(&config.store.data_dir)?)?;
    let settings = &config.webrtc;
    let port = |own: u16| match settings.public_port {
        0 => own,
        public => public,
    };
    let udp = port(settings.listen.port());
    let tcp = settings.tcp_listen.map(|address| port(address.port()));
    Some(judge(&counts, udp, tcp))
}

fn judge(counts: &Counts, udp: u16, tcp: Option<u16>) -> Finding {
    let (connected, unreachable) = (counts.connected, counts.unreachable);
    if unreachable == 0 || connected > 0 {
        return Finding::ok(
            CHECK,
            format!("{connected} connected since the start, {unreachable} did not reach the port"),
        );
    }
    let viewers = if unreachable == 1 {
        "viewer"
    } else {
        "viewers"
    };
    let tcp = tcp.map_or_else(String::new, |port| format!(" or TCP {port}"));
    Finding::warn(
        CHECK,
        format!("{unreachable} {viewers} tried WebRTC and nothing arrived at UDP {udp}{tcp}"),
        "open the port, or set webrtc.public_addresses to the address viewers reach",
    )
}

/// Reads the metrics, which a service shows to its own machine.
fn metrics(data_dir: &Path) -> Option<String> {
    let addresses = fs::read(data_dir.join("addresses.json")).ok()?;
    let addresses: Addresses = serde_json::from_slice(&addresses).ok()?;
    if addresses.https {
        return None;
    }
    let address = SocketAddr::new(here(addresses.http.ip()), addresses.http.port());
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    socket.set_write_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    socket.take(MOST_BYTES).read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The address of this machine under which a listener is reached.
fn here(listener: IpAddr) -> IpAddr {
    match listener {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// The counts of OpenMetrics text; `None` when it has none of them.
fn counts(metrics: &str) -> Option<Counts> {
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<f64>().ok().map(|value| value as u64)
    };
    Some(Counts {
        connected: value("sluice_webrtc_connect_seconds_count")?,
        unreachable: value("sluice_webrtc_closed{why=\"unreachable\"}")?,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    const METRICS: &str = "HTTP/1.0 200 OK\r\n\r\n# TYPE sluice_webrtc_closed gauge\n\
        sluice_webrtc_closed{why=\"client\"} 7\n\
        sluice_webrtc_closed{why=\"unreachable\"} 3\n\
        sluice_webrtc_connect_seconds_sum 0.2\nsluice_webrtc_connect_seconds_count 2\n# EOF\n";

    #[test]
    fn counts_are_read_from_metrics() {
        let expected = Counts {
            connected: 2,
            unreachable: 3,
        };
        assert_eq!(counts(METRICS), Some(expected));
        assert_eq!(counts("HTTP/1.0 401 Unauthorized\r\n\r\n{}"), None);
    }

    #[test]
    fn viewers_whom_nothing_reaches_are_named_with_the_ports() {
        let of = |connected, unreachable, tcp| {
            let counts = Counts {
                connected,
                unreachable,
            };
            judge(&counts, 8189, tcp)
        };
        let warned = of(0, 3, Some(8189));
        assert_eq!(warned.level, Level::Warn);
        assert_eq!(
            warned.message,
            "3 viewers tried WebRTC and nothing arrived at UDP 8189 or TCP 8189"
        );
        let advice = warned.advice.unwrap_or_default();
        assert!(advice.contains("webrtc.public_addresses"), "{advice}");
        assert_eq!(
            of(0, 1, None).message,
            "1 viewer tried WebRTC and nothing arrived at UDP 8189"
        );
        assert_eq!(of(40, 3, None).level, Level::Ok, "the port is open");
        assert_eq!(of(0, 0, None).level, Level::Ok);
    }
}
