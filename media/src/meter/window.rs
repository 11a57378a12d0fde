//! Sliding windows for health: bit rate of 10 s, last key-frame intervals, B-frame delay, averages. Of fixed size, so
//! that measuring never allocates.

use super::TICKS_PER_MS;
use crate::unit::CLOCK_90K;

/// Seconds over which the bit rate is measured.
const WINDOW_S: i64 = 10;
/// One bucket per second of the window, and the current second.
const BUCKETS: usize = WINDOW_S as usize + 1;

/// Bytes per second of arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByteWindow {
    first_ms: Option<i64>,
    buckets: [Bucket; BUCKETS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    second: i64,
    bytes: u64,
}

impl ByteWindow {
    pub(super) fn add(&mut self, bytes: usize, now_ms: i64) {
        self.first_ms.get_or_insert(now_ms);
        let second = now_ms.div_euclid(1_000);
        let bucket = &mut self.buckets[second.rem_euclid(BUCKETS as i64) as usize];
        if bucket.second != second {
            *bucket = Bucket { second, bytes: 0 };
        }
        bucket.bytes += bytes as u64;
    }

    /// Bit rate of the whole seconds of the window; `None` until one has passed.
    pub(super) fn bits_per_second(&self, now_ms: i64) -> Option<u64> {
        let this_second = now_ms.div_euclid(1_000);
        let from_ms = self.first_ms?.max((this_second - WINDOW_S) * 1_000);
        let span_ms = u64::try_from(this_second * 1_000 - from_ms)
            .ok()
            .filter(|span_ms| *span_ms >= 1_000)?;
        let inside =
            |bucket: &&Bucket| (this_second - WINDOW_S..this_second).contains(&bucket.second);
        let bytes: u64 = self
            .buckets
            .iter()
            .filter(inside)
            .map(|bucket| bucket.bytes)
            .sum();
        Some(bytes * 8 * 1_000 / span_ms)
    }
}

/// Intervals between key frames that the mean is made of.
const KEPT_INTERVALS: usize = 5;

/// Least distance in progress that counts before the first whole one: a shorter one may end at any frame.
const LEAST_OPEN_90K: i64 = 3 * CLOCK_90K;

/// Distances between key frames, in media time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyFrames {
    last_key_90k: Option<i64>,
    latest_90k: i64,
    intervals_90k: [i64; KEPT_INTERVALS],
    count: usize,
    longest_90k: i64,
}

impl KeyFrames {
    pub(super) fn observe(&mut self, dts_90k: i64, key: bool) {
        self.latest_90k = dts_90k;
        if !key {
            return;
        }
        if let Some(last_key_90k) = self.last_key_90k.replace(dts_90k) {
            let interval_90k = dts_90k.saturating_sub(last_key_90k);
            self.intervals_90k[self.count % KEPT_INTERVALS] = interval_90k;
            self.count += 1;
            self.longest_90k = self.longest_90k.max(interval_90k);
        }
    }

    /// Forgets the distance in progress: media time jumped.
    pub(super) fn break_off(&mut self) {
        self.last_key_90k = None;
    }

    pub(super) fn mean_interval_s(&self) -> Option<f64> {
        let kept = &self.intervals_90k[..self.count.min(KEPT_INTERVALS)];
        let open_90k = self.open_90k();
        if kept.iter().all(|interval_90k| open_90k > *interval_90k) {
            return (open_90k > 0).then(|| seconds(open_90k as f64));
        }
        Some(seconds(
            kept.iter()
                .map(|interval_90k| *interval_90k as f64)
                .sum::<f64>()
                / kept.len() as f64,
        ))
    }

    pub(super) fn longest_interval_s(&self) -> Option<f64> {
        let longest_90k = self.longest_90k.max(self.open_90k());
        (longest_90k > 0).then(|| seconds(longest_90k as f64))
    }

    /// Distance in progress; 0 while it is too short to count.
    fn open_90k(&self) -> i64 {
        let open_90k = self.last_key_90k.map_or(0, |last_key_90k| {
            self.latest_90k.saturating_sub(last_key_90k)
        });
        if self.count == 0 && open_90k < LEAST_OPEN_90K {
            return 0;
        }
        open_90k
    }
}

fn seconds(ticks_90k: f64) -> f64 {
    (ticks_90k / CLOCK_90K as f64 * 1_000.0).round() / 1_000.0
}

/// Frames that one judgement on reordering looks at.
const REORDER_FRAMES: u32 = 120;
/// Smaller differences are the rounding of a protocol's clock, not another order.
const REORDER_NOISE_90K: i32 = 450;

/// Differences in the waits of frames for their turn, which only reordering causes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reordering {
    video_frames: u32,
    least_90k: i32,
    most_90k: i32,
    /// The spread of the last whole round.
    judged_90k: Option<i32>,
}

impl Reordering {
    pub(super) fn observe(&mut self, cts_90k: i32) {
        if self.video_frames == 0 {
            (self.least_90k, self.most_90k) = (cts_90k, cts_90k);
        }
        self.least_90k = self.least_90k.min(cts_90k);
        self.most_90k = self.most_90k.max(cts_90k);
        self.video_frames += 1;
        if self.video_frames == REORDER_FRAMES {
            self.judged_90k = Some(self.spread_90k());
            self.video_frames = 0;
        }
    }

    /// `Some(false)` only after a whole round of frames.
    pub(super) fn is_used(&self) -> Option<bool> {
        let seen_now = self.video_frames > 0 && self.spread_90k() > REORDER_NOISE_90K;
        if seen_now {
            return Some(true);
        }
        self.judged_90k
            .map(|spread_90k| spread_90k > REORDER_NOISE_90K)
    }

    pub(super) fn delay_ms(&self) -> Option<i64> {
        let used = self.is_used()?;
        let now_90k = if self.video_frames > 0 {
            self.spread_90k()
        } else {
            0
        };
        let spread_90k = now_90k.max(self.judged_90k.unwrap_or(0));
        Some(if used {
            i64::from(spread_90k) / TICKS_PER_MS
        } else {
            0
        })
    }

    fn spread_90k(&self) -> i32 {
        self.most_90k.saturating_sub(self.least_90k)
    }
}

/// An average in which the last few dozen values count most, so that a single late packet does not show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Average {
    value: Option<f64>,
}

impl Average {
    const WEIGHT: f64 = 1.0 / 32.0;

    pub(super) fn observe(&mut self, value: i64) {
        let value = value as f64;
        let average = self.value.get_or_insert(value);
        *average += (value - *average) * Self::WEIGHT;
    }

    pub(super) fn value(&self) -> Option<i64> {
        self.value.map(|value| value.round() as i64)
    }
}
