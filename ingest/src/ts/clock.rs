//! Unwraps the 33-bit timestamps of MPEG-TS (PTS, DTS) to 64 bits.
//!
//! They wrap after 26.5 hours. All tracks of a program share one timeline, so that video and audio stay together over
//! the wrap. A jump that is no wrap is passed on as it is: the packager decides what it means.

const WRAP_BITS: u32 = 33;
/// Distance from zero at which unwrapping starts again, so that arithmetic can never overflow.
const HORIZON_90K: i64 = 1 << 52;

/// Unwraps the timestamps of one program, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct PtsUnwrapper {
    last_90k: Option<i64>,
}

impl PtsUnwrapper {
    /// Unwraps a timestamp: the value nearest to the last one that has these bits.
    pub(super) fn unwrap_90k(&mut self, raw: u64) -> i64 {
        let raw = raw.cast_signed();
        let unwrapped_90k = match self.last_90k {
            Some(last_90k) if last_90k.abs() < HORIZON_90K => {
                last_90k + sign_extended(raw.wrapping_sub(last_90k))
            }
            _ => raw,
        };
        self.last_90k = Some(unwrapped_90k);
        unwrapped_90k
    }
}

/// Returns the distance from one timestamp to another, forwards or backwards, whichever is shorter.
pub(super) fn distance_90k(from: u64, to: u64) -> i64 {
    sign_extended(to.wrapping_sub(from).cast_signed())
}

fn sign_extended(bits: i64) -> i64 {
    let unused = i64::BITS - WRAP_BITS;
    bits << unused >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRAP: u64 = 1 << WRAP_BITS;

    #[test]
    fn timestamps_are_unwrapped() {
        let wrap = WRAP.cast_signed();
        let cases: [(&str, &[u64], &[i64]); 5] = [
            ("starts anywhere", &[900, 4_500], &[900, 4_500]),
            (
                "wraps twice, tracks interleaved",
                &[
                    WRAP - 90,
                    30,
                    WRAP - 10,
                    1 << 31,
                    1 << 32,
                    3 << 31,
                    WRAP - 1,
                    5,
                ],
                &[
                    wrap - 90,
                    wrap + 30,
                    wrap - 10,
                    wrap + (1 << 31),
                    wrap + (1 << 32),
                    wrap + (3 << 31),
                    2 * wrap - 1,
                    2 * wrap + 5,
                ],
            ),
            (
                "the second track starts before",
                &[10, WRAP - 90],
                &[10, -90],
            ),
            (
                "the encoder starts over",
                &[9_000_000, 0, 3_000],
                &[9_000_000, 0, 3_000],
            ),
            (
                "one damaged value",
                &[100, 100 + (1 << 31), 3_100],
                &[100, 100 + (1 << 31), 3_100],
            ),
        ];
        for (name, raw, expected) in cases {
            let mut clock = PtsUnwrapper::default();
            let got: Vec<i64> = raw.iter().map(|&raw| clock.unwrap_90k(raw)).collect();
            assert_eq!(got, expected, "{name}");
        }
    }

    #[test]
    fn endless_jumps_stay_on_the_line() {
        let mut clock = PtsUnwrapper {
            last_90k: Some(-HORIZON_90K),
        };
        assert_eq!(clock.unwrap_90k(7), 7);
    }

    #[test]
    fn distances_take_the_short_way() {
        assert_eq!(distance_90k(10, 3_010), 3_000);
        assert_eq!(distance_90k(WRAP - 10, 20), 30);
        assert_eq!(distance_90k(20, WRAP - 10), -30);
    }
}
