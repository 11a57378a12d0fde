//! Open group of pictures of a video feed, kept for sessions that join (`MAX_SPAN_90K`), and requests for key frames.
//!
//! Pure. A group begins at a key frame and holds all frames since; one that grows beyond its bounds is dropped as a whole, since no
//! decoder can start in its middle.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use super::frame::FeedFrame;

/// Longest group that is kept: 10 s.
const MAX_SPAN_90K: i64 = 10 * 90_000;
/// Shortest interval of requests for a key frame of one feed.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Shortest span that a bitrate is measured over.
const MIN_SPAN_90K: i64 = 9_000;

/// Kept frames of a feed.
#[derive(Debug, Default)]
pub(super) struct Group {
    frames: VecDeque<Arc<FeedFrame>>,
    bytes: usize,
    asked_at: Option<Instant>,
}

impl Group {
    /// Keeps a frame; `is_after_gap` when frames before it are missing.
    pub fn push(&mut self, frame: &Arc<FeedFrame>, is_after_gap: bool, max_bytes: usize) {
        if frame.is_key() || is_after_gap {
            self.clear();
        }
        if !frame.is_key() && self.frames.is_empty() {
            return;
        }
        self.bytes += frame.bytes;
        self.frames.push_back(frame.clone());
        let span = frame.pts_90k - self.frames[0].pts_90k;
        if self.bytes > max_bytes || !(-MAX_SPAN_90K..=MAX_SPAN_90K).contains(&span) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.frames.clear();
        self.bytes = 0;
    }

    /// Returns the frames since the last key frame; none where a decoder cannot start now.
    pub fn frames(&self) -> &VecDeque<Arc<FeedFrame>> {
        &self.frames
    }

    /// Returns the bytes per second of the kept frames; zero until they span enough.
    pub fn bytes_per_second(&self) -> u64 {
        let (Some(first), Some(last)) = (self.frames.front(), self.frames.back()) else {
            return 0;
        };
        match last.pts_90k - first.pts_90k {
            span @ MIN_SPAN_90K.. => self.bytes as u64 * 90_000 / span as u64,
            _ => 0,
        }
    }

    /// Decides whether a key frame is asked for now; requests in short sequence become one.
    pub fn ask(&mut self, now: Instant) -> bool {
        let is_early = self
            .asked_at
            .is_some_and(|asked| now.duration_since(asked) < ASK_EVERY);
        if !is_early {
            self.asked_at = Some(now);
        }
        !is_early
    }
}

#[cfg(test)]
mod tests {
    use super::{super::frame::tests::video, *};

    const MAX: usize = 10_000;

    #[test]
    fn a_group_begins_at_a_key_frame_and_ends_at_the_next() {
        let mut group = Group::default();
        group.push(&video(0, false, 100), false, MAX);
        assert!(group.frames().is_empty());
        for (pts, is_key) in [(0, true), (3_000, false), (6_000, false)] {
            group.push(&video(pts, is_key, 100), false, MAX);
        }
        assert_eq!(group.frames().len(), 3);
        group.push(&video(9_000, true, 100), false, MAX);
        assert_eq!(group.frames().len(), 1);
    }

    #[test]
    fn a_group_with_a_gap_or_beyond_its_bounds_is_no_start() {
        for (pts, bytes, is_after_gap) in [
            (3_000, 100, true),
            (3_000, MAX, false),
            (900_001, 100, false),
        ] {
            let mut group = Group::default();
            group.push(&video(0, true, 100), false, MAX);
            group.push(&video(pts, false, bytes), is_after_gap, MAX);
            assert!(group.frames().is_empty());
            group.push(&video(pts + 3_000, false, 100), false, MAX);
            assert!(group.frames().is_empty());
        }
    }

    #[test]
    fn bitrate_is_known_after_a_tenth_of_a_second() {
        let mut group = Group::default();
        for frame in 0..31 {
            assert_eq!(group.bytes_per_second() > 0, frame > 3);
            group.push(&video(frame * 3_000, frame == 0, 100), false, MAX);
        }
        assert_eq!(group.bytes_per_second(), 3_100);
    }

    #[test]
    fn key_frames_are_asked_for_at_intervals() {
        let (mut group, now) = (Group::default(), Instant::now());
        assert!(group.ask(now));
        assert!(!group.ask(now + ASK_EVERY / 2));
        assert!(group.ask(now + ASK_EVERY));
    }
}
