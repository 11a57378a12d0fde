//! Times of a stream as GStreamer's, and back: 90 kHz, anywhere and negative too, to nanoseconds, and only positive ones.

use gstreamer as gst;

/// Distance of the two zeros: more than the 1000 h by which x264enc moves earlier times, so that it moves none.
const ZERO_90K: i64 = 4_000 * 3_600 * 90_000;
/// Latest time, so that nanoseconds have 63 bits.
const LATEST_90K: i64 = 800_000_000_000_000;

/// Returns `None` for a time that no stream reaches.
pub(super) fn to_clock(time_90k: i64) -> Option<gst::ClockTime> {
    let within = -ZERO_90K..=LATEST_90K;
    within.contains(&time_90k).then(|| {
        let ticks = (time_90k + ZERO_90K) as u128;
        gst::ClockTime::from_nseconds((ticks * 100_000 / 9) as u64)
    })
}

/// Returns the nearest tick.
pub(super) fn to_90k(time: gst::ClockTime) -> i64 {
    let ticks = (u128::from(time.nseconds()) * 9 + 50_000) / 100_000;
    ticks as i64 - ZERO_90K
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_exactly() {
        for time in [-ZERO_90K, -1, 0, 1, 3_003, 1 << 33, 1 << 48, LATEST_90K] {
            assert_eq!(to_clock(time).map(to_90k), Some(time));
        }
        for time in [i64::MIN, -ZERO_90K - 1, LATEST_90K + 1, i64::MAX] {
            assert_eq!(to_clock(time), None);
        }
    }
}
