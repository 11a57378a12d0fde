//! Settings of RTSP pulls (`[rtsp]`) with their defaults: most pulls, time-outs, pauses between retries.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;

/// The `[rtsp]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RtspSettings {
    /// Sources that are pulled at a time; further ones wait until one of them has ended.
    pub max_pulls: usize,
    /// Time for each step up to the first frame: connecting, describing, setting up, playing.
    #[serde(with = "duration")]
    pub step_timeout: Duration,
    /// Silence after which a source counts as lost.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    /// The first pause before a source is tried again; it doubles up to `retry_longest`.
    #[serde(with = "duration")]
    pub retry_first: Duration,
    #[serde(with = "duration")]
    pub retry_longest: Duration,
}

impl Default for RtspSettings {
    fn default() -> Self {
        Self {
            max_pulls: 64,
            step_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(10),
            retry_first: Duration::from_secs(1),
            retry_longest: Duration::from_secs(30),
        }
    }
}
