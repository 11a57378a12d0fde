//! Clock of the service: milliseconds since 1970 UTC, the machine's when solo. In a cluster it is the database's, measured with
//! each renewal and carried on by the machine's monotonic clock, so that setting the machine's clock changes nothing.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tracing::warn;

/// Measurements of which the one with the shortest round trip counts.
const SAMPLES: usize = 8;
/// Difference beyond the round trips from which the database's clock counts as set.
const TOLERANCE_MS: i64 = 20;
/// Jump of the database's clock between two measurements, beyond the round trips, from which leases that were written before say
/// nothing.
const JUMP_MS: i64 = 1_000;
/// Milliseconds by which the clock stops rather than goes back. After more it goes back: leases would not end for as long.
const MOST_STANDSTILL_MS: i64 = 10_000;

/// The clock of a process that has joined a cluster. Stores of one process share it.
static CLOCK: Mutex<Option<DatabaseClock>> = Mutex::new(None);
static IS_MEASURED: AtomicBool = AtomicBool::new(false);

/// The service's clock: milliseconds since 1970 UTC, as the rows hold it. In a cluster it is the database's and never goes back,
/// unless that one is set back by more than 10 s.
pub fn now_ms() -> i64 {
    if !IS_MEASURED.load(Relaxed) {
        return machine_ms();
    }
    let mut clock = CLOCK.lock();
    match &mut *clock {
        Some(clock) => clock.read(Instant::now()),
        None => machine_ms(),
    }
}

fn machine_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Takes a measurement into account. Returns the milliseconds by which the database's clock is ahead of the machine's.
pub(super) fn measured(sample: Sample) -> i64 {
    let mut clock = CLOCK.lock();
    let clock = clock.get_or_insert_default();
    if clock.add(sample) {
        warn!("the clock of the database was set back: set it once, while no node runs");
    }
    let offset_ms = clock.estimate(Instant::now()) - machine_ms();
    IS_MEASURED.store(true, Relaxed);
    offset_ms
}

/// Reading of the database's clock at some time between the question and the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) asked_at: Instant,
    pub(super) answered_at: Instant,
    pub(super) database_ms: i64,
}

impl Sample {
    fn round_trip(&self) -> Duration {
        self.answered_at - self.asked_at
    }

    /// Greatest error of the estimate.
    fn error_ms(&self) -> i64 {
        millis(self.round_trip() / 2)
    }

    /// Estimates the database's clock at a time.
    fn estimate(&self, at: Instant) -> i64 {
        let middle = self.asked_at + self.round_trip() / 2;
        match at.checked_duration_since(middle) {
            Some(since) => self.database_ms + millis(since),
            None => self.database_ms - millis(middle - at),
        }
    }

    /// Returns whether the database's clock was set between a measurement and this one, or another server's is in its place; also
    /// when this machine was suspended meanwhile.
    pub(super) fn is_after_jump(&self, before: &Self) -> bool {
        let jump_ms = self.estimate(self.answered_at) - before.estimate(self.answered_at);
        jump_ms.abs() > before.error_ms() + self.error_ms() + JUMP_MS
    }
}

fn millis(span: Duration) -> i64 {
    crate::duration_ms(span)
}

#[derive(Default)]
struct DatabaseClock {
    /// The oldest first.
    samples: VecDeque<Sample>,
    /// The latest time that was read.
    latest_ms: i64,
}

impl DatabaseClock {
    /// Returns whether the clock goes back by this measurement.
    fn add(&mut self, sample: Sample) -> bool {
        if let Some(best) = self.best() {
            let difference =
                sample.estimate(sample.answered_at) - best.estimate(sample.answered_at);
            if difference.abs() > best.error_ms() + sample.error_ms() + TOLERANCE_MS {
                self.samples.clear();
            }
        }
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let now_ms = self.estimate(sample.answered_at);
        let goes_back = self.latest_ms - now_ms > MOST_STANDSTILL_MS;
        if goes_back {
            self.latest_ms = now_ms;
        }
        goes_back
    }

    fn best(&self) -> Option<&Sample> {
        self.samples.iter().min_by_key(|sample| sample.round_trip())
    }

    fn estimate(&self, at: Instant) -> i64 {
        self.best().map_or(self.latest_ms, |best| best.estimate(at))
    }

    fn read(&mut self, at: Instant) -> i64 {
        self.latest_ms = self.latest_ms.max(self.estimate(at));
        self.latest_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    struct Simulated {
        clock: DatabaseClock,
        start: Instant,
    }

    impl Simulated {
        fn new() -> Self {
            Self {
                clock: DatabaseClock::default(),
                start: Instant::now(),
            }
        }

        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        /// The database said `database_ms` after half of the round trip.
        fn add(&mut self, asked_ms: u64, round_trip_ms: u64, database_ms: i64) -> bool {
            self.clock.add(Sample {
                asked_at: self.at(asked_ms),
                answered_at: self.at(asked_ms + round_trip_ms),
                database_ms,
            })
        }

        fn read(&mut self, ms: u64) -> i64 {
            self.clock.read(self.at(ms))
        }
    }

    #[test]
    fn the_measurement_with_the_shortest_round_trip_counts() {
        let mut it = Simulated::new();
        it.add(0, 10, NOW + 5);
        assert_eq!(it.read(10), NOW + 10);
        // A slow answer, in which the time was read at the beginning.
        it.add(1_000, 400, NOW + 1_000);
        assert_eq!(it.read(1_400), NOW + 1_400);
        for second in 2..12 {
            it.add(second * 1_000, 400, NOW + second as i64 * 1_000 + 190);
        }
        let drifted = it.read(12_000) - NOW;
        assert_eq!(drifted, 12_000 - 10, "the quick one is too old by now");
    }

    #[test]
    fn the_clock_does_not_go_back_by_a_small_correction() {
        let mut it = Simulated::new();
        it.add(0, 10, NOW + 5);
        assert_eq!(it.read(1_000), NOW + 1_000);
        assert!(!it.add(1_000, 2, NOW + 501), "half a second back");
        assert_eq!(it.read(1_002), NOW + 1_000);
        assert_eq!(it.read(1_400), NOW + 1_000);
        assert_eq!(it.read(1_600), NOW + 1_100);
    }

    #[test]
    fn a_jump_is_more_than_slow_answers_explain() {
        let start = Instant::now();
        let sample = |asked_ms: u64, round_trip_ms: u64, database_ms| Sample {
            asked_at: start + Duration::from_millis(asked_ms),
            answered_at: start + Duration::from_millis(asked_ms + round_trip_ms),
            database_ms,
        };
        let before = sample(0, 2, NOW + 1);
        for (later, is_after_jump) in [
            (sample(1_000, 2, NOW + 1_001), false),
            (sample(1_000, 2, NOW + 1_901), false),
            (sample(1_000, 2, NOW + 2_101), true),
            (sample(1_000, 2, NOW - 101), true),
            (sample(1_000, 2_000, NOW + 1_001), false),
            (sample(3_600_000, 2, NOW + 3_600_100), false),
            (sample(3_600_000, 2, NOW + 1), true),
        ] {
            assert_eq!(later.is_after_jump(&before), is_after_jump, "{later:?}");
        }
    }

    #[test]
    fn a_database_that_is_set_is_followed_at_once() {
        let mut it = Simulated::new();
        it.add(0, 2, NOW + 1);
        it.add(1_000, 2, NOW + 3_600_001);
        assert_eq!(it.read(1_002), NOW + 3_600_002);
        assert!(it.add(2_000, 2, NOW + 2_001), "an hour back");
        assert_eq!(it.read(2_002), NOW + 2_002);
    }
}
