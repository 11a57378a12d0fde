//! Maps a publisher's timestamps to the broadcast's timeline: jumps, gaps, audio and video with one offset.
//!
//! The input owns the timeline: it starts at 0, continues where the last session ended, and never goes back. A
//! publisher's clock starts anywhere and may jump. Audio and video share one offset, so that their relation stays; when
//! one of them jumps, the other follows to the same offset as soon as it jumps too, and that is no second jump.

use crate::unit::CLOCK_90K;

/// A difference up to this is jitter, a gap or a late unit; more is a jump.
const JUMP_90K: i64 = CLOCK_90K;
/// Frame interval above which a track counts as jumping rather than slow.
const SLOWEST_90K: i64 = 4 * CLOCK_90K;
/// A track may begin this far from the other; further apart, their clocks have nothing to do with each other.
const APART_90K: i64 = 10 * CLOCK_90K;
/// Time after one track's jump in which the other's counts as the same.
const SAME_CAUSE_90K: i64 = 3 * CLOCK_90K;

/// Clock of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Track {
    Video,
    Audio,
}

/// Place of a unit on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// Position, never before the track's previous unit.
    pub(super) at_90k: i64,
    /// Place by the publisher's clock alone; differs when it went back a little.
    pub(super) mapped_90k: i64,
    /// The publisher's clock jumped: a discontinuity.
    pub(super) jumped: bool,
    /// True when the track changed its offset: its position must be used without smoothing.
    pub(super) realigned: bool,
}

/// The mapping of one publisher session.
#[derive(Debug)]
pub(super) struct Timeline {
    epoch: u32,
    offset: i64,
    /// Begin of the current epoch.
    epoch_start: i64,
    video: WallClock,
    audio: WallClock,
}

#[derive(Clone, Copy, Debug)]
struct WallClock {
    epoch: u32,
    offset: i64,
    last: Option<Stamp>,
    /// The publisher's last step.
    step: i64,
}

/// A unit's time on both clocks.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    raw: i64,
    at: i64,
}

impl WallClock {
    /// Returns whether a unit at `mapped` continues this track, judged beside the other one.
    fn continues_at(&self, mapped: i64, other: &WallClock) -> bool {
        let beside = |limit: i64| {
            other
                .last
                .is_some_and(|stamp| within(mapped, stamp.at, limit))
        };
        let Some(last) = self.last else {
            return other.last.is_none() || beside(APART_90K);
        };
        let step = mapped.saturating_sub(last.at);
        let slow = (0..=SLOWEST_90K).contains(&step) && within(step, self.step, JUMP_90K);
        step.saturating_abs() <= JUMP_90K || slow || (step > 0 && beside(JUMP_90K))
    }
}

fn within(a: i64, b: i64, limit: i64) -> bool {
    a.abs_diff(b) <= limit.unsigned_abs()
}

impl Timeline {
    /// Maps the session's first timestamp, which is of this track, to `start_90k`.
    pub(super) fn new(first: Track, raw_90k: i64, start_90k: i64) -> Self {
        let offset = start_90k.saturating_sub(raw_90k);
        let clock = WallClock {
            epoch: 0,
            offset,
            last: None,
            step: 0,
        };
        let mut timeline = Self {
            epoch: 0,
            offset,
            epoch_start: start_90k,
            video: clock,
            audio: clock,
        };
        // As if a unit had come just before, so that the other track is placed beside this one from the beginning.
        let before = Some(Stamp {
            raw: raw_90k.saturating_sub(1),
            at: start_90k - 1,
        });
        match first {
            Track::Video => timeline.video.last = before,
            Track::Audio => timeline.audio.last = before,
        }
        timeline
    }

    /// Places a unit. `end_90k` is the end of all media placed so far: the timeline continues there after a jump.
    pub(super) fn place(&mut self, track: Track, raw_90k: i64, end_90k: i64) -> Placement {
        let (clock, other) = match track {
            Track::Video => (self.video, self.audio),
            Track::Audio => (self.audio, self.video),
        };
        let mapped = raw_90k.saturating_add(clock.offset);
        let placement = if clock.continues_at(mapped, &other) {
            Placement {
                at_90k: mapped,
                mapped_90k: mapped,
                jumped: false,
                realigned: false,
            }
        } else if clock.last.is_none() || self.other_jumped_before(&clock, &other) {
            self.follow(raw_90k, &other, end_90k)
        } else {
            self.jump(raw_90k, end_90k)
        };
        self.advance(track, raw_90k, placement)
    }

    /// Returns whether the other track opened the current epoch a moment ago.
    fn other_jumped_before(&self, clock: &WallClock, other: &WallClock) -> bool {
        clock.epoch < self.epoch
            && other
                .last
                .is_none_or(|last| last.at - self.epoch_start <= SAME_CAUSE_90K)
    }

