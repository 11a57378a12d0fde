//! Settings of SRT (`[srt]`) with their defaults and ranges: address, latency, time-out, most connections.

use std::{
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;

/// Allowed `srt.latency`, in milliseconds.
const LATENCY_MS: RangeInclusive<u128> = 20..=8_000;
/// Allowed `srt.idle_timeout`, in milliseconds.
const IDLE_TIMEOUT_MS: RangeInclusive<u128> = 2_000..=60_000;
/// Allowed `srt.max_connections`.
const CONNECTIONS: RangeInclusive<usize> = 1..=2_048;

/// The `[srt]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SrtSettings {
    /// True when the service listens for SRT.
    pub enabled: bool,
    /// The UDP address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address shown to people in place of the request's host and the listener's port, for instance
    /// `srt://live.example.org:8890`. Empty: not overridden.
    pub public_url: String,
    /// Latency requested of encoders; SRT takes the larger of both sides.
    #[serde(with = "duration")]
    pub latency: Duration,
    /// Silence after which an encoder counts as lost.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    /// Connections at a time; further ones are rejected as overload.
    pub max_connections: usize,
}

impl Default for SrtSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8890)),
            public_url: String::new(),
            latency: Duration::from_millis(400),
            idle_timeout: Duration::from_secs(5),
            max_connections: 256,
        }
    }
}

impl SrtSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let ms = |duration: Duration| duration.as_millis();
        if !LATENCY_MS.contains(&ms(self.latency)) {
            return Err("srt.latency must be between 20ms and 8s".into());
        }
        if !IDLE_TIMEOUT_MS.contains(&ms(self.idle_timeout)) {
            return Err("srt.idle_timeout must be between 2s and 60s".into());
        }
        if !CONNECTIONS.contains(&self.max_connections) {
            return Err("srt.max_connections must be between 1 and 2048".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_name_their_key() {
        let with = |change: fn(&mut SrtSettings)| {
            let mut settings = SrtSettings::default();
            change(&mut settings);
            settings.check()
        };
        assert_eq!(with(|_| ()), Ok(()));
        for (change, key) in [
            (
                (|it: &mut SrtSettings| it.latency = Duration::from_secs(9)) as fn(&mut _),
                "srt.latency",
            ),
            (
                |it: &mut SrtSettings| it.idle_timeout = Duration::from_secs(1),
                "srt.idle_timeout",
            ),
            (
                |it: &mut SrtSettings| it.max_connections = 0,
                "srt.max_connections",
            ),
        ] {
            assert!(with(change).is_err_and(|error| error.starts_with(key)));
        }
    }
}
