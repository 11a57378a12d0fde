//! Decode times of RTSP video frames (B-frames), which arrive in decode order with presentation times alone.
//!
//! Where frames are reordered by at most `depth` places, the decode time of a frame is the smallest presentation time
//! that was not returned yet, of the last `depth + 1`: it grows with every frame and is never later than the
//! presentation. The depth is learned from the first frames, which wait for that.

use std::{cmp::Reverse, collections::BinaryHeap};

use bytes::Bytes;
use sluice_media::unit::VideoUnit;

/// Frames that are inspected before the first one is passed on, where a configuration leaves reordering open.
const LEARNED_FROM: usize = 12;
/// H.264 and HEVC reorder by at most 16.
const MAX_DEPTH: usize = 16;
/// A step of presentation times beyond this is a new beginning.
const JUMP_90K: i64 = 10 * 90_000;
/// The distance that is assumed of a frame alone.
const ASSUMED_FRAME_90K: i64 = 3_000;

/// Frame as it arrived.
#[derive(Clone, Debug)]
pub(super) struct CodedFrame {
    pub(super) pts_90k: i64,
    pub(super) key: bool,
    pub(super) data: Bytes,
}

/// Gives the frames of one stream their decode times.
#[derive(Debug)]
pub(super) struct DecodeTimes {
    state: State,
    last_pts_90k: Option<i64>,
    last_dts_90k: Option<i64>,
}

#[derive(Debug)]
enum State {
    Learning(Vec<CodedFrame>),
    /// Presentation times that were not given out as decode times; as many as the depth between two frames.
    Flowing(BinaryHeap<Reverse<i64>>),
}

impl DecodeTimes {
    pub(super) fn new() -> Self {
        Self {
            state: State::Learning(Vec::new()),
            last_pts_90k: None,
            last_dts_90k: None,
        }
    }

    /// Takes the next frame in decode order. `may_reorder` is from its configuration.
    pub(super) fn push(
        &mut self,
        video_frame: CodedFrame,
        may_reorder: Option<bool>,
        out: &mut Vec<VideoUnit>,
    ) {
        let last = self.last_pts_90k.replace(video_frame.pts_90k);
        if last.is_some_and(|last| video_frame.pts_90k.abs_diff(last) > JUMP_90K.unsigned_abs()) {
            self.start_over(out);
        }
        match &mut self.state {
            State::Flowing(_) => self.flow(video_frame, out),
            State::Learning(waiting) => {
                waiting.push(video_frame);
                if may_reorder == Some(false) || waiting.len() == LEARNED_FROM {
                    self.learned(out);
                }
            }
        }
    }

    /// Passes waiting frames on, and learns again: the stream ends, or changes its configuration.
    pub(super) fn start_over(&mut self, out: &mut Vec<VideoUnit>) {
        self.learned(out);
        self.state = State::Learning(Vec::new());
        self.last_dts_90k = None;
    }

    fn learned(&mut self, out: &mut Vec<VideoUnit>) {
        let State::Learning(waiting) = &mut self.state else {
            return;
        };
        let waiting = std::mem::take(waiting);
        self.state = State::Flowing(before(&waiting));
        for video_frame in waiting {
            self.flow(video_frame, out);
        }
    }

    fn flow(&mut self, video_frame: CodedFrame, out: &mut Vec<VideoUnit>) {
        let State::Flowing(times) = &mut self.state else {
            return;
        };
        times.push(Reverse(video_frame.pts_90k));
        let after_last = self.last_dts_90k.map_or(i64::MIN, |last| last + 1);
        let smallest = times
            .peek()
            .map_or(video_frame.pts_90k, |Reverse(time)| *time);
        // A frame from before the last returned one shows that the depth is larger than learned: it stays, and the
        // next decode times are one place further back.
        if smallest >= after_last || times.len() > MAX_DEPTH {
            times.pop();
        }
        let dts_90k = smallest.max(after_last);
        self.last_dts_90k = Some(dts_90k);
        let cts_90k = (video_frame.pts_90k - dts_90k).clamp(-2 * JUMP_90K, 2 * JUMP_90K);
        out.push(VideoUnit {
            dts_90k,
            cts_90k: cts_90k as i32,
            key: video_frame.key,
            data: video_frame.data,
        });
    }
}

