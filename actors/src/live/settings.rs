//! Settings of live inputs (`[live]`): parts, segments, window, linger, take-over, most streams and viewers, frames, with
//! their ranges.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;

/// Settings of live inputs; every field is documented in `config/default.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LiveSettings {
    #[serde(with = "duration")]
    pub part_target: Duration,
    #[serde(with = "duration")]
    pub segment_min: Duration,
    #[serde(with = "duration")]
    pub track_wait: Duration,
    #[serde(with = "duration")]
    pub window: Duration,
    pub window_min_segments: usize,
    #[serde(with = "duration")]
    pub linger: Duration,
    #[serde(with = "duration")]
    pub persist_wait: Duration,
    #[serde(with = "duration")]
    pub read_interval: Duration,
    #[serde(with = "duration")]
    pub displaced_for: Duration,
    #[serde(with = "duration")]
    pub fresh_for: Duration,
    pub max_streams: usize,
    pub max_waiting_viewers: usize,
    pub count_viewers: bool,
    #[serde(with = "duration")]
    pub still_every: Duration,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self {
            part_target: Duration::from_millis(200),
            segment_min: Duration::from_millis(1900),
            track_wait: Duration::from_secs(1),
            window: Duration::from_secs(20),
            window_min_segments: 6,
            linger: Duration::from_secs(60),
            persist_wait: Duration::from_millis(250),
            read_interval: Duration::from_millis(50),
            displaced_for: Duration::from_secs(60),
            fresh_for: Duration::from_secs(2),
            max_streams: 500,
            max_waiting_viewers: 20_000,
            count_viewers: true,
            still_every: Duration::from_secs(5),
        }
    }
}

impl LiveSettings {
    /// Checks ranges; the message names the key and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let ms = |duration: Duration| duration.as_millis();
        if !(100..=2000).contains(&ms(self.part_target)) {
            return Err("live.part_target must be between 100ms and 2s".into());
        }
        if !(500..=6000).contains(&ms(self.segment_min)) || self.segment_min < self.part_target {
            return Err(
                "live.segment_min must be between 500ms and 6s and not below live.part_target"
                    .into(),
            );
        }
        // Three of the longest target durations stay listed (RFC 8216 §6.2.2).
        if !(18_000..=3_600_000).contains(&ms(self.window)) {
            return Err("live.window must be between 18s and 1h".into());
        }
        if !(3..=1000).contains(&self.window_min_segments) {
            return Err("live.window_min_segments must be between 3 and 1000".into());
        }
        if ms(self.persist_wait) > 5000 {
            return Err("live.persist_wait must be at most 5s".into());
        }
        if ms(self.read_interval) > 100 {
            return Err(
                "live.read_interval must be at most 100ms; 0ms reads at every packet".into(),
            );
        }
        if !(1_000..=10_000).contains(&ms(self.still_every)) {
            return Err("live.still_every must be between 1s and 10s".into());
        }
        if self.max_streams == 0 {
            return Err("live.max_streams must be at least 1".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_holds_three_target_durations() {
        for (seconds, allowed) in [(17, false), (18, true), (3_600, true), (3_601, false)] {
            let settings = LiveSettings {
                window: Duration::from_secs(seconds),
                ..LiveSettings::default()
            };
            assert_eq!(settings.check().is_ok(), allowed, "{seconds} s");
        }
    }
}
