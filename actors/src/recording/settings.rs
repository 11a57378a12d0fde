//! Settings of recordings and clips (`[recordings]`): recordings stored at a time, lease, longest clip, clips at a time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;

/// Settings of recordings and clips; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordingSettings {
    /// Recordings that become files at a time; others wait as rows.
    pub max_active: usize,
    /// Time for which a lease lasts without a heartbeat.
    #[serde(with = "duration")]
    pub lease: Duration,
    /// The longest clip.
    #[serde(with = "duration")]
    pub max_clip: Duration,
    /// Clips that are cut at a time; one more is rejected as busy.
    pub max_clips: usize,
}

impl Default for RecordingSettings {
    fn default() -> Self {
        Self {
            max_active: 2,
            lease: Duration::from_secs(15),
            max_clip: Duration::from_secs(3_600),
            max_clips: 2,
        }
    }
}

impl RecordingSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=64).contains(&self.max_active) {
            return Err("recordings.max_active must be 1 to 64".into());
        }
        if self.lease < Duration::from_secs(3) {
            return Err("recordings.lease must be at least 3s".into());
        }
        if !(1..=86_400).contains(&self.max_clip.as_secs()) {
            return Err("recordings.max_clip must be between 1s and 24h".into());
        }
        if !(1..=64).contains(&self.max_clips) {
            return Err("recordings.max_clips must be 1 to 64".into());
        }
        Ok(())
    }
}
