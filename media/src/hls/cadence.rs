//! Frame rate and frame duration of a live stream, and the PART-TARGET that follows from it.

use crate::unit::CLOCK_90K;

/// Number of the latest frame durations that count.
const REMEMBERED: usize = 16;
const MILLISECOND_90K: i64 = CLOCK_90K / 1_000;
/// Timestamps of whole milliseconds are up to this far off; more is the encoder's own jitter.
const ROUNDING_90K: i64 = MILLISECOND_90K * 3 / 2;
/// Rates that encoders mean when they come close to them.
const COMMON_RATES: [f64; 10] = [
    15.0,
    24_000.0 / 1_001.0,
    24.0,
    25.0,
    30_000.0 / 1_001.0,
    30.0,
    50.0,
    60_000.0 / 1_001.0,
    60.0,
    120.0,
];

/// The latest frame durations of one track.
#[derive(Debug)]
pub(super) struct Cadence {
    durations: [i64; REMEMBERED],
    count: usize,
    next: usize,
    /// Duration to expect before the first one is known.
    expected: i64,
}

impl Cadence {
    /// Returns a cadence that assumes `expected_90k` as the frame duration until a frame came.
    pub(super) fn new(expected_90k: i64) -> Self {
        Self {
            durations: [0; REMEMBERED],
            count: 0,
            next: 0,
            expected: expected_90k.max(1),
        }
    }

    pub(super) fn observe(&mut self, duration_90k: i64) {
        self.durations[self.next] = duration_90k;
        self.next = (self.next + 1) % REMEMBERED;
        self.count = (self.count + 1).min(REMEMBERED);
    }

    /// The median of the latest durations, at least one tick.
    pub(super) fn typical(&self) -> i64 {
        if self.count == 0 {
            return self.expected;
        }
        let mut sorted = self.durations;
        let known = &mut sorted[..self.count];
        known.sort_unstable();
        known[self.count / 2].max(1)
    }

    /// The newest duration.
    pub(super) fn last(&self) -> i64 {
        match self.count {
            0 => self.expected,
            _ => self.durations[(self.next + REMEMBERED - 1) % REMEMBERED].max(1),
        }
    }

    /// The mean of the usual durations: unlike the median, it sees through rounding to milliseconds.
    fn mean(&self) -> f64 {
        let (count, sum) = self
            .usual()
            .fold((0, 0), |(count, sum), duration| (count + 1, sum + duration));
        if count == 0 {
            self.expected as f64
        } else {
            sum.max(1) as f64 / f64::from(count)
        }
    }

    /// Latest durations without outliers, as a dropped frame makes them.
    fn usual(&self) -> impl Iterator<Item = i64> {
        let typical = self.typical();
        let known = self.durations[..self.count].iter().copied();
        known.filter(move |duration| (duration - typical).abs() <= typical / 4 + MILLISECOND_90K)
    }

    /// Returns how far durations stray from their mean.
    fn jitter(&self) -> i64 {
        let mean = self.mean() as i64;
        self.usual()
            .map(|duration| (duration - mean).abs())
            .max()
            .unwrap_or(0)
    }

    /// Returns the frames per second: the declared rate when it is about right, else the measured one.
    pub(super) fn frame_rate(&self, declared: Option<f64>) -> Option<f64> {
        if self.count == 0 {
            return declared.map(rounded);
        }
        let measured = CLOCK_90K as f64 / self.mean();
        let near = |rate: f64, tolerance: f64| (measured / rate - 1.0).abs() <= tolerance;
        let declared = declared.filter(|&rate| near(rate, 0.03));
        let common = || {
            let distance = |rate: &f64| (measured - rate).abs();
            COMMON_RATES
                .into_iter()
                .filter(|&rate| near(rate, 0.02))
                .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        };
        Some(rounded(declared.or_else(common).unwrap_or(measured)))
    }

    /// Returns PART-TARGET for parts of about `wanted_90k`: a whole number of frames, rounded up to the millisecond,
    /// with 1 ms of room for rounded timestamps. Encoders with a larger deviation get that much room, up to a tenth, so
    /// that a full part still is at least 85 % of the target (RFC 8216bis §4.4.3.7).
    pub(super) fn part_target(&self, wanted_90k: i64, frame_rate: Option<f64>) -> u32 {
        let mean = self.mean();
        let frame = match frame_rate.map(|rate| CLOCK_90K as f64 / rate) {
            Some(frame) if (frame / mean - 1.0).abs() < 0.03 => frame,
            _ => mean,
        };
        let frames = (wanted_90k as f64 / frame).round().max(1.0);
        let whole_ms = (frames * frame / MILLISECOND_90K as f64 - 0.01).ceil() as i64;
        let exact = whole_ms * MILLISECOND_90K;
        let jitter = self.jitter();
        let room = if jitter > ROUNDING_90K {
            jitter.min(exact / 10)
        } else {
            0
        };
        u32::try_from(exact + MILLISECOND_90K + room).unwrap_or(u32::MAX)
    }
}

fn rounded(rate: f64) -> f64 {
    (rate * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cadence of `frames` frames at this rate, stamped in whole milliseconds.
    fn stamped(rate: f64, frames: i64) -> Cadence {
        let mut cadence = Cadence::new(3_000);
        let stamp = |frame: i64| (frame as f64 * 1_000.0 / rate).floor() as i64 * 90;
        for frame in 0..frames {
            cadence.observe(stamp(frame + 1) - stamp(frame));
        }
        cadence
    }

    #[test]
    fn a_full_part_fits_its_target_at_every_usual_rate() {
        for rate in [
            12.5, 15.0, 23.976, 24.0, 25.0, 29.97, 30.0, 48.0, 50.0, 59.94, 60.0, 120.0,
        ] {
            let frames = (0.2_f64 * rate).round();
            let target_ms =
                f64::from(stamped(rate, frames as i64).part_target(18_000, None)) / 90.0;
            let full_ms = (frames * 1_000.0 / rate).ceil();
            assert!(full_ms <= target_ms, "{rate}: {full_ms} > {target_ms}");
            assert!(
                full_ms - 1.0 >= 0.85 * target_ms,
                "{rate}: {full_ms} is short of {target_ms}"
            );
        }
    }

    #[test]
    fn a_frame_longer_than_the_target_is_the_target() {
        let mut cadence = Cadence::new(3_000);
        cadence.observe(45_000);
        assert_eq!(cadence.part_target(18_000, None), 45_090);
    }

    #[test]
    fn the_rate_is_the_declared_one_only_when_it_is_about_right() {
        let cases = [
            (stamped(30.0, 6), Some(29.97), Some(29.97)),
            (stamped(30.0, 6), Some(60.0), Some(30.0)),
            (stamped(29.97, 16), None, Some(29.97)),
            (stamped(7.0, 16), None, Some(7.01)),
            (Cadence::new(3_000), Some(25.0), Some(25.0)),
            (Cadence::new(3_000), None, None),
        ];
        for (cadence, declared, expected) in cases {
            let rate = cadence.frame_rate(declared);
            let close = match (rate, expected) {
                (Some(rate), Some(expected)) => (rate - expected).abs() < 0.04,
                (rate, expected) => rate == expected,
            };
            assert!(close, "{rate:?} instead of {expected:?}");
        }
    }
}
