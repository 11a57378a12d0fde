//! TARGETDURATION of the next broadcast (2 to 6 s) by the key-frame interval of the encoder.

use crate::unit::CLOCK_90K;

/// Excess of an interval that is ignored: whole milliseconds and frame rates make intervals a little longer.
const TOLERANCE_90K: i64 = CLOCK_90K / 10;
/// TARGETDURATION, in seconds.
const TARGETS_S: std::ops::RangeInclusive<i64> = 2..=6;

/// Measures the length of segments that would end at key frames only.
#[derive(Debug)]
pub(super) struct KeyFrames {
    segment_min_90k: i64,
    start_90k: Option<i64>,
    longest_90k: i64,
}

impl KeyFrames {
    pub(super) fn new(segment_min_90k: i64) -> Self {
        Self {
            segment_min_90k,
            start_90k: None,
            longest_90k: 0,
        }
    }

    /// Forgets the interval in progress: the timeline broke off.
    pub(super) fn interrupt(&mut self) {
        self.start_90k = None;
    }

    pub(super) fn observe(&mut self, at_90k: i64, key: bool) {
        let length = self.start_90k.map(|start| at_90k - start);
        if length.is_some_and(|length| length >= self.segment_min_90k) {
            self.longest_90k = self.longest_90k.max(length.unwrap_or(0));
            if key {
                self.start_90k = Some(at_90k);
            }
        } else if key && length.is_none() {
            self.start_90k = Some(at_90k);
        }
    }

    /// The smallest of 2…6 s that fits; `None` before the first interval.
    pub(super) fn target_duration_s(&self) -> Option<u32> {
        if self.longest_90k == 0 {
            return None;
        }
        let fits = |&seconds: &i64| self.longest_90k <= seconds * CLOCK_90K + TOLERANCE_90K;
        let seconds = TARGETS_S.into_iter().find(fits).unwrap_or(*TARGETS_S.end());
        u32::try_from(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_target_that_fits_the_interval() {
        let cases = [
            (500, 2),
            (999, 2),
            (1_000, 2),
            (1_500, 3),
            (1_999, 2),
            (2_002, 2),
            (2_200, 3),
            (3_000, 3),
            (4_000, 4),
            (5_005, 5),
            (8_333, 6),
            (600_000, 6),
        ];
        for (interval_ms, expected) in cases {
            let mut key_frames = KeyFrames::new(1_900 * 90);
            for video_frame in 0..20_000 {
                let at_ms = video_frame * 100 / 3;
                let before_ms = (video_frame - 1) * 100 / 3;
                let key = video_frame == 0 || at_ms / interval_ms != before_ms / interval_ms;
                key_frames.observe(at_ms * 90, key);
            }
            assert_eq!(
                key_frames.target_duration_s(),
                Some(expected),
                "{interval_ms} ms"
            );
        }
    }

    #[test]
    fn an_interruption_is_no_interval() {
        let mut key_frames = KeyFrames::new(1_900 * 90);
        key_frames.observe(0, true);
        key_frames.interrupt();
        key_frames.observe(5 * CLOCK_90K, true);
        assert_eq!(key_frames.target_duration_s(), None);
        key_frames.observe(7 * CLOCK_90K, true);
        assert_eq!(key_frames.target_duration_s(), Some(2));
    }
}
