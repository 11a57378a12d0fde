//! Settings of WebRTC (`[webrtc]`) with their defaults and ranges: addresses, sessions, time-outs, re-encoding, playout.

mod ice_server;

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    time::Duration,
};

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sluice_media::setting::{duration, size};

pub use ice_server::IceServer;

/// Most entries of `webrtc.public_addresses` and of `webrtc.ice_servers`.
const MOST_ADDRESSES: usize = 6;
/// Allowed `webrtc.threads`; 0 is half of the cores.
const THREADS: RangeInclusive<usize> = 0..=64;
/// Allowed `webrtc.max_sessions`, `webrtc.max_pending` and `webrtc.max_pending_per_address`.
const SESSIONS: RangeInclusive<usize> = 1..=100_000;
/// Most re-encodings; 0 is half of the cores.
const BRANCHES: RangeInclusive<usize> = 0..=64;
/// Allowed `webrtc.handshake_timeout`, in milliseconds.
const HANDSHAKE_TIMEOUT_MS: RangeInclusive<u128> = 2_000..=60_000;
/// Allowed `webrtc.branch_bitrate`, in bits a second.
const BRANCH_BITRATE: RangeInclusive<u32> = 300_000..=50_000_000;
/// Largest `webrtc.join_cache`.
const LARGEST_JOIN_CACHE: ByteSize = ByteSize(64 << 20);
/// Allowed `webrtc.keyframe_interval`, in milliseconds.
const KEYFRAME_INTERVAL_MS: RangeInclusive<u128> = 500..=10_000;

/// The `[webrtc]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebRtcSettings {
    /// True when the service answers offers and listens for their packets.
    pub enabled: bool,
    /// The UDP address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The TCP address for networks without UDP; `None`: no TCP.
    #[serde(with = "optional")]
    pub tcp_listen: Option<SocketAddr>,
    /// IP addresses or names at which clients reach `listen`, before those that are found without setting.
    pub public_addresses: Vec<String>,
    /// The port at which clients reach both listeners; 0: their own.
    pub public_port: u16,
    /// STUN and TURN servers that clients may use (`Link: …; rel="ice-server"`).
    pub ice_servers: Vec<IceServer>,
    /// Threads that send; 0: half of the cores.
    pub threads: usize,
    /// Sessions at a time.
    pub max_sessions: usize,
    /// Viewers of one input at a time; 0: no bound of its own.
    pub max_sessions_per_input: usize,
    /// Sessions that are not connected yet.
    pub max_pending: usize,
    /// Those of one client network.
    pub max_pending_per_address: usize,
    /// Time from an offer to the end of the handshake.
    #[serde(with = "duration")]
    pub handshake_timeout: Duration,
    /// Bytes a second to all viewers above which no further one is admitted; 0: no bound.
    #[serde(with = "size")]
    pub egress_limit: ByteSize,
    /// Videos that are re-encoded at a time; 0: half of the cores, at least one.
    pub max_branches: usize,
    /// Most bits a second of a re-encoded video.
    pub branch_bitrate: u32,
    /// Bytes of the open group of pictures that each video feed keeps for viewers who join; 0: none.
    #[serde(with = "size")]
    pub join_cache: ByteSize,
    pub playout: Playout,
    /// Interval at which publishers are asked for key frames.
    #[serde(with = "duration")]
    pub keyframe_interval: Duration,
}

/// Time at which players show what they received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Playout {
    /// At once, with the playout-delay extension, while the line loses little.
    Immediate,
    /// By the player's own adaptive buffer.
    Adaptive,
}

impl Default for WebRtcSettings {
    fn default() -> Self {
        let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 8189));
        Self {
            enabled: true,
            listen: everywhere,
            tcp_listen: Some(everywhere),
            public_addresses: Vec::new(),
            public_port: 0,
            ice_servers: Vec::new(),
            threads: 0,
            max_sessions: 2_000,
            max_sessions_per_input: 0,
            max_pending: 256,
            max_pending_per_address: 16,
            handshake_timeout: Duration::from_secs(10),
            egress_limit: ByteSize(0),
            max_branches: 0,
            branch_bitrate: 6_000_000,
            join_cache: ByteSize::mib(8),
            playout: Playout::Immediate,
            keyframe_interval: Duration::from_secs(2),
        }
    }
}

