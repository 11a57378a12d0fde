//! Places audio frames of a live stream on their sample clock: gaps up to 1 s, overlaps, resynchronisation after 60 ms.
//!
//! Timestamps of whole milliseconds cannot place frames of 1024 samples without gaps or overlaps, so a frame begins
//! where the one before ended. When that strays from the timestamps by more than 60 ms, the clock is set again: ahead
//! by a longer last frame, back by leaving frames out until the timestamps have caught up. It never runs backwards.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;

use super::fragment::AudioSample;
use crate::{codec::AudioConfig, unit::CLOCK_90K};

/// Distance from the timestamps at which the sample clock is set again.
const RESYNC_90K: i64 = 60 * CLOCK_90K / 1_000;
/// A gap up to this is bridged by a longer frame, so that players do not see a hole.
const BRIDGED_90K: i64 = CLOCK_90K;
/// Most waiting frames; beyond it the publisher floods.
const MAX_WAITING: usize = 4_096;
/// No codec has longer frames; an empty packet still lasts a sample.
const MAX_FRAME_SAMPLES: u32 = 8_192;

/// The frames that no part holds yet, and the clock.
#[derive(Debug)]
pub(super) struct AudioTrack {
    pub(super) config: Arc<AudioConfig>,
    /// Start of the next frame, in samples.
    next: Option<u64>,
    /// No frame starts before, in samples and in ticks.
    floor: u64,
    floor_90k: i64,
    catching_up: bool,
    waiting: VecDeque<AudioSample>,
    waiting_bytes: usize,
}