    /// Takes over the current offset, or, where that does not fit either, joins the other track at its position.
    fn follow(&self, raw_90k: i64, other: &WallClock, end_90k: i64) -> Placement {
        let mapped = raw_90k.saturating_add(self.offset);
        let beside = other.last.map_or(end_90k, |last| last.at);
        let at = if within(mapped, beside, JUMP_90K) {
            mapped
        } else {
            beside
        };
        Placement {
            at_90k: at,
            mapped_90k: at,
            jumped: false,
            realigned: true,
        }
    }

    fn jump(&mut self, raw_90k: i64, end_90k: i64) -> Placement {
        self.epoch += 1;
        self.offset = end_90k.saturating_sub(raw_90k);
        self.epoch_start = end_90k;
        Placement {
            at_90k: end_90k,
            mapped_90k: end_90k,
            jumped: true,
            realigned: true,
        }
    }

    /// Books the unit on its track's clock, which never goes back.
    fn advance(&mut self, track: Track, raw: i64, mut placement: Placement) -> Placement {
        let (clock, least_step) = match track {
            Track::Video => (&mut self.video, 1),
            Track::Audio => (&mut self.audio, 0),
        };
        if placement.realigned {
            clock.offset = placement.mapped_90k.saturating_sub(raw);
            clock.epoch = self.epoch;
        }
        if let Some(last) = clock.last {
            placement.at_90k = placement.at_90k.max(last.at + least_step);
            clock.step = raw.saturating_sub(last.raw);
        }
        clock.last = Some(Stamp {
            raw,
            at: placement.at_90k,
        });
        placement
    }
}

#[cfg(test)]
mod tests {
    use super::{Track::*, *};

    const FRAME: i64 = 3_000;
    const WRAP_MS: i64 = (1 << 31) * 90;

    /// Feeds (track, raw) and returns (at, jumped) of each; the end is one frame after the latest.
    fn placements(start: i64, units: &[(Track, i64)]) -> Vec<(i64, bool)> {
        let mut timeline = Timeline::new(units[0].0, units[0].1, start);
        let mut end = start;
        let mut placed = Vec::new();
        for &(track, raw) in units {
            let placement = timeline.place(track, raw, end);
            end = end.max(placement.at_90k + FRAME);
            placed.push((placement.at_90k, placement.jumped));
        }
        placed
    }

    #[test]
    fn a_session_continues_where_the_last_ended() {
        for first in [0, -5, 123_456_789, WRAP_MS, -WRAP_MS] {
            let placed = placements(900_000, &[(Video, first), (Audio, first + 10)]);
            assert_eq!(placed, [(900_000, false), (900_010, false)]);
        }
    }

    #[test]
    fn a_jump_either_way_is_one_discontinuity_and_both_tracks_stay_together() {
        for jump in [WRAP_MS, -WRAP_MS, 90_001 + FRAME, -100_000, 3_600 * 90_000] {
            let placed = placements(
                0,
                &[
                    (Video, 0),
                    (Audio, 100),
                    (Video, FRAME),
                    (Video, 2 * FRAME + jump),
                    (Audio, 2_020),
                    (Audio, 2 * FRAME + jump + 40),
                    (Video, 3 * FRAME + jump),
                ],
            );
            assert_eq!(
                placed[3..],
                [
                    (2 * FRAME, true),
                    (2_020, false),
                    (2 * FRAME + 40, false),
                    (3 * FRAME, false)
                ],
                "jump {jump}"
            );
        }
    }

    #[test]
    fn a_track_that_was_silent_comes_back_in_place() {
        let mut units = vec![(Video, 0), (Audio, 0)];
        units.extend((1..150).map(|video_frame| (Video, video_frame * FRAME)));
        units.push((Audio, 149 * FRAME));
        let placed = placements(0, &units);
        assert_eq!(placed.last(), Some(&(149 * FRAME, false)));
    }

    #[test]
    fn small_steps_back_are_clamped_and_forgotten() {
        let placed = placements(
            0,
            &[(Video, 0), (Video, 9_000), (Video, 6_000), (Video, 12_000)],
        );
        assert_eq!(
            placed,
            [(0, false), (9_000, false), (9_001, false), (12_000, false)]
        );
    }

    #[test]
    fn creeping_back_ends_in_a_jump_instead_of_a_standstill() {
        let units: Vec<_> = (0..20).map(|step| (Video, -step * 45_000)).collect();
        assert!(placements(0, &units).iter().any(|&(_, jumped)| jumped));
    }

    #[test]
    fn slow_frames_are_one_jump_at_most() {
        let units: Vec<_> = (0..10)
            .map(|video_frame| (Video, video_frame * 180_000))
            .collect();
        let jumps = placements(0, &units)
            .iter()
            .filter(|&&(_, jumped)| jumped)
            .count();
        assert_eq!(jumps, 1);
    }

    #[test]
    fn clocks_without_relation_are_put_side_by_side() {
        let placed = placements(
            0,
            &[
                (Video, 0),
                (Audio, WRAP_MS),
                (Video, FRAME),
                (Audio, WRAP_MS + 1_920),
            ],
        );
        assert_eq!(
            placed,
            [(0, false), (0, false), (FRAME, false), (1_920, false)]
        );
    }
}
