//! Counts of webhook attempts since the start (delivered, failed, interrupted, in flight) and the histogram of first waits,
//! for metrics.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::metric::HistogramValue;

/// Upper bounds of the time from an event to its first attempt, in seconds.
pub const WAIT_BUCKETS_S: [f64; 8] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 10.0];

/// Counters that the actor writes and any caller reads.
#[derive(Debug, Default)]
pub(super) struct WebhookCounters {
    pub(super) delivered: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) interrupted: AtomicU64,
    pub(super) in_flight: AtomicU64,
    /// By the bounds of [`WAIT_BUCKETS_S`]; the last one has none.
    waits: [AtomicU64; WAIT_BUCKETS_S.len() + 1],
    waited_ms: AtomicU64,
}

/// Attempts since the start of the process, and those in flight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookStatistics {
    pub delivered: u64,
    pub failed: u64,
    /// By the end of an earlier process, or by a fault of this one.
    pub interrupted: u64,
    pub in_flight: u64,
    /// Seconds from events to their first attempts.
    pub waits: HistogramValue,
}

impl WebhookCounters {
    pub(super) fn note_wait(&self, wait: Duration) {
        let seconds = wait.as_secs_f64();
        let bucket = WAIT_BUCKETS_S.iter().position(|bound| seconds <= *bound);
        self.waits[bucket.unwrap_or(WAIT_BUCKETS_S.len())].fetch_add(1, Relaxed);
        let waited_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.waited_ms.fetch_add(waited_ms, Relaxed);
    }

    pub(super) fn read(&self) -> WebhookStatistics {
        let counts: Vec<u64> = self.waits.iter().map(|count| count.load(Relaxed)).collect();
        let bounds = WAIT_BUCKETS_S.into_iter().chain([f64::INFINITY]);
        WebhookStatistics {
            delivered: self.delivered.load(Relaxed),
            failed: self.failed.load(Relaxed),
            interrupted: self.interrupted.load(Relaxed),
            in_flight: self.in_flight.load(Relaxed),
            waits: HistogramValue {
                sum: Duration::from_millis(self.waited_ms.load(Relaxed)).as_secs_f64(),
                count: counts.iter().sum(),
                buckets: bounds.zip(counts).collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_fall_into_their_buckets() {
        let counters = WebhookCounters::default();
        for ms in [0, 10, 11, 500, 7_200_000] {
            counters.note_wait(Duration::from_millis(ms));
        }
        let waits = counters.read().waits;
        let counts: Vec<u64> = waits.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 1, 0, 0, 1]);
        assert_eq!((waits.count, waits.sum), (5, 7_200.521));
    }
}
