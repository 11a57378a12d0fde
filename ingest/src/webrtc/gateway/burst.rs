//! Burst of the open group of pictures to a session that joins: paced (`MIN_RATE`, `CHUNK`), with squeezed RTP times
//! (`STEP_90K`).
//!
//! Pure. The frames before the live one are decoded and shown for a millisecond each, so that the viewer is at the live point at
//! once; frames that come meanwhile wait behind them.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use super::frame::FeedFrame;

/// Bytes per second of a burst at least: 20 Mbit/s.
const MIN_RATE: u64 = 20_000_000 / 8;
/// Times that a burst is faster than its feed.
const SPEED: u64 = 4;
/// Packets that are sent at once.
const CHUNK: usize = 12;
/// Distance of squeezed RTP times: 1 ms.
const STEP_90K: i64 = 90;

/// Frames of a burst that are not sent yet.
#[derive(Debug)]
pub(super) struct Burst {
    frames: VecDeque<BurstFrame>,
    bytes_per_second: u64,
    next_at: Instant,
}

#[derive(Debug)]
struct BurstFrame {
    frame: Arc<FeedFrame>,
    pts_90k: i64,
    /// Packets that were sent.
    sent: usize,
}

/// Part of a frame that is due.
#[derive(Debug)]
pub(super) struct Chunk {
    pub frame: Arc<FeedFrame>,
    /// Presentation time that it is sent with.
    pub pts_90k: i64,
    pub packets: std::ops::Range<usize>,
}

impl Burst {
    /// Begins a burst of a group's frames, the last of which is the live one; `None` where there are none.
    pub fn new(
        group: &VecDeque<Arc<FeedFrame>>,
        bytes_per_second: u64,
        now: Instant,
    ) -> Option<Self> {
        let live_90k = group.back()?.pts_90k;
        let before_live = (0..group.len() as i64).rev();
        let frames = group
            .iter()
            .zip(before_live)
            .map(|(frame, before)| BurstFrame {
                frame: frame.clone(),
                pts_90k: live_90k - before * STEP_90K,
                sent: 0,
            });
        Some(Self {
            frames: frames.collect(),
            bytes_per_second: (bytes_per_second * SPEED).max(MIN_RATE),
            next_at: now,
        })
    }

    /// Adds a frame behind the others. At a key frame the others are left out, but for one that is partly sent.
    pub fn push(&mut self, frame: Arc<FeedFrame>) {
        if frame.is_key() {
            self.frames.retain(|waiting| waiting.sent > 0);
        }
        self.frames.push_back(BurstFrame {
            pts_90k: frame.pts_90k,
            frame,
            sent: 0,
        });
    }

    /// Returns the time at which more is due; `None` when all is sent.
    pub fn due(&self) -> Option<Instant> {
        (!self.frames.is_empty()).then_some(self.next_at)
    }

    /// Returns the next part that is due; `None` until there is one.
    pub fn next(&mut self, now: Instant) -> Option<Chunk> {
        if now < self.next_at {
            return None;
        }
        let waiting = self.frames.front_mut()?;
        let packets = waiting.frame.packets().len();
        let end = packets.min(waiting.sent + CHUNK);
        let chunk = Chunk {
            frame: waiting.frame.clone(),
            pts_90k: waiting.pts_90k,
            packets: waiting.sent..end,
        };
        waiting.sent = end;
        let bytes = (waiting.frame.bytes * chunk.packets.len()).div_ceil(packets.max(1));
        if end == packets {
            self.frames.pop_front();
        }
        // A thread that comes late makes up for a few milliseconds, not for more.
        let begin = self.next_at.max(now - Duration::from_millis(5));
        self.next_at =
            begin + Duration::from_micros(bytes as u64 * 1_000_000 / self.bytes_per_second);
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::frame::tests::video, *};

    const MS: Duration = Duration::from_millis(1);

    fn group(frames: i64) -> VecDeque<Arc<FeedFrame>> {
        (0..frames)
            .map(|frame| video(frame * 3_000, frame == 0, 25_000))
            .collect()
    }

    #[test]
    fn frames_before_the_live_one_have_squeezed_times() {
        let start = Instant::now();
        let mut burst = Burst::new(&group(3), 0, start).unwrap();
        burst.push(video(9_000, false, 25_000));
        let mut times = Vec::new();
        let mut now = start;
        while burst.due().is_some() {
            if let Some(chunk) = burst.next(now) {
                times.push((chunk.pts_90k, chunk.packets));
            }
            now += MS;
        }
        let expected = [5_820, 5_910, 6_000, 9_000].map(|time| [(time, 0..12), (time, 12..20)]);
        assert_eq!(times, expected.concat());
        // 100 kB at 2.5 MB/s.
        let took = now - start;
        assert!((33 * MS..48 * MS).contains(&took), "{took:?}");
    }

    #[test]
    fn a_late_thread_sends_no_flood() {
        let start = Instant::now();
        let mut burst = Burst::new(&group(300), 0, start).unwrap();
        let late = start + 500 * MS;
        let sent = (0..100).take_while(|_| burst.next(late).is_some());
        assert!((1..4).contains(&sent.count()));
    }

    #[test]
    fn a_key_frame_ends_the_wait_of_older_frames_but_for_a_begun_one() {
        let start = Instant::now();
        let mut burst = Burst::new(&group(5), 0, start).unwrap();
        assert_eq!(burst.next(start).unwrap().packets, 0..12);
        burst.push(video(15_000, true, 25_000));
        let rest = burst.next(start + 100 * MS).unwrap();
        assert_eq!((rest.pts_90k, rest.packets), (12_000 - 4 * 90, 12..20));
        let key = burst.next(start + 200 * MS).unwrap();
        assert_eq!((key.pts_90k, key.frame.is_key()), (15_000, true));
    }

    #[test]
    fn an_empty_group_is_no_burst() {
        assert!(Burst::new(&group(0), 0, Instant::now()).is_none());
    }
}
