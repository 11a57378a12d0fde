//! Schedule of clock references (PCR) and tables in MPEG-TS outputs, by the times of the units alone.

use sluice_media::unit::CLOCK_90K;

const MS_90K: i64 = CLOCK_90K / 1000;
/// Lead of the clock over decoding: the buffer of a receiver before it decodes, and the greatest offset between the
/// tracks. The references are the units' own times, and the time stamps are this much later.
pub(super) const LEAD_90K: i64 = 500 * MS_90K;
/// Longest interval between two tables, less the interval of two units (ETSI TR 101 154 asks for 100 ms).
const TABLES_EVERY_90K: i64 = 80 * MS_90K;
/// The longest between two clock references (ETSI TR 101 154 §4.1.5).
const CLOCK_EVERY_90K: i64 = 40 * MS_90K;
/// Longest interval of two clock references where frames are frequent enough, but one is late (ISO/IEC 13818-1
/// §2.7.2).
const CLOCK_AT_LAST_90K: i64 = 100 * MS_90K;
/// Forward step beyond which the clock counts as jumped, as it does for a backward step beyond the lead.
const JUMP_90K: i64 = 10_000 * MS_90K;

/// A clock reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    pub(super) clock_90k: i64,
    /// The clock jumped since the last one.
    pub(super) discontinuity: bool,
}

/// Follows the times of the units.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The latest of all units.
    now_90k: Option<i64>,
    /// `now_90k` at the last tables; `None` where they are due in any case.
    tables_90k: Option<i64>,
    /// The last clock reference.
    clock_90k: Option<i64>,
    last_video_frame_90k: Option<i64>,
    video_frame_gap_90k: i64,
    last_frame_90k: Option<i64>,
    /// Time of the audio frame at the last clock reference.
    frame_at_clock_90k: Option<i64>,
}

impl Pace {
    /// Makes the changed tables due at once.
    pub(super) fn tables_changed(&mut self) {
        self.tables_90k = None;
    }

    /// Returns whether tables are to be written before the unit with this time, which then counts as done.
    pub(super) fn tables_due(&mut self, time_90k: i64, at_once: bool) -> bool {
        let now_90k = match self.now_90k {
            Some(now_90k) if now_90k - time_90k < JUMP_90K => now_90k.max(time_90k),
            _ => time_90k,
        };
        self.now_90k = Some(now_90k);
        let is_recent = self
            .tables_90k
            .is_some_and(|last_90k| (0..TABLES_EVERY_90K).contains(&(now_90k - last_90k)));
        let is_due = at_once || !is_recent;
        if is_due {
            self.tables_90k = Some(now_90k);
        }
        is_due
    }

    /// Returns the clock reference of a video frame, by its decode time.
    pub(super) fn video_frame(&mut self, dts_90k: i64) -> Tick {
        let last_90k = self.last_video_frame_90k.replace(dts_90k);
        self.video_frame_gap_90k = last_90k.map_or(0, |last_90k| dts_90k - last_90k);
        self.tick(dts_90k)
    }

    /// Returns the clock reference of an audio frame where there is no video.
    pub(super) fn frame_alone(&mut self, pts_90k: i64) -> Tick {
        self.last_frame_90k = Some(pts_90k);
        self.tick(pts_90k)
    }

    /// Returns the clock reference that is due before an audio frame where video frames alone are too far apart: as
    /// far from the last one as audio has advanced since.
    pub(super) fn frame_beside_video_frames(&mut self, pts_90k: i64) -> Option<Tick> {
        let last_90k = self.last_frame_90k.replace(pts_90k).unwrap_or(pts_90k);
        let clock_90k = self.clock_90k?;
        let passed_90k = pts_90k - *self.frame_at_clock_90k.get_or_insert(pts_90k);
        if !(0..JUMP_90K).contains(&passed_90k) {
            self.frame_at_clock_90k = Some(pts_90k);
            return None;
        }
        let video_frames_are_seldom = self.video_frame_gap_90k > CLOCK_EVERY_90K;
        let limit_90k = match video_frames_are_seldom {
            true => CLOCK_EVERY_90K,
            false => CLOCK_AT_LAST_90K,
        };
        let until_the_next_90k = (pts_90k - last_90k).max(0);
        if passed_90k == 0 || passed_90k + until_the_next_90k <= limit_90k {
            return None;
        }
        Some(self.tick(clock_90k + passed_90k))
    }

