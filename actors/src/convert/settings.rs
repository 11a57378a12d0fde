//! Settings of conversion jobs (`[convert]`): longest wait before 202, jobs at a time, lease, time for which results are
//! kept, followers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;

/// Settings of conversion jobs; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvertSettings {
    /// After this a waiting request is answered 202 and the job continues.
    #[serde(with = "duration")]
    pub inline_wait: Duration,
    /// Jobs that run at a time; others wait as rows.
    pub max_active: usize,
    /// Time for which a lease lasts without a heartbeat.
    #[serde(with = "duration")]
    pub lease: Duration,
    /// Time for which a result can be downloaded.
    #[serde(with = "duration")]
    pub keep_results: Duration,
    /// Clients that may follow jobs (SSE) at a time.
    pub max_followers: usize,
}

impl Default for ConvertSettings {
    fn default() -> Self {
        Self {
            inline_wait: Duration::from_secs(50),
            max_active: 64,
            lease: Duration::from_secs(15),
            keep_results: Duration::from_secs(24 * 3600),
            max_followers: 1_000,
        }
    }
}

impl ConvertSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.max_active == 0 {
            return Err("convert.max_active must be at least 1".into());
        }
        if self.lease < Duration::from_secs(3) {
            return Err("convert.lease must be at least 3s".into());
        }
        Ok(())
    }
}
