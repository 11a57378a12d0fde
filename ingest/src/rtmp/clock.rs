//! Unwraps RTMP timestamps of 32 bits (early wraps at 24 and 31 bits) to 64 bits.
//!
//! A timestamp has 32 bits and wraps after 49.7 days. Some encoders never write the extended field and wrap after 24
//! bits (4.7 hours), and ffmpeg's FLV muxer writes 31 bits (24.9 days). A jump that is no wrap is passed on as it is:
//! the packager decides what it means.

/// Milliseconds around an early wrap within which it is recognised as one.
const WRAP_MARGIN_MS: u32 = 60_000;
/// Bits after which encoders are known to wrap early.
const EARLY_WRAPS: [u32; 2] = [24, 31];
/// Distance from zero, in milliseconds, at which unwrapping starts again, so that arithmetic can never overflow:
/// 140 000 years, reachable only by endless jumps of 2^31.
const HORIZON_MS: i64 = 1 << 52;

/// Unwraps the timestamps of one connection, audio and video alike, in order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct TimestampUnwrapper {
    last: Option<Reading>,
    /// Bits of a timestamp: 32 until an early wrap was seen.
    width: u32,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    raw_ms: u32,
    unwrapped_ms: i64,
}

impl TimestampUnwrapper {
    pub(crate) fn new() -> Self {
        Self {
            last: None,
            width: u32::BITS,
        }
    }

    /// Unwraps a timestamp: the nearest value to the last one that has these bits.
    pub(crate) fn unwrap_ms(&mut self, raw_ms: u32) -> i64 {
        let unwrapped_ms = match self.last {
            None => i64::from(raw_ms),
            Some(last) => {
                if let Some(width) = early_wrap(last.raw_ms, raw_ms) {
                    self.width = width;
                }
                let moved = last.unwrapped_ms + self.distance(last.raw_ms, raw_ms);
                if moved.abs() < HORIZON_MS {
                    moved
                } else {
                    i64::from(raw_ms)
                }
            }
        };
        self.last = Some(Reading {
            raw_ms,
            unwrapped_ms,
        });
        unwrapped_ms
    }

    fn distance(&self, from: u32, to: u32) -> i64 {
        let unused = u32::BITS - self.width;
        i64::from((to.wrapping_sub(from) << unused).cast_signed() >> unused)
    }
}

fn early_wrap(from: u32, to: u32) -> Option<u32> {
    EARLY_WRAPS.into_iter().find(|width| {
        let modulus = 1 << width;
        (modulus - WRAP_MARGIN_MS..modulus).contains(&from) && to < WRAP_MARGIN_MS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_unwrapped() {
        let cases: [(&str, &[u32], &[i64]); 8] = [
            ("starts anywhere", &[7, 40], &[7, 40]),
            (
                "32-bit wrap, tracks interleaved",
                &[u32::MAX - 9, 5, u32::MAX - 3, 25],
                &[(1 << 32) - 10, (1 << 32) + 5, (1 << 32) - 4, (1 << 32) + 25],
            ),
            (
                "24-bit wrap, tracks interleaved, twice",
                &[
                    (1 << 24) - 10,
                    5,
                    (1 << 24) - 3,
                    30,
                    8_000_000,
                    16_000_000,
                    (1 << 24) - 2,
                    1,
                ],
                &[
                    (1 << 24) - 10,
                    (1 << 24) + 5,
                    (1 << 24) - 3,
                    (1 << 24) + 30,
                    (1 << 24) + 8_000_000,
                    (1 << 24) + 16_000_000,
                    (2 << 24) - 2,
                    (2 << 24) + 1,
                ],
            ),
            (
                "31-bit wrap, tracks interleaved",
                &[(1 << 31) - 10, 5, (1 << 31) - 3, 30],
                &[(1 << 31) - 10, (1 << 31) + 5, (1 << 31) - 3, (1 << 31) + 30],
            ),
            (
                "past 2^24 with the extended field",
                &[(1 << 24) - 10, 1 << 24, (1 << 24) + 40],
                &[(1 << 24) - 10, 1 << 24, (1 << 24) + 40],
            ),
            (
                "encoder starts over",
                &[9_000_000, 0, 33],
                &[9_000_000, 0, 33],
            ),
            (
                "back by 2^31",
                &[1 << 31, 0, 1 << 31],
                &[1 << 31, 0, -(1 << 31)],
            ),
            ("small step back", &[100, 90, 110], &[100, 90, 110]),
        ];
        for (name, raw, expected) in cases {
            let mut clock = TimestampUnwrapper::new();
            let got: Vec<i64> = raw.iter().map(|&raw| clock.unwrap_ms(raw)).collect();
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn endless_jumps_stay_on_the_line() {
        let mut clock = TimestampUnwrapper {
            last: Some(Reading {
                raw_ms: 0,
                unwrapped_ms: -HORIZON_MS + 1,
            }),
            width: 32,
        };
        assert_eq!(clock.unwrap_ms(1 << 31), 1 << 31);
    }
}
