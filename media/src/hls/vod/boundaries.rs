//! Segment boundaries of a video stream: the same for all renditions, and known before the first segment is made.

use std::sync::Arc;

use crate::unit::CLOCK_90K;

/// The times of frames at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameClock {
    /// Frames per so many seconds; neither is 0.
    video_frames: u32,
    seconds: u32,
}

impl FrameClock {
    /// Returns the rate of `video_frames` per `seconds`; 0 counts as 1.
    pub fn new((video_frames, seconds): (u32, u32)) -> Self {
        Self {
            video_frames: video_frames.max(1),
            seconds: seconds.max(1),
        }
    }

    /// Returns the presentation time of the frame of this index, to the nearest tick; the first, 0, at 0.
    pub fn at_90k(self, index: u64) -> i64 {
        let ticks = i128::from(index) * i128::from(CLOCK_90K) * i128::from(self.seconds);
        rounded(ticks, self.video_frames)
    }

    /// The frame that is shown nearest to a time.
    pub fn nearest(self, at_90k: i64) -> u64 {
        let video_frames = i128::from(at_90k.max(0)) * i128::from(self.video_frames);
        let per_second = i128::from(CLOCK_90K) * i128::from(self.seconds);
        ((2 * video_frames + per_second) / (2 * per_second)) as u64
    }
}

fn rounded(value: i128, by: u32) -> i64 {
    let by = i128::from(by);
    ((2 * value + by) / (2 * by)) as i64
}

/// Boundaries of segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentBoundaries {
    /// A boundary every so many frames, at least one.
    Even {
        clock: FrameClock,
        video_frames: u32,
    },
    /// Boundaries at these times, which rise from 0; after the last one follows the last segment.
    At(Arc<[i64]>),
}

impl SegmentBoundaries {
    /// Boundaries of audio alone: every so many seconds.
    pub fn seconds(seconds: u32) -> Self {
        Self::Even {
            clock: FrameClock::new((1, 1)),
            video_frames: seconds.max(1),
        }
    }

    /// Returns the start of a segment; `i64::MAX`: there is none of that number.
    pub fn start_90k(&self, number: u32) -> i64 {
        match self {
            Self::Even {
                clock,
                video_frames,
            } => clock.at_90k(u64::from(number) * u64::from((*video_frames).max(1))),
            Self::At(starts) => starts.get(number as usize).copied().unwrap_or(i64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_do_not_drift_and_are_read_back() {
        let cases = [
            ((30_000, 1_001), 180, 540_540),
            ((24_000, 1_001), 2, 7_508),
            ((24_000, 1_001), 24_000, 90_090_000),
            ((25, 1), 150, 540_000),
            ((7, 3), 1, 38_571),
            ((0, 0), 2, 180_000),
        ];
        for (rate, index, expected) in cases {
            let clock = FrameClock::new(rate);
            assert_eq!(clock.at_90k(index), expected, "{rate:?}");
            for at in [expected - 900, expected, expected + 900] {
                assert_eq!(clock.nearest(at), index, "{rate:?} at {at}");
            }
        }
        assert_eq!(FrameClock::new((25, 1)).nearest(-5), 0);
    }

    #[test]
    fn cuts_are_even_or_given() {
        assert_eq!(SegmentBoundaries::seconds(6).start_90k(2), 1_080_000);
        assert_eq!(SegmentBoundaries::seconds(0).start_90k(1), 90_000);
        let given = SegmentBoundaries::At([0, 500_000].into());
        assert_eq!(given.start_90k(1), 500_000);
        assert_eq!(given.start_90k(2), i64::MAX);
    }
}
