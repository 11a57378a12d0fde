//! Settings of outputs (`[restream]`): most outputs, buffer, time-outs, pauses between retries.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_ingest::rtmp::publish::Patience;
use sluice_media::setting::duration;

/// Settings of outputs; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RestreamSettings {
    pub max_outputs_per_input: u32,
    pub max_outputs: u32,
    /// Longest lag of an output before it leaves frames out.
    #[serde(with = "duration")]
    pub buffer: Duration,
    /// Longest time from the connection to the target's permission to publish.
    #[serde(with = "duration")]
    pub answer_timeout: Duration,
    /// Longest time for which a target may take nothing.
    #[serde(with = "duration")]
    pub write_timeout: Duration,
    /// The first pause before a target is tried again; it doubles up to `retry_longest`.
    #[serde(with = "duration")]
    pub retry_first: Duration,
    #[serde(with = "duration")]
    pub retry_longest: Duration,
}

impl Default for RestreamSettings {
    fn default() -> Self {
        Self {
            max_outputs_per_input: 5,
            max_outputs: 50,
            buffer: Duration::from_secs(3),
            answer_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(10),
            retry_first: Duration::from_secs(1),
            retry_longest: Duration::from_secs(30),
        }
    }
}

impl RestreamSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(500..=30_000).contains(&self.buffer.as_millis()) {
            return Err("restream.buffer must be between 500ms and 30s".into());
        }
        for (key, time) in [
            ("restream.answer_timeout", self.answer_timeout),
            ("restream.write_timeout", self.write_timeout),
        ] {
            if time.is_zero() {
                return Err(format!("{key} must be longer than 0s"));
            }
        }
        Ok(())
    }

    pub(super) fn patience(&self) -> Patience {
        Patience {
            answer: self.answer_timeout,
            write: self.write_timeout,
        }
    }
}
