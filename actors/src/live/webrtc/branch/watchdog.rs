//! Watchdog of a branch's worker: what it is sent is taken, and what is decoded comes out, within a second of each other.

use std::time::Duration;

use sluice_media::av::live::LiveProgress;
use tokio::time::Instant;

/// Longest time in which a worker takes nothing of what waits, and makes nothing of what it decodes.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// Longest time until the first output.
const PATIENCE_AT_START: Duration = Duration::from_secs(10);
/// Decoded frames behind the last output from which on the encoder is late, however few come in a second.
const LATE_FRAMES: u64 = 30;

/// Unanswered frames of a track.
#[derive(Debug)]
struct Track {
    sent: u64,
    taken: u64,
    /// Time of the last answer, or of the first frame after all were answered.
    since: Instant,
}

impl Track {
    fn send(&mut self, now: Instant) {
        if self.sent <= self.taken {
            self.since = now;
        }
        self.sent += 1;
    }

    fn take(&mut self, taken: u64, now: Instant) {
        if taken != self.taken {
            (self.taken, self.since) = (taken, now);
        }
    }

    fn is_stuck(&self, now: Instant) -> bool {
        self.sent > self.taken && now.duration_since(self.since) > PATIENCE
    }
}

#[derive(Debug)]
pub(super) struct Watchdog {
    video: Track,
    audio: Track,
    progress: LiveProgress,
    /// Time of the last video output, and the frames that were decoded then.
    output_at: Instant,
    decoded_at_output: u64,
    has_output: bool,
}

impl Watchdog {
    pub fn new(now: Instant) -> Self {
        let track = || Track {
            sent: 0,
            taken: 0,
            since: now,
        };
        Self {
            video: track(),
            audio: track(),
            progress: LiveProgress::default(),
            output_at: now,
            decoded_at_output: 0,
            has_output: false,
        }
    }

    pub fn sent_video(&mut self, now: Instant) {
        self.video.send(now);
    }

    pub fn sent_audio(&mut self, now: Instant) {
        self.audio.send(now);
    }

    /// Notes a report; returns the frames that were dropped since the last.
    pub fn heard(&mut self, progress: LiveProgress, now: Instant) -> u32 {
        self.video.take(progress.video_taken, now);
        self.audio.take(progress.audio_taken, now);
        let dropped = progress.dropped.saturating_sub(self.progress.dropped);
        self.progress = progress;
        u32::try_from(dropped).unwrap_or(u32::MAX)
    }

    pub fn made_video(&mut self, now: Instant) {
        self.output_at = now;
        self.decoded_at_output = self.progress.decoded;
        self.has_output = true;
    }

    /// Returns why the worker is given up.
    pub fn verdict(&self, now: Instant) -> Option<&'static str> {
        if self.video.is_stuck(now) {
            return Some("its video decoder hangs");
        }
        if self.audio.is_stuck(now) {
            return Some("its audio decoder hangs");
        }
        let patience = match self.has_output {
            true => PATIENCE,
            false => PATIENCE_AT_START,
        };
        let decoded = self.progress.decoded.saturating_sub(self.decoded_at_output);
        let is_late = decoded >= LATE_FRAMES && now.duration_since(self.output_at) > patience;
        is_late.then_some("its encoder hangs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    fn taken(video: u64, decoded: u64) -> LiveProgress {
        LiveProgress {
            video_taken: video,
            decoded,
            ..LiveProgress::default()
        }
    }

    #[test]
    fn a_decoder_that_takes_nothing_hangs_and_an_idle_one_does_not() {
        let start = Instant::now();
        let mut dog = Watchdog::new(start);
        assert_eq!(dog.verdict(at(start, 60_000)), None);
        dog.sent_video(at(start, 60_000));
        dog.sent_video(at(start, 60_900));
        assert_eq!(dog.verdict(at(start, 60_950)), None);
        dog.heard(taken(1, 0), at(start, 60_950));
        assert_eq!(dog.verdict(at(start, 61_900)), None);
        assert!(dog.verdict(at(start, 62_000)).is_some());
        dog.heard(taken(2, 0), at(start, 62_000));
        assert_eq!(dog.verdict(at(start, 99_000)), None);
        dog.sent_audio(at(start, 99_000));
        assert!(dog.verdict(at(start, 100_001)).is_some());
    }

    #[test]
    fn an_encoder_that_makes_nothing_of_many_frames_hangs() {
        let start = Instant::now();
        let mut dog = Watchdog::new(start);
        // The group of pictures at the start is decoded and not encoded.
        dog.heard(taken(300, 300), at(start, 2_000));
        assert_eq!(dog.verdict(at(start, 3_000)), None);
        dog.made_video(at(start, 3_000));
        // A slow stream has few frames.
        dog.heard(taken(310, 310), at(start, 9_000));
        assert_eq!(dog.verdict(at(start, 9_000)), None);
        dog.heard(taken(340, 340), at(start, 9_100));
        assert!(dog.verdict(at(start, 9_100)).is_some());
        dog.made_video(at(start, 9_200));
        assert_eq!(dog.verdict(at(start, 9_300)), None);
    }

    #[test]
    fn drops_are_counted_once() {
        let now = Instant::now();
        let mut dog = Watchdog::new(now);
        let dropped = |dropped| LiveProgress {
            dropped,
            ..LiveProgress::default()
        };
        let heard = [3, 3, 10, 4].map(|count| dog.heard(dropped(count), now));
        assert_eq!(heard, [3, 0, 7, 0]);
    }
}
