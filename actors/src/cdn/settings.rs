//! Settings of image delivery (`[cdn]`): sizes of the caches, new variants a minute, AVIF in `auto`, remembered failures,
//! longest wait.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::{
    setting::{duration, size},
    variant::VariantSettings,
};

/// Settings of image delivery; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CdnSettings {
    #[serde(with = "size")]
    pub memory: ByteSize,
    #[serde(with = "size")]
    pub disk: ByteSize,
    /// A delivery key may cause this many renders a minute; 0: no bound.
    pub new_variants_per_minute: u32,
    pub avif_in_auto: bool,
    /// Files whose facts are kept in memory.
    pub known_files: usize,
    /// Time for which a failure is remembered.
    #[serde(with = "duration")]
    pub remember_failures: Duration,
    /// Longest wait of a miss for its render, before 503.
    #[serde(with = "duration")]
    pub render_wait: Duration,
}

impl Default for CdnSettings {
    fn default() -> Self {
        Self {
            memory: ByteSize::mib(128),
            disk: ByteSize::gb(10),
            new_variants_per_minute: 600,
            avif_in_auto: false,
            known_files: 20_000,
            remember_failures: Duration::from_secs(5),
            render_wait: Duration::from_secs(30),
        }
    }
}

impl CdnSettings {
    /// Returns the settings by which requests are read.
    pub fn variants(&self) -> VariantSettings {
        VariantSettings {
            avif_in_auto: self.avif_in_auto,
        }
    }

    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.render_wait < Duration::from_secs(1) {
            return Err("cdn.render_wait must be at least 1s".into());
        }
        if self.known_files == 0 {
            return Err("cdn.known_files must be at least 1".into());
        }
        Ok(())
    }
}
