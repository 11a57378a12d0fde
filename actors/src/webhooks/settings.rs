//! Settings of webhooks (`[webhooks]`): endpoints, attempts in flight, time-outs, retry pauses, suspension, secret overlap,
//! retention.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::{duration, size};

/// Longest pause between two attempts: as long as deliveries are kept by default.
const LONGEST_PAUSE_S: u64 = 30 * 24 * 3_600;
/// Most pauses between attempts.
const MOST_PAUSES: usize = 16;
/// Most clients that may follow events at a time.
const MOST_FOLLOWERS: usize = 1_000_000;

/// Settings of webhooks; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSettings {
    /// Endpoints of one account.
    pub max_endpoints: usize,
    /// Attempts in flight, in all and for one endpoint.
    pub max_in_flight: usize,
    pub max_per_endpoint: usize,
    /// An endpoint that has an attempt in flight for longer gets one at a time.
    #[serde(with = "duration")]
    pub slow_after: Duration,
    /// Longest time from the first packet to the last byte of the answer that is read.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// Pauses before the second and the further attempts, in whole seconds, each ±20 %.
    pub retry_after_s: Vec<u64>,
    /// The longest `Retry-After` that is honoured.
    #[serde(with = "duration")]
    pub max_retry_after: Duration,
    /// Failures in a row after which an endpoint is suspended ...
    pub suspend_after: u32,
    /// ... when they last at least so long.
    #[serde(with = "duration")]
    pub suspend_over: Duration,
    /// Pause between two probes of a suspended endpoint.
    #[serde(with = "duration")]
    pub probe_every: Duration,
    /// The longest rest of a failing endpoint before its next attempt.
    #[serde(with = "duration")]
    pub max_rest: Duration,
    /// Time for which both secrets sign after a rotation.
    #[serde(with = "duration")]
    pub secret_overlap: Duration,
    /// Bytes of an answer that are read.
    #[serde(with = "size")]
    pub max_answer: ByteSize,
    /// Time for which events and their ended deliveries are kept ...
    #[serde(with = "duration")]
    pub keep: Duration,
    /// ... and how many bytes of them.
    #[serde(with = "size")]
    pub keep_bytes: ByteSize,
    /// Clients that may follow events (SSE) at a time.
    pub max_followers: usize,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            max_endpoints: 100,
            max_in_flight: 512,
            max_per_endpoint: 4,
            slow_after: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            retry_after_s: vec![5, 30, 120, 600, 1_800],
            max_retry_after: Duration::from_secs(3_600),
            suspend_after: 10,
            suspend_over: Duration::from_secs(5 * 60),
            probe_every: Duration::from_secs(60),
            max_rest: Duration::from_secs(5),
            secret_overlap: Duration::from_secs(24 * 3_600),
            max_answer: ByteSize::kib(16),
            keep: Duration::from_secs(30 * 24 * 3_600),
            keep_bytes: ByteSize::gb(2),
            max_followers: 1_000,
        }
    }
}

impl WebhookSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=16_384).contains(&self.max_in_flight) {
            return Err("webhooks.max_in_flight must be between 1 and 16384".into());
        }
        if !(1..=self.max_in_flight).contains(&self.max_per_endpoint) {
            return Err(
                "webhooks.max_per_endpoint must be between 1 and webhooks.max_in_flight".into(),
            );
        }
        if !(1..=MOST_PAUSES).contains(&self.retry_after_s.len()) {
            return Err(format!(
                "webhooks.retry_after_s must have 1 to {MOST_PAUSES} pauses"
            ));
        }
        if self
            .retry_after_s
            .iter()
            .any(|pause| *pause > LONGEST_PAUSE_S)
        {
            return Err(format!(
                "webhooks.retry_after_s must have pauses of at most {LONGEST_PAUSE_S} seconds"
            ));
        }
        if self.max_followers > MOST_FOLLOWERS {
            return Err(format!(
                "webhooks.max_followers must be at most {MOST_FOLLOWERS}"
            ));
        }
        for (key, count) in [
            ("webhooks.max_endpoints", self.max_endpoints),
            ("webhooks.suspend_after", self.suspend_after as usize),
        ] {
            if count == 0 {
                return Err(format!("{key} must be at least 1"));
            }
        }
        for (key, time) in [
            ("webhooks.timeout", self.timeout),
            ("webhooks.probe_every", self.probe_every),
            ("webhooks.keep", self.keep),
        ] {
            if time.as_secs() == 0 {
                return Err(format!("{key} must be at least 1s"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::schedule::RetrySchedule;

    #[test]
    fn whatever_is_accepted_can_be_scheduled() {
        type Change = fn(&mut WebhookSettings);
        let cases: [(Change, Option<&str>); 6] = [
            (|_| {}, None),
            (|it| it.retry_after_s = vec![0, LONGEST_PAUSE_S], None),
            (
                |it| it.retry_after_s = vec![5, u64::MAX],
                Some("webhooks.retry_after_s"),
            ),
            (
                |it| it.retry_after_s = vec![LONGEST_PAUSE_S + 1],
                Some("webhooks.retry_after_s"),
            ),
            (|it| it.max_retry_after = Duration::MAX, None),
            (
                |it| it.max_followers = usize::MAX,
                Some("webhooks.max_followers"),
            ),
        ];
        for (change, key) in cases {
            let mut settings = WebhookSettings::default();
            change(&mut settings);
            match (settings.check(), key) {
                (Ok(()), None) => drop(RetrySchedule::new(&settings).longest()),
                (Err(problem), Some(key)) => assert!(problem.starts_with(key), "{problem}"),
                (found, key) => panic!("{found:?}, expected {key:?}"),
            }
        }
    }
}