impl AudioTrack {
    /// Returns a track whose first frame starts at `floor_90k` or later.
    pub(super) fn new(config: Arc<AudioConfig>, floor_90k: i64) -> Self {
        let rate = i128::from(config.sample_rate.max(1));
        let floor = ceil_div(i128::from(floor_90k.max(0)) * rate, i128::from(CLOCK_90K));
        Self {
            config,
            next: None,
            floor: floor as u64,
            floor_90k,
            catching_up: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Takes a frame; `false` when it was left out. `realigned`: the timestamp counts as it is.
    pub(super) fn push(&mut self, at_90k: i64, realigned: bool, data: Bytes) -> bool {
        let duration = self.config.samples_in(&data).clamp(1, MAX_FRAME_SAMPLES);
        let Some(start) = self.place(self.samples(at_90k), duration, realigned) else {
            return false;
        };
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        self.next = Some(start + u64::from(duration));
        self.waiting_bytes += data.len();
        self.waiting.push_back(AudioSample {
            start,
            duration,
            data,
        });
        true
    }

    /// Returns the start of a frame whose timestamp says `wanted`, which may be before the broadcast's start.
    fn place(&mut self, wanted: i64, duration: u32, realigned: bool) -> Option<u64> {
        let half_frame = u64::from(duration / 2);
        let late = wanted.saturating_add(i64::from(duration / 2)) < self.floor.cast_signed();
        let wanted = wanted.max(0).cast_unsigned();
        let Some(next) = self.next else {
            return (!late).then_some(wanted.max(self.floor));
        };
        let limit = if realigned {
            0
        } else {
            self.samples(RESYNC_90K).unsigned_abs()
        };
        if wanted > next + limit {
            self.catching_up = false;
            self.bridge(wanted - next);
            return Some(wanted);
        }
        if wanted + limit < next {
            self.catching_up = true;
        }
        if self.catching_up && wanted + half_frame < next {
            return None;
        }
        self.catching_up = false;
        Some(next)
    }

    /// Lengthens the last waiting frame over a gap, if it is still there and the gap is not too long.
    fn bridge(&mut self, gap: u64) {
        if gap > self.samples(BRIDGED_90K).unsigned_abs() {
            return;
        }
        if let Some(last) = self.waiting.back_mut() {
            last.duration += gap as u32;
        }
    }

    /// Returns the end of the newest frame, rounded up so that nothing after it can overlap; `None` before the first.
    pub(super) fn end_90k(&self) -> Option<i64> {
        let rate = i128::from(self.config.sample_rate.max(1));
        self.next
            .map(|next| ceil_div(i128::from(next) * i128::from(CLOCK_90K), rate) as i64)
    }

    /// Returns the earliest begin of another audio track that replaces this one.
    pub(super) fn successor_from_90k(&self) -> i64 {
        self.end_90k().unwrap_or(self.floor_90k)
    }

    /// Returns the start of the oldest waiting frame.
    pub(super) fn waiting_from_90k(&self) -> Option<i64> {
        self.waiting.front().map(|sample| self.ticks(sample.start))
    }

    /// Returns whether a frame waits that starts in `from_90k` or later, before `until_90k`.
    pub(super) fn waits_within(&self, from_90k: i64, until_90k: i64) -> bool {
        self.waiting.iter().rev().any(|sample| {
            let start = self.ticks(sample.start);
            from_90k <= start && start < until_90k
        })
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Hands out the frames that start before `until_90k`.
    pub(super) fn take_before(&mut self, until_90k: i64) -> Vec<AudioSample> {
        let count = self
            .waiting
            .partition_point(|sample| self.ticks(sample.start) < until_90k);
        let taken: Vec<AudioSample> = self.waiting.drain(..count).collect();
        self.waiting_bytes -= taken.iter().map(|sample| sample.data.len()).sum::<usize>();
        taken
    }

    /// A frame's duration in ticks.
    pub(super) fn frame_90k(&self) -> i64 {
        let samples = self.config.samples_per_frame.clamp(1, MAX_FRAME_SAMPLES);
        self.ticks(u64::from(samples)).max(1)
    }

    fn samples(&self, ticks_90k: i64) -> i64 {
        let rate = i128::from(self.config.sample_rate.max(1));
        (i128::from(ticks_90k) * rate / i128::from(CLOCK_90K)) as i64
    }

    fn ticks(&self, samples: u64) -> i64 {
        let rate = i128::from(self.config.sample_rate.max(1));
        (i128::from(samples) * i128::from(CLOCK_90K) / rate) as i64
    }
}

fn ceil_div(value: i128, by: i128) -> i128 {
    (value + by - 1) / by
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::AudioCodec;

    fn track() -> AudioTrack {
        let config = AudioConfig {
            codec: AudioCodec::Aac,
            record: Bytes::from_static(&[0x11, 0x90]),
            sample_rate: 48_000,
            channels: 2,
            codecs: "mp4a.40.2".to_owned(),
            samples_per_frame: 1_024,
        };
        AudioTrack::new(Arc::new(config), 0)
    }

    /// Starts and durations in samples after pushing frames at these milliseconds.
    fn placed(track: &mut AudioTrack, stamps_ms: impl IntoIterator<Item = i64>) -> Vec<(u64, u32)> {
        for stamp in stamps_ms {
            track.push(stamp * 90, false, Bytes::from_static(b"frame"));
        }
        track
            .waiting
            .iter()
            .map(|sample| (sample.start, sample.duration))
            .collect()
    }

    #[test]
    fn rounded_timestamps_give_a_gapless_track() {
        let mut track = track();
        let starts = placed(&mut track, (0..500).map(|frame| frame * 64 / 3));
        assert!(starts.windows(2).all(|pair| pair[0].0 + 1_024 == pair[1].0));
        assert_eq!(track.end_90k(), Some(500 * 1_920));
    }

    #[test]
    fn a_gap_is_bridged_and_a_step_back_costs_frames() {
        let mut track = track();
        let starts = placed(&mut track, [0, 21, 200, 221]);
        assert_eq!(
            starts,
            [(0, 1_024), (1_024, 8_576), (9_600, 1_024), (10_624, 1_024)]
        );

        // 11 648 samples are 242.7 ms: what comes in for the time before is left out.
        let starts = placed(&mut track, [100, 121, 200, 221, 243]);
        assert_eq!(starts.len(), 5);
        assert_eq!(starts[4].0, 11_648);
    }

    #[test]
    fn nothing_starts_before_the_floor() {
        let mut track = AudioTrack::new(track().config, 90_000);
        assert!(!track.push(85_000, false, Bytes::from_static(b"frame")));
        assert!(track.push(89_900, false, Bytes::from_static(b"frame")));
        assert_eq!(track.waiting_from_90k(), Some(90_000));
    }

    #[test]
    fn a_flood_is_bounded() {
        let mut track = track();
        let taken = (0..10_000)
            .filter(|frame| track.push(frame * 1_920, false, Bytes::from_static(b"frame")))
            .count();
        assert_eq!(taken, MAX_WAITING);
    }
}
