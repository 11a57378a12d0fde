//! Continuous times for an output's target or a WebRTC viewer, whatever jumps the clocks of publishers make.
//!
//! Times start at 0 and rise. Where a track's time jumps by more than a second, or another session begins, the timeline
//! continues right behind its end, and the other track follows by the same distance, so that audio stays with its
//! frame. The end is where the last frame is shown, which may be some frames behind where it is decoded.

use sluice_media::unit::CLOCK_90K;

/// Jump of a track's time from which on the timeline is continued; the packager treats it as a discontinuity too.
const JUMP_90K: i64 = CLOCK_90K;
/// Distance between the end of the timeline and its continuation: about a frame.
const STEP_90K: i64 = CLOCK_90K / 30;

/// Track of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Video,
    Audio,
}

#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// Offset that is added to its times; `None` until its first one, and after a break.
    offset_90k: Option<i64>,
    last_in_90k: i64,
    last_out_90k: Option<i64>,
    /// End of presentation of the newest unit, or of the one before it.
    end_90k: Option<i64>,
}

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    video: Track,
    audio: Track,
}

impl Timeline {
    /// Notes that the next unit has other times.
    pub fn break_off(&mut self) {
        self.video.offset_90k = None;
        self.audio.offset_90k = None;
    }

    /// Returns the place of a unit with this time (a frame's is that of its decoding), which is shown `delay_90k` later.
    pub fn place(&mut self, kind: Kind, time_90k: i64, delay_90k: i64) -> i64 {
        let (track, other) = match kind {
            Kind::Video => (&mut self.video, self.audio),
            Kind::Audio => (&mut self.audio, self.video),
        };
        let offset_90k = match track.offset_90k {
            Some(offset) if time_90k.abs_diff(track.last_in_90k) <= JUMP_90K as u64 => offset,
            _ => {
                let own = track.end_90k.map(|end| end + STEP_90K - delay_90k);
                let others = other.end_90k.map(|end| end + STEP_90K);
                let behind = own.max(others).unwrap_or(0);
                beside(other, time_90k)
                    .filter(|offset| Some(time_90k + offset) > track.last_out_90k)
                    .unwrap_or(behind - time_90k)
            }
        };
        let place = time_90k + offset_90k;
        let place = place.max(track.last_out_90k.map_or(0, |last| last + 1));
        *track = Track {
            offset_90k: Some(offset_90k),
            last_in_90k: time_90k,
            last_out_90k: Some(place),
            end_90k: track.end_90k.max(Some(place + delay_90k.max(0))),
        };
        place
    }
}

/// Returns the other track's offset, where it places a unit of this time near that track.
fn beside(other: Track, time_90k: i64) -> Option<i64> {
    let (offset, last) = (other.offset_90k?, other.last_out_90k?);
    ((time_90k + offset).abs_diff(last) <= JUMP_90K as u64).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::{Kind::*, *};

    #[test]
    fn lines_begin_at_nothing_and_keep_their_distance() {
        let mut line = Timeline::default();
        let start = 26 * 3_600 * CLOCK_90K;
        for (kind, time, expected) in [
            (Video, 0, 0),
            (Audio, 900, 900),
            (Video, 3_000, 3_000),
            (Audio, 2_820, 2_820),
            // A pause of less than a second is one.
            (Video, 80_000, 80_000),
        ] {
            assert_eq!(line.place(kind, start + time, 0), expected);
        }
    }

    #[test]
    fn a_jump_of_the_clock_is_none_of_the_line() {
        for jump in [
            26 * 3_600 * CLOCK_90K,
            -26 * 3_600 * CLOCK_90K,
            2 * CLOCK_90K,
        ] {
            let mut line = Timeline::default();
            line.place(Video, 0, 0);
            line.place(Audio, 10, 0);
            let video_frame = line.place(Video, jump, 0);
            assert_eq!(video_frame, 10 + STEP_90K, "{jump}");
            // Audio that was on its way continues, and then comes after its frame.
            assert_eq!(line.place(Audio, 1_930, 0), 1_930, "{jump}");
            assert_eq!(
                line.place(Audio, jump + 900, 0),
                video_frame + 900,
                "{jump}"
            );
            assert_eq!(
                line.place(Video, jump + 3_000, 0),
                video_frame + 3_000,
                "{jump}"
            );
        }
    }

    #[test]
    fn another_session_continues_behind() {
        let mut line = Timeline::default();
        line.place(Video, 0, 0);
        line.place(Audio, 5_000, 0);
        line.break_off();
        // By chance with times that would fit.
        assert_eq!(line.place(Video, 0, 0), 5_000 + STEP_90K);
        assert_eq!(line.place(Audio, 100, 0), 5_100 + STEP_90K);
    }

    #[test]
    fn nothing_is_shown_before_what_was_sent_before_it() {
        let mut line = Timeline::default();
        line.place(Video, 0, 6_000);
        line.place(Video, 3_000, 12_000);
        line.place(Video, 6_000, -3_000);
        line.break_off();
        assert_eq!(line.place(Video, 0, 6_000), 9_000 + STEP_90K);
        assert_eq!(line.place(Video, 3_000, 0), 12_000 + STEP_90K);
    }

    #[test]
    fn times_rise_whatever_comes() {
        let mut line = Timeline::default();
        let places: Vec<i64> = [0, 3_000, 3_000, 2_000, 3_001, i64::from(i32::MIN), 0]
            .into_iter()
            .map(|time| line.place(Video, time, 0))
            .collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    }
}
