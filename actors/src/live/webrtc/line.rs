//! Times of an input's feeds: continuous over publisher sessions, one wall-clock line for both tracks, Opus by its sample count.
//!
//! Pure. The wall-clock line is `base + pts`, where `base` is the smallest arrival − pts of the last 10 s (`WITHIN_S`): the frame
//! that was delayed least says when its publisher sampled.

use std::collections::VecDeque;

use sluice_media::{
    codec::AudioConfig,
    unit::{AudioUnit, CLOCK_90K, VideoUnit},
};

use crate::live::restream::timeline::{Kind, Timeline};

/// Seconds whose smallest delays make the line.
const WITHIN_S: i64 = 10;
/// Time of the first frame: room for frames that are shown before they are decoded.
const BEGIN_90K: i64 = 10 * CLOCK_90K;
/// Largest distance of an Opus packet from the end of the one before it at which it follows on that: encoders round times.
const OPUS_SLACK_90K: i64 = CLOCK_90K * 3 / 100;
/// Ticks of the 90 kHz clock in 8 samples of 48 kHz.
const TICKS_IN_8_SAMPLES: i64 = 15;

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Line {
    timeline: Timeline,
    wallclock: Wallclock,
    /// End of the last Opus packet.
    opus_end_90k: Option<i64>,
}

impl Line {
    /// Notes that another publisher session begins.
    pub fn break_off(&mut self) {
        self.timeline.break_off();
        self.wallclock = Wallclock::default();
        self.opus_end_90k = None;
    }

    /// Returns the frame with its place on the line. `arrived_us`: Unix microseconds.
    pub fn place_video(&mut self, frame: &VideoUnit, arrived_us: i64) -> VideoUnit {
        let (time_90k, delay_90k) = (frame.dts_90k, i64::from(frame.cts_90k));
        let dts_90k = BEGIN_90K + self.timeline.place(Kind::Video, time_90k, delay_90k);
        self.wallclock.observe(dts_90k + delay_90k, arrived_us);
        VideoUnit {
            dts_90k,
            ..frame.clone()
        }
    }

    /// Does for audio what [`Line::place_video`] does.
    pub fn place_audio(
        &mut self,
        frame: &AudioUnit,
        config: &AudioConfig,
        arrived_us: i64,
    ) -> AudioUnit {
        let placed_90k = BEGIN_90K + self.timeline.place(Kind::Audio, frame.pts_90k, 0);
        self.wallclock.observe(placed_90k, arrived_us);
        let mut pts_90k = placed_90k;
        if config.codec == sluice_media::codec::AudioCodec::Opus {
            let follows = |end: &i64| end.abs_diff(placed_90k) <= OPUS_SLACK_90K as u64;
            pts_90k = self.opus_end_90k.filter(follows).unwrap_or(placed_90k);
            let samples = i64::from(config.samples_in(&frame.data));
            self.opus_end_90k = Some(pts_90k + samples * TICKS_IN_8_SAMPLES / 8);
        }
        AudioUnit {
            pts_90k,
            ..frame.clone()
        }
    }

    /// Returns the Unix microseconds at which a frame of this time is sampled.
    pub fn wallclock_us(&self, pts_90k: i64) -> i64 {
        self.wallclock.base_us().unwrap_or(0) + microseconds(pts_90k)
    }
}

/// Smallest delays of the last seconds.
#[derive(Debug, Default)]
struct Wallclock {
    /// Second of arrival, and the smallest arrival − pts in it.
    seconds: VecDeque<(i64, i64)>,
}

impl Wallclock {
    fn observe(&mut self, pts_90k: i64, arrived_us: i64) {
        let (second, delay_us) = (
            arrived_us.div_euclid(1_000_000),
            arrived_us - microseconds(pts_90k),
        );
        match self.seconds.back_mut() {
            Some((last, smallest_us)) if *last >= second => {
                *smallest_us = delay_us.min(*smallest_us);
            }
            _ => self.seconds.push_back((second, delay_us)),
        }
        while self
            .seconds
            .front()
            .is_some_and(|(first, _)| second - first >= WITHIN_S)
        {
            self.seconds.pop_front();
        }
    }

    fn base_us(&self) -> Option<i64> {
        self.seconds.iter().map(|(_, delay_us)| *delay_us).min()
    }
}

fn microseconds(time_90k: i64) -> i64 {
    time_90k * 100 / 9
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_media::codec::AudioCodec;

    use super::*;

    const NOW_US: i64 = 1_790_000_000_000_000;

    fn video(dts_90k: i64) -> VideoUnit {
        VideoUnit {
            dts_90k,
            cts_90k: 0,
            key: false,
            data: Bytes::new(),
        }
    }

    fn opus() -> AudioConfig {
        let head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0".to_vec();
        AudioConfig::parse(AudioCodec::Opus, head.into()).unwrap()
    }

    /// A packet of 20 ms (CELT, one frame).
    fn packet(pts_90k: i64) -> AudioUnit {
        AudioUnit {
            pts_90k,
            data: Bytes::from_static(&[0xf8, 0xff, 0xfe]),
        }
    }

    #[test]
    fn the_frame_that_was_delayed_least_makes_the_line() {
        let mut line = Line::default();
        let delays_us = [40_000, 5_000, 90_000, 30_000];
        for (index, delay_us) in (0..).zip(delays_us) {
            line.place_video(&video(index * 3_000), NOW_US + index * 33_333 + delay_us);
        }
        let first_us = line.wallclock_us(BEGIN_90K);
        assert!((first_us - NOW_US - 5_000).abs() < 2, "{first_us}");
        // Ten seconds later that frame no longer counts.
        for half_second in 1..=20 {
            let arrived_us = NOW_US + half_second * 500_000 + 1_000_000;
            line.place_video(&video(half_second * 45_000), arrived_us);
        }
        let delay_us = line.wallclock_us(BEGIN_90K + 900_000) - NOW_US;
        assert_eq!(delay_us, 11_000_000);
    }

    #[test]
    fn another_publisher_continues_the_line() {
        let mut line = Line::default();
        let before = line.place_video(&video(7_000_000), NOW_US);
        line.break_off();
        let after = line.place_video(&video(0), NOW_US + 5_000_000);
        assert!(after.dts_90k > before.dts_90k && after.dts_90k < before.dts_90k + CLOCK_90K);
        assert_eq!(line.wallclock_us(after.dts_90k), NOW_US + 5_000_000);
    }

    #[test]
    fn opus_is_timed_by_its_samples() {
        let (mut line, config) = (Line::default(), opus());
        // Times in milliseconds of an encoder that counts 20.3 ms.
        let times =
            [0, 1_890, 3_690, 5_400].map(|time| line.place_audio(&packet(time), &config, NOW_US));
        let distances: Vec<i64> = times
            .windows(2)
            .map(|pair| pair[1].pts_90k - pair[0].pts_90k)
            .collect();
        assert_eq!(distances, [1_800, 1_800, 1_800]);
        // A packet is missing, and its time stays empty.
        let behind = line.place_audio(&packet(5_400 + 5_400), &config, NOW_US);
        assert_eq!(behind.pts_90k - times[3].pts_90k, 5_400);
    }
}
