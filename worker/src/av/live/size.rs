//! Size, rate and bit rate of an encoder's frames, by those of the source and the encoder's bounds.

use sluice_media::av::live::LiveVideo;

/// Bits per pixel of a frame, in hundredths: what the fast presets need for few artefacts.
const BITS_PER_100_PIXELS: u64 = 10;
const LEAST_BITRATE: u64 = 300_000;
/// Side below which a frame is not scaled.
const LEAST_SIDE: u64 = 16;

/// Returns the size with square pixels and even sides, in which the source's frame fits into the box, turned as the frame is.
pub(super) fn fitted(source: (u32, u32), pixel_aspect: (u32, u32), work: &LiveVideo) -> (u32, u32) {
    let (across, down) = (
        u64::from(pixel_aspect.0.max(1)),
        u64::from(pixel_aspect.1.max(1)),
    );
    // The longer side grows or stays, so that no detail is lost before the box counts.
    let (width, height) = match across >= down {
        true => (u64::from(source.0) * across / down, u64::from(source.1)),
        false => (u64::from(source.0), u64::from(source.1) * down / across),
    };
    let (width, height) = (width.max(1), height.max(1));
    let (long, short) = (
        u64::from(work.max_width.max(work.max_height)),
        u64::from(work.max_width.min(work.max_height)),
    );
    let (most_width, most_height) = match width >= height {
        true => (long, short),
        false => (short, long),
    };
    let (width, height) = if width <= most_width && height <= most_height {
        (width, height)
    } else if width * most_height >= height * most_width {
        (most_width, height * most_width / width)
    } else {
        (width * most_height / height, most_height)
    };
    let even = |side: u64| (side / 2 * 2).max(LEAST_SIDE) as u32;
    (even(width), even(height))
}

/// Returns the bits per second for frames of this size.
pub(super) fn bitrate(size: (u32, u32), rate: f64, work: &LiveVideo) -> u32 {
    let pixels = u64::from(size.0) * u64::from(size.1);
    let by_size = pixels * rate.clamp(1.0, 120.0) as u64 * BITS_PER_100_PIXELS / 100;
    by_size.max(LEAST_BITRATE).min(u64::from(work.max_bitrate)) as u32
}

/// Leaves out frames above a rate, evenly.
#[derive(Debug)]
pub(super) struct RateLimit {
    /// Nanoseconds between two frames.
    interval: u64,
    due: Option<u64>,
}

impl RateLimit {
    pub fn new(most_per_second: u16) -> Self {
        Self {
            interval: 1_000_000_000 / u64::from(most_per_second.max(1)),
            due: None,
        }
    }

    /// Returns whether the frame of this time, in nanoseconds, is used.
    pub fn admits(&mut self, at: u64) -> bool {
        // Times are rounded to milliseconds by RTMP: an eighth of an interval early is in time.
        let slack = self.interval / 8;
        let due = match self.due {
            Some(due) if at.abs_diff(due) < 1_000_000_000 => due,
            _ => at,
        };
        if at + slack < due {
            return false;
        }
        self.due = Some(due.max(at.saturating_sub(self.interval)) + self.interval);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL_HD: LiveVideo = LiveVideo {
        max_width: 1_920,
        max_height: 1_080,
        max_rate: 60,
        max_bitrate: 6_000_000,
    };

    #[test]
    fn frames_are_made_smaller_and_never_larger() {
        for (source, aspect, size) in [
            ((1_280, 720), (1, 1), (1_280, 720)),
            ((1_920, 1_080), (1, 1), (1_920, 1_080)),
            ((3_840, 2_160), (1, 1), (1_920, 1_080)),
            ((2_560, 1_080), (1, 1), (1_920, 810)),
            ((1_080, 1_920), (1, 1), (1_080, 1_920)),
            ((2_160, 3_840), (1, 1), (1_080, 1_920)),
            ((1_920, 1_200), (1, 1), (1_728, 1_080)),
            ((720, 576), (16, 11), (1_046, 576)),
            ((1_440, 1_080), (4, 3), (1_920, 1_080)),
            ((720, 480), (8, 9), (720, 540)),
            ((1, 1), (1, 1), (16, 16)),
            ((16_384, 2), (1, 1), (1_920, 16)),
            ((16_384, 16_384), (u32::MAX, 1), (1_920, 16)),
            ((101, 51), (0, 0), (100, 50)),
        ] {
            assert_eq!(
                fitted(source, aspect, &FULL_HD),
                size,
                "{source:?} {aspect:?}"
            );
        }
    }

    #[test]
    fn bits_follow_the_size_up_to_the_bound() {
        assert_eq!(bitrate((1_280, 720), 30.0, &FULL_HD), 2_764_800);
        assert_eq!(bitrate((1_920, 1_080), 60.0, &FULL_HD), 6_000_000);
        assert_eq!(bitrate((160, 90), 10.0, &FULL_HD), 300_000);
        assert_eq!(bitrate((160, 90), f64::NAN, &FULL_HD), 300_000);
    }

    #[test]
    fn a_rate_is_halved_and_a_jittery_one_kept() {
        let used = |times: &mut dyn Iterator<Item = u64>| {
            let mut limit = RateLimit::new(60);
            times.filter(|at| limit.admits(*at)).count()
        };
        assert_eq!(used(&mut (0..240).map(|n| n * 1_000_000_000 / 120)), 120);
        assert_eq!(used(&mut (0..240).map(|n| n * 1_000 / 60 * 1_000_000)), 240);
        assert_eq!(used(&mut (0..240).map(|n| n * 1_000_000_000 / 30)), 240);
        // A jump of the clock is no reason to leave out what follows.
        assert_eq!(used(&mut [9_000_000_000, 0, 20_000_000].into_iter()), 3);
    }
}
