//! Addresses in answers (`webrtc.public_addresses`, `webrtc.public_port`): names are looked up at the start and each 5 minutes.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

use parking_lot::RwLock;
use sluice_ingest::webrtc::{WebRtcSettings, message::MAX_CANDIDATES};
use tokio::time::{interval, timeout};
use tracing::warn;

/// Interval at which names are looked up.
const LOOK_UP_EVERY: Duration = Duration::from_secs(300);
/// Longest wait for the addresses of one name.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(5);
/// Addresses of the documentation, to which no packet is sent: the machine's address on its default route is asked for.
const ELSEWHERE: [&str; 2] = ["192.0.2.1:9", "[2001:db8::1]:9"];

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Candidates {
    names: Vec<String>,
    port: u16,
    /// Addresses of the names.
    public: RwLock<Vec<IpAddr>>,
}

impl Candidates {
    /// `port`: the one that the UDP socket is bound to.
    pub fn new(settings: &WebRtcSettings, port: u16) -> Self {
        let literal = |name: &String| name.parse().ok();
        Self {
            public: RwLock::new(
                settings
                    .public_addresses
                    .iter()
                    .filter_map(literal)
                    .collect(),
            ),
            names: settings.public_addresses.clone(),
            port: match settings.public_port {
                0 => port,
                public => public,
            },
        }
    }

    /// Looks the names up for ever.
    pub async fn keep_looked_up(&self) {
        if self.names.iter().all(|name| name.parse::<IpAddr>().is_ok()) {
            return std::future::pending().await;
        }
        let mut due = interval(LOOK_UP_EVERY);
        loop {
            due.tick().await;
            let mut found = Vec::new();
            for name in &self.names {
                match addresses_of(name).await {
                    Ok(addresses) => found.extend(addresses),
                    Err(reason) => {
                        warn!(
                            name,
                            reason, "a name of webrtc.public_addresses has no address"
                        );
                    }
                }
            }
            // Those that were found before are better than none.
            if !found.is_empty() {
                *self.public.write() = found;
            }
        }
    }

    /// Returns the candidates of an answer, best first; `reached_at` are addresses at which this client reached the service.
    pub fn of(&self, reached_at: &[IpAddr]) -> Vec<SocketAddr> {
        let public = self.public.read().clone();
        let mut found: Vec<IpAddr> = Vec::new();
        for address in public.into_iter().chain(reached_at.iter().copied()) {
            let address = address.to_canonical();
            if !address.is_unspecified() && !found.contains(&address) {
                found.push(address);
            }
        }
        if found.is_empty() {
            found = local_addresses();
        }
        found.truncate(MAX_CANDIDATES);
        let socket = |address| SocketAddr::new(address, self.port);
        found.into_iter().map(socket).collect()
    }
}

async fn addresses_of(name: &str) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    match timeout(LOOK_UP_WITHIN, tokio::net::lookup_host((name, 0))).await {
        Ok(Ok(addresses)) => Ok(addresses.map(|address| address.ip()).collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {LOOK_UP_WITHIN:?}")),
    }
}

/// Returns the addresses that this machine would send from; that of the loopback without any other.
fn local_addresses() -> Vec<IpAddr> {
    let own = |elsewhere: &&str| {
        let unspecified = match elsewhere.starts_with('[') {
            true => "[::]:0",
            false => "0.0.0.0:0",
        };
        let socket = UdpSocket::bind(unspecified).ok()?;
        socket.connect(elsewhere).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_unspecified()).then_some(address)
    };
    let found: Vec<IpAddr> = ELSEWHERE.iter().filter_map(own).collect();
    match found.is_empty() {
        true => vec![IpAddr::from([127, 0, 0, 1])],
        false => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(names: &[&str], public_port: u16) -> Candidates {
        let settings = WebRtcSettings {
            public_addresses: names.iter().map(|name| (*name).to_owned()).collect(),
            public_port,
            ..WebRtcSettings::default()
        };
        Candidates::new(&settings, 8189)
    }

    fn texts(found: Vec<SocketAddr>) -> Vec<String> {
        found.iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn those_of_the_settings_come_first_and_each_once() {
        let reached_at = ["::ffff:192.0.2.7", "198.51.100.1", "::", "2001:db8::7"]
            .map(|address| address.parse().unwrap());
        let found = candidates(&["198.51.100.1", "name.example"], 0).of(&reached_at);
        assert_eq!(
            texts(found),
            ["198.51.100.1:8189", "192.0.2.7:8189", "[2001:db8::7]:8189"]
        );
        let many: Vec<IpAddr> = (1..20).map(|last| IpAddr::from([10, 0, 0, last])).collect();
        assert_eq!(candidates(&[], 0).of(&many).len(), MAX_CANDIDATES);
        assert_eq!(
            texts(candidates(&[], 9_000).of(&many[..1])),
            ["10.0.0.1:9000"]
        );
    }

    #[test]
    fn there_is_always_one() {
        assert!(!candidates(&[], 0).of(&[]).is_empty());
    }

    #[tokio::test]
    async fn a_name_is_looked_up() {
        let candidates = candidates(&["localhost", "198.51.100.1"], 0);
        let looked_up = async {
            while candidates.public.read().len() < 2 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            () = candidates.keep_looked_up() => {}
            () = looked_up => {}
        }
        let public = candidates.public.read();
        assert!(public.iter().any(IpAddr::is_loopback), "{public:?}");
    }
}
