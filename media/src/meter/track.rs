//! Frame rate, drift, stalls and timestamp jumps of a track: its media time against the wall clock.

use super::{Step, TICKS_PER_MS};
use crate::unit::CLOCK_90K;

/// Frames that the frame rate is measured over: 2 to 5 s, long enough that the millisecond steps of RTMP's clock
/// cannot turn 29.97 into 30.
const RATE_UNITS: usize = 128;
/// Frames below which no rate is reported.
const MIN_RATE_UNITS: usize = 16;

/// A pause or jump is more than this.
const TOLERATED_90K: i64 = CLOCK_90K;
const TOLERATED_MS: i64 = 1_000;

/// Rates that cameras and encoders are set to.
const USUAL_RATES: [f64; 14] = [
    10.0,
    12.0,
    15.0,
    20.0,
    24_000.0 / 1_001.0,
    24.0,
    25.0,
    30_000.0 / 1_001.0,
    30.0,
    48.0,
    50.0,
    60_000.0 / 1_001.0,
    60.0,
    120.0,
];
/// Half the distance between a rate and its NTSC neighbour (0.1 %).
const USUAL_RATE_TOLERANCE: f64 = 0.000_5;

/// A point in both times.
#[derive(Clone, Copy, Debug)]
struct Instant {
    media_90k: i64,
    wall_ms: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Track {
    first: Option<Instant>,
    last: Option<Instant>,
    /// Media times of the last units, a ring.
    recent_90k: [i64; RATE_UNITS],
    /// Units since the last jump or stall; the ring's next place is this modulo its length.
    recent_count: usize,
}

impl Default for Track {
    fn default() -> Self {
        Self {
            first: None,
            last: None,
            recent_90k: [0; RATE_UNITS],
            recent_count: 0,
        }
    }
}

impl Track {
    /// Takes in the next unit's media time. After a jump, drift counts from here; the rate also after a stall.
    pub(super) fn step(&mut self, media_90k: i64, now_ms: i64) -> Step {
        let here = Instant {
            media_90k,
            wall_ms: now_ms,
        };
        let step = self.last.map_or(Step::Steady, |last| last.step_to(here));
        if step == Step::Jumped || self.first.is_none() {
            self.first = Some(here);
        }
        if step != Step::Steady {
            self.recent_count = 0;
        }
        self.recent_90k[self.recent_count % RATE_UNITS] = media_90k;
        self.recent_count += 1;
        self.last = Some(here);
        step
    }

    pub(super) fn last_90k(&self) -> Option<i64> {
        self.last.map(|last| last.media_90k)
    }

    pub(super) fn last_arrival_ms(&self) -> Option<i64> {
        self.last.map(|last| last.wall_ms)
    }

    /// Media time passed minus wall-clock time passed.
    pub(super) fn drift_ms(&self) -> Option<i64> {
        let (first, last) = (self.first?, self.last?);
        let media_ms = last.media_90k.saturating_sub(first.media_90k) / TICKS_PER_MS;
        Some(media_ms - (last.wall_ms - first.wall_ms))
    }

    /// Units per second of media time.
    pub(super) fn frame_rate(&self) -> Option<f64> {
        let units = self.recent_count.min(RATE_UNITS);
        if units < MIN_RATE_UNITS {
            return None;
        }
        let oldest = self.recent_90k[(self.recent_count - units) % RATE_UNITS];
        let span_90k = self.last?.media_90k.saturating_sub(oldest);
        (span_90k > 0)
            .then(|| snap_to_usual((units - 1) as f64 * CLOCK_90K as f64 / span_90k as f64))
    }
}

impl Instant {
    fn step_to(self, next: Self) -> Step {
        let media_90k = next.media_90k.saturating_sub(self.media_90k);
        let wall_ms = next.wall_ms - self.wall_ms;
        if media_90k < 0 {
            return Step::Jumped;
        }
        let passed_unseen_90k = media_90k - wall_ms.max(0) * TICKS_PER_MS;
        if media_90k > TOLERATED_90K && passed_unseen_90k > TOLERATED_90K {
            return Step::Jumped;
        }
        if wall_ms > TOLERATED_MS {
            Step::Stalled
        } else {
            Step::Steady
        }
    }
}

/// Returns the usual rate that was most likely meant, else the rate itself; to three decimals.
fn snap_to_usual(rate: f64) -> f64 {
    let usual = USUAL_RATES
        .iter()
        .find(|usual| (rate / **usual - 1.0).abs() < USUAL_RATE_TOLERANCE);
    let rate = usual.copied().unwrap_or(rate);
    (rate * 1_000.0).round() / 1_000.0
}