    fn tick(&mut self, time_90k: i64) -> Tick {
        let tick = match self.clock_90k {
            Some(last_90k) if (-LEAD_90K..JUMP_90K).contains(&(time_90k - last_90k)) => Tick {
                clock_90k: time_90k.max(last_90k + 1),
                discontinuity: false,
            },
            last => Tick {
                clock_90k: time_90k,
                discontinuity: last.is_some(),
            },
        };
        self.clock_90k = Some(tick.clock_90k);
        self.frame_at_clock_90k = self.last_frame_90k;
        tick
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME_90K: i64 = 1920;

    /// The references of three seconds of frames at this distance (in ms) with audio beside them.
    fn references(video_frame_every_ms: i64) -> Vec<i64> {
        let mut pace = Pace::default();
        let mut found = Vec::new();
        let mut next_frame_90k = 0;
        for video_frame in 0..3000 / video_frame_every_ms {
            let dts_90k = video_frame * video_frame_every_ms * MS_90K;
            while next_frame_90k < dts_90k {
                found.extend(pace.frame_beside_video_frames(next_frame_90k));
                next_frame_90k += FRAME_90K;
            }
            found.push(pace.video_frame(dts_90k));
        }
        assert!(found.iter().all(|tick| !tick.discontinuity));
        found.iter().map(|tick| tick.clock_90k).collect()
    }

    #[test]
    fn references_are_near_to_each_other_and_no_more_than_needed() {
        for every_ms in [10, 33, 40] {
            let count = 3000 / every_ms;
            assert_eq!(references(every_ms).len() as i64, count, "{every_ms} ms");
        }
        for every_ms in [50, 66, 100, 1000] {
            let found = references(every_ms);
            // Until the second frame their interval is unknown.
            let known = found
                .iter()
                .position(|clock_90k| *clock_90k == every_ms * MS_90K)
                .expect("each frame has one");
            for pair in found[known..].windows(2) {
                let apart = pair[1] - pair[0];
                assert!(
                    (1..=CLOCK_EVERY_90K).contains(&apart),
                    "{every_ms}: {apart}"
                );
            }
            let longest = found.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert!(longest <= Some(CLOCK_AT_LAST_90K), "{longest:?}");
        }
    }

    #[test]
    fn the_clock_rises_and_jumps_are_marked() {
        let mut pace = Pace::default();
        for (dts_90k, clock_90k, discontinuity) in [
            (1000, 1000, false),
            (1000, 1001, false),
            (500, 1002, false),
            (4000, 4000, false),
            (4000 + JUMP_90K, 4000 + JUMP_90K, true),
            (4000, 4000, true),
            (4000 - LEAD_90K, 4001, false),
            (4000 - LEAD_90K, 4000 - LEAD_90K, true),
        ] {
            let expected = Tick {
                clock_90k,
                discontinuity,
            };
            assert_eq!(pace.video_frame(dts_90k), expected, "{dts_90k}");
        }
    }

    #[test]
    fn tables_come_at_once_and_then_at_intervals_of_the_latest_track() {
        let mut pace = Pace::default();
        let ms = |ms: i64| ms * MS_90K;
        for (time_ms, at_once, due) in [
            (0, false, true),
            (40, false, false),
            (79, false, false),
            (80, false, true),
            (-300, false, false), // a track that lags
            (160, false, true),
            (170, true, true),
            (200, false, false),
            (-20_000, false, true), // the times start over
            (-19_990, false, false),
        ] {
            assert_eq!(pace.tables_due(ms(time_ms), at_once), due, "{time_ms}");
        }
        pace.tables_changed();
        assert!(pace.tables_due(ms(-19_989), false));
    }
}