/// Returns times before the first frame's, as many as the depth that these frames show.
fn before(video_frames: &[CodedFrame]) -> BinaryHeap<Reverse<i64>> {
    let mut times: Vec<i64> = video_frames
        .iter()
        .map(|video_frame| video_frame.pts_90k)
        .collect();
    let later = |at: usize| times[..at].iter().filter(|time| **time > times[at]).count();
    let depth = (0..times.len()).map(later).max().unwrap_or(0) as i64;
    times.sort_unstable();
    let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
    let frame_90k = steps
        .filter(|step| *step > 0)
        .min()
        .unwrap_or(ASSUMED_FRAME_90K);
    let first = times.first().copied().unwrap_or(0);
    (1..=depth)
        .map(|step| Reverse(first - step * frame_90k))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns decode and presentation times in frames of 3 000 ticks, and whether a frame was returned at once.
    fn times(order: &[i64], may_reorder: Option<bool>) -> Vec<(i64, i64)> {
        let mut times = DecodeTimes::new();
        let mut out = Vec::new();
        for number in order {
            let video_frame = CodedFrame {
                pts_90k: number * 3_000,
                key: *number == 0,
                data: Bytes::from_static(b"x"),
            };
            times.push(video_frame, may_reorder, &mut out);
        }
        times.start_over(&mut out);
        out.iter()
            .map(|unit| (unit.dts_90k, unit.dts_90k + i64::from(unit.cts_90k)))
            .collect()
    }

    fn check(order: &[i64], may_reorder: Option<bool>) -> Vec<(i64, i64)> {
        let got = times(order, may_reorder);
        let shown: Vec<i64> = got.iter().map(|(_, pts)| pts / 3_000).collect();
        assert_eq!(shown, order, "every frame keeps its place and its time");
        assert!(got.windows(2).all(|pair| pair[0].0 < pair[1].0), "{got:?}");
        got
    }

    #[test]
    fn without_reordering_both_times_are_the_same() {
        let order: Vec<i64> = (0..30).collect();
        for may_reorder in [None, Some(false), Some(true)] {
            let got = check(&order, may_reorder);
            assert!(got.iter().all(|(dts, pts)| dts == pts), "{may_reorder:?}");
        }
    }

    #[test]
    fn reordered_frames_are_decoded_before_they_are_shown() {
        // Three B frames between references, one of them a reference itself.
        let mut order = vec![0];
        for group in 0..8 {
            order.extend([4, 2, 1, 3].map(|number| number + group * 4));
        }
        let got = check(&order, None);
        assert!(got.iter().all(|(dts, pts)| dts <= pts), "{got:?}");
        let steady = got.windows(2).all(|pair| pair[1].0 - pair[0].0 == 3_000);
        assert!(steady, "{got:?}");
    }

    #[test]
    fn reordering_that_comes_late_squeezes_and_then_flows() {
        let mut order: Vec<i64> = (0..20).collect();
        for group in 5..10 {
            order.extend([3, 1, 2].map(|number| number + group * 4));
        }
        let got = check(&order, None);
        assert!(got[35..].iter().all(|(dts, pts)| dts <= pts), "{got:?}");
    }

    #[test]
    fn a_jump_begins_again() {
        let mut order: Vec<i64> = (0..20).collect();
        order.extend(9_000..9_020);
        let got = check(&order, None);
        assert_eq!(got[20], (27_000_000, 27_000_000));
        assert_eq!(times(&[], None), []);
        assert_eq!(times(&[5], None), [(15_000, 15_000)]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut times = DecodeTimes::new();
        let mut out = Vec::new();
        for number in 0..1_000_i64 {
            let video_frame = CodedFrame {
                pts_90k: -number * 100,
                key: false,
                data: Bytes::new(),
            };
            times.push(video_frame, None, &mut out);
            let waiting = match &times.state {
                State::Learning(waiting) => waiting.len(),
                State::Flowing(times) => times.len(),
            };
            assert!(waiting <= MAX_DEPTH + 1);
        }
        assert!(out.len() > 900);
    }
}
