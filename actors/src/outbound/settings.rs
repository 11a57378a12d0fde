//! Settings of outgoing requests (`[outbound]`): allowed networks, certificate authorities, time-outs, lookups, idle
//! connections, fetches, redirects.

use std::{path::PathBuf, time::Duration};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::{duration, size};

use super::Cidr;

/// Settings of the guarded connector; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutboundSettings {
    /// Private networks that may be reached although they are rejected by default.
    pub allow: Vec<Cidr>,
    /// PEM file with further certificate authorities; empty: those of the system alone.
    pub ca_file: PathBuf,
    /// Longest time for resolving a name.
    #[serde(with = "duration")]
    pub resolve_timeout: Duration,
    /// Longest time for a connection, TLS included.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// Names that are resolved at a time.
    pub max_lookups: usize,
    /// Head of an answer: status line and all headers.
    #[serde(with = "size")]
    pub max_head: ByteSize,
    /// Idle connections kept, in all and for one host.
    pub max_idle: usize,
    pub max_idle_per_host: usize,
    #[serde(with = "duration")]
    pub keep_idle: Duration,
    /// Files that are fetched (`sourceUrl`) at a time.
    pub max_fetches: usize,
    /// Longest time for a whole fetch, and longest silence between two pieces of it.
    #[serde(with = "duration")]
    pub fetch_timeout: Duration,
    #[serde(with = "duration")]
    pub fetch_idle_timeout: Duration,
    /// Redirects that a fetch follows, each checked again.
    pub max_redirects: u32,
}

impl Default for OutboundSettings {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            ca_file: PathBuf::new(),
            resolve_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            max_lookups: 64,
            max_head: ByteSize::kib(64),
            max_idle: 512,
            max_idle_per_host: 4,
            keep_idle: Duration::from_secs(30),
            max_fetches: 32,
            fetch_timeout: Duration::from_secs(10 * 60),
            fetch_idle_timeout: Duration::from_secs(15),
            max_redirects: 3,
        }
    }
}

impl OutboundSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        for (key, count) in [
            ("outbound.max_lookups", self.max_lookups),
            ("outbound.max_fetches", self.max_fetches),
        ] {
            if count == 0 {
                return Err(format!("{key} must be at least 1"));
            }
        }
        if !(8 << 10..=1 << 20).contains(&self.max_head.as_u64()) {
            return Err("outbound.max_head must be between 8 KiB and 1 MiB".into());
        }
        for (key, time) in [
            ("outbound.resolve_timeout", self.resolve_timeout),
            ("outbound.connect_timeout", self.connect_timeout),
            ("outbound.fetch_timeout", self.fetch_timeout),
            ("outbound.fetch_idle_timeout", self.fetch_idle_timeout),
        ] {
            if time.is_zero() {
                return Err(format!("{key} must be longer than 0s"));
            }
        }
        Ok(())
    }
}
