//! Clock of the schedules (`SystemClock`): Unix milliseconds that never go back within a process.
//!
//! A wall clock that is set back would stop everything that is due; one that is set forward makes it due early, once.

use std::time::Instant;

use parking_lot::Mutex;
use sluice_store::now_ms;

/// Milliseconds since 1970 as schedules count them.
#[derive(Debug)]
pub struct SystemClock(Mutex<Reading>);

/// Last reading of a clock, and its time.
#[derive(Clone, Copy, Debug)]
struct Reading {
    shown_ms: i64,
    at: Instant,
}

impl Reading {
    /// Wall-clock time, or the last reading plus the elapsed time, whichever is later.
    fn next(self, wall_ms: i64, at: Instant) -> Self {
        let elapsed = at.saturating_duration_since(self.at).as_millis();
        let elapsed_ms = i64::try_from(elapsed).unwrap_or(i64::MAX);
        let steady_ms = self.shown_ms.saturating_add(elapsed_ms);
        Self {
            shown_ms: steady_ms.max(wall_ms),
            at,
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self(Mutex::new(Reading {
            shown_ms: now_ms(),
            at: Instant::now(),
        }))
    }
}

impl SystemClock {
    /// Returns Unix milliseconds, never less than an earlier answer of this clock.
    pub fn now_ms(&self) -> i64 {
        let mut reading = self.0.lock();
        *reading = reading.next(now_ms(), Instant::now());
        reading.shown_ms
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_wall_is_followed_forward_only() {
        let start = Instant::now();
        let mut reading = Reading {
            shown_ms: 1_000_000,
            at: start,
        };
        for (seconds, wall_ms, shown_ms) in [
            (1, 1_001_000, 1_001_000),
            // Set back by an hour: time continues.
            (2, -2_600_000, 1_002_000),
            (2, i64::MIN, 1_002_000),
            // Set forward by an hour, and back again.
            (3, 4_603_000, 4_603_000),
            (4, 1_004_000, 4_604_000),
            // The monotonic clock cannot go back; if it did, nothing would break.
            (3, 1_005_000, 4_604_000),
            (5, i64::MAX, i64::MAX),
            (6, 0, i64::MAX),
        ] {
            reading = reading.next(wall_ms, start + Duration::from_secs(seconds));
            assert_eq!(reading.shown_ms, shown_ms, "{seconds} s, wall {wall_ms}");
        }
    }

    #[test]
    fn it_shows_the_time() {
        let clock = SystemClock::default();
        let shown = clock.now_ms();
        assert!((shown - now_ms()).abs() < 60_000, "{shown}");
        assert!(clock.now_ms() >= shown);
    }
}
