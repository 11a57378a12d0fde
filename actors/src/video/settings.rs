//! Settings of video streams (`[vod]`): streams at a time, lease, renditions, captions, followers, cached playlists.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::{duration, size};

/// Settings of HLS assets; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamSettings {
    /// Assets that are worked on at a time; others wait as rows.
    pub max_active: usize,
    /// Time for which a lease lasts without a heartbeat.
    #[serde(with = "duration")]
    pub lease: Duration,
    /// Renditions of one asset, of its own choice.
    pub max_renditions: usize,
    /// Captions of one asset.
    pub max_captions: usize,
    /// Largest text of a caption file.
    #[serde(with = "size")]
    pub max_caption: ByteSize,
    /// Clients that may follow assets (SSE) at a time.
    pub max_followers: usize,
    /// Playlists that are kept ready in memory.
    pub max_cached: usize,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            max_active: 16,
            lease: Duration::from_secs(15),
            max_renditions: 8,
            max_captions: 32,
            max_caption: ByteSize::mib(2),
            max_followers: 1_000,
            max_cached: 256,
        }
    }
}

impl StreamSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.max_active == 0 {
            return Err("vod.max_active must be at least 1".into());
        }
        if self.lease < Duration::from_secs(3) {
            return Err("vod.lease must be at least 3s".into());
        }
        if self.max_renditions == 0 {
            return Err("vod.max_renditions must be at least 1".into());
        }
        if self.max_cached == 0 {
            return Err("vod.max_cached must be at least 1".into());
        }
        Ok(())
    }
}