impl WebRtcSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        for (key, count) in [
            ("public_addresses", self.public_addresses.len()),
            ("ice_servers", self.ice_servers.len()),
        ] {
            if count > MOST_ADDRESSES {
                return Err(format!(
                    "webrtc.{key} must have at most {MOST_ADDRESSES} entries"
                ));
            }
        }
        if let Some(wrong) = self.public_addresses.iter().find(|it| !is_host(it)) {
            return Err(format!(
                "webrtc.public_addresses must be IP addresses or names without port, such as \"198.51.100.7\" or \"media.example.org\", got `{wrong}`"
            ));
        }
        for (key, value, allowed) in [
            ("threads", self.threads, THREADS),
            ("max_sessions", self.max_sessions, SESSIONS),
            ("max_pending", self.max_pending, SESSIONS),
            (
                "max_pending_per_address",
                self.max_pending_per_address,
                SESSIONS,
            ),
            ("max_branches", self.max_branches, BRANCHES),
        ] {
            if !allowed.contains(&value) {
                let (least, most) = (allowed.start(), allowed.end());
                return Err(format!("webrtc.{key} must be between {least} and {most}"));
            }
        }
        if !HANDSHAKE_TIMEOUT_MS.contains(&self.handshake_timeout.as_millis()) {
            return Err("webrtc.handshake_timeout must be between 2s and 60s".into());
        }
        if !BRANCH_BITRATE.contains(&self.branch_bitrate) {
            return Err(
                "webrtc.branch_bitrate must be between 300000 and 50000000 bits a second".into(),
            );
        }
        if self.join_cache > LARGEST_JOIN_CACHE {
            return Err("webrtc.join_cache must be at most 64 MiB".into());
        }
        if !KEYFRAME_INTERVAL_MS.contains(&self.keyframe_interval.as_millis()) {
            return Err("webrtc.keyframe_interval must be between 500ms and 10s".into());
        }
        Ok(())
    }

    /// Bytes of `join_cache`; zero while WebRTC is off.
    pub fn join_cache_bytes(&self) -> usize {
        let bytes = usize::try_from(self.join_cache.as_u64()).unwrap_or(usize::MAX);
        if self.enabled { bytes } else { 0 }
    }

    /// Re-encodings of video at a time, for a machine with so many cores.
    pub fn branches(&self, cores: usize) -> usize {
        match self.max_branches {
            0 => (cores / 2).max(1),
            branches => branches,
        }
    }
}

/// True for an IP address without brackets, or a name of letters, digits, `-`, `_` and dots.
fn is_host(text: &str) -> bool {
    let is_name = |text: &str| {
        text.len() <= 253
            && text.split('.').all(|label| {
                !label.is_empty()
                    && label.len() <= 63
                    && label
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_')
            })
            && !text.bytes().all(|it| it.is_ascii_digit() || it == b'.')
    };
    match text.parse::<IpAddr>() {
        Ok(address) => !address.is_unspecified() && !address.is_multicast(),
        Err(_) => is_name(text),
    }
}

/// An address that may be missing, as text: empty is none.
mod optional {
    use super::*;

    pub fn serialize<S: Serializer>(
        address: &Option<SocketAddr>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match address {
            Some(address) => serializer.collect_str(address),
            None => serializer.serialize_str(""),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SocketAddr>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(None);
        }
        let address = text.parse().map_err(|_| {
            serde::de::Error::custom(format!(
                "expected an address such as [::]:8189, or nothing for no TCP, got `{text}`"
            ))
        })?;
        Ok(Some(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut WebRtcSettings);

    #[test]
    fn values_out_of_range_name_their_key() {
        let with = |change: Change| {
            let mut settings = WebRtcSettings::default();
            change(&mut settings);
            settings.check()
        };
        assert_eq!(with(|_| ()), Ok(()));
        let cases: &[(Change, &str)] = &[
            (
                |it| it.public_addresses = vec!["https://media.example.org".into()],
                "webrtc.public_addresses",
            ),
            (
                |it| it.public_addresses = vec!["media.example.org:8189".into()],
                "webrtc.public_addresses",
            ),
            (
                |it| it.public_addresses = vec!["0.0.0.0".into()],
                "webrtc.public_addresses",
            ),
            (
                |it| it.public_addresses = vec!["198.51.100.256".into()],
                "webrtc.public_addresses",
            ),
            (
                |it| it.public_addresses = vec!["198.51.100.7".into(); 7],
                "webrtc.public_addresses",
            ),
            (|it| it.threads = 65, "webrtc.threads"),
            (|it| it.max_sessions = 0, "webrtc.max_sessions"),
            (|it| it.max_pending = 0, "webrtc.max_pending"),
            (
                |it| it.max_pending_per_address = 0,
                "webrtc.max_pending_per_address",
            ),
            (|it| it.max_branches = 65, "webrtc.max_branches"),
            (
                |it| it.handshake_timeout = Duration::from_secs(1),
                "webrtc.handshake_timeout",
            ),
            (|it| it.branch_bitrate = 6, "webrtc.branch_bitrate"),
            (|it| it.join_cache = ByteSize::gib(1), "webrtc.join_cache"),
            (
                |it| it.keyframe_interval = Duration::ZERO,
                "webrtc.keyframe_interval",
            ),
        ];
        for (change, key) in cases {
            let error = with(*change).unwrap_err();
            assert!(error.starts_with(key), "{error}");
        }
        assert_eq!(
            with(|it| it.public_addresses = vec!["2001:db8::1".into(), "media.example.org".into()]),
            Ok(())
        );
    }

    #[test]
    fn half_of_the_cores_re_encode_unless_a_number_is_set() {
        let mut settings = WebRtcSettings::default();
        assert_eq!((settings.branches(1), settings.branches(8)), (1, 4));
        settings.max_branches = 3;
        assert_eq!(settings.branches(1), 3);
    }
}
