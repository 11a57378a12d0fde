//! A made-up encoder sends; the meter says what it did.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::codec::{AudioCodec, VideoCodec};

/// An encoder whose every habit can be changed between two runs of media.
struct Encoder {
    meter: Meter,
    now_ms: i64,
    /// Media time of the next frame and of all audio before it.
    media_90k: f64,
    frame_rate: f64,
    /// Wall-clock time per media time.
    pace: f64,
    key_every: u32,
    video_frame: u32,
    video_frame_bytes: usize,
    cts_pattern_90k: &'static [i32],
    audio_lead_90k: Option<i64>,
}

impl Encoder {
    fn new() -> Self {
        let mut meter = Meter::new();
        meter.begin_session(1_000_000);
        Self {
            meter,
            now_ms: 1_000_000,
            media_90k: 0.0,
            frame_rate: 30.0,
            pace: 1.0,
            key_every: 60,
            video_frame: 0,
            video_frame_bytes: 25_000,
            cts_pattern_90k: &[0],
            audio_lead_90k: Some(0),
        }
    }

    /// Sends `video_frames`, time stamps in whole milliseconds as RTMP carries them.
    fn run(&mut self, video_frames: u32) -> &mut Self {
        let began_ms = self.now_ms;
        let began_90k = self.media_90k;
        for index in 0..video_frames {
            let dts_90k = (self.media_90k / 90.0).floor() as i64 * 90;
            let cts_90k =
                self.cts_pattern_90k[self.video_frame as usize % self.cts_pattern_90k.len()];
            let key = self.video_frame.is_multiple_of(self.key_every);
            let data = Bytes::from(vec![0; self.video_frame_bytes]);
            self.meter.observe(
                &Unit::Video(VideoUnit {
                    dts_90k,
                    cts_90k,
                    key,
                    data,
                }),
                self.now_ms,
            );
            if let Some(lead_90k) = self.audio_lead_90k {
                let data = Bytes::from_static(&[0; 667]);
                self.meter.observe(
                    &Unit::Audio(AudioUnit {
                        pts_90k: dts_90k + lead_90k,
                        data,
                    }),
                    self.now_ms,
                );
            }
            self.video_frame += 1;
            self.media_90k = began_90k + f64::from(index + 1) * 90_000.0 / self.frame_rate;
            self.now_ms =
                began_ms + ((self.media_90k - began_90k) / 90.0 * self.pace).round() as i64;
        }
        self
    }

    fn measured(&self) -> Measured {
        self.meter.snapshot(self.now_ms)
    }
}

#[test]
fn nothing_is_known_before_media_arrive() {
    let mut meter = Meter::new();
    assert_eq!(meter.snapshot(5), Measured::default());
    meter.begin_session(1_000);
    assert_eq!(
        meter.snapshot(5_000),
        Measured {
            last_media_age_ms: Some(4_000),
            ..Measured::default()
        }
    );
    let json = serde_json::to_value(meter.snapshot(5_000)).unwrap();
    assert!(json["keyFrameIntervalS"].is_null() && json["timestampJumps"] == 0);
}

#[test]
fn a_healthy_stream_is_measured_and_gets_no_advice() {
    let mut encoder = Encoder::new();
    let measured = encoder.run(600).measured();
    assert_eq!(measured.frame_rate, Some(30.0));
    assert_eq!(measured.video_bitrate_bps, Some(6_000_000));
    assert_eq!(measured.audio_bitrate_bps, Some(667 * 8 * 30));
    assert_eq!(
        (
            measured.key_frame_interval_s,
            measured.max_key_frame_interval_s
        ),
        (Some(2.0), Some(2.0))
    );
    assert_eq!(
        (measured.b_frames, measured.reorder_delay_ms),
        (Some(false), Some(0))
    );
    assert_eq!((measured.timestamp_jumps, measured.stalls), (0, 0));
    assert!(
        measured.drift_ms.unwrap().abs() <= 1 && measured.av_offset_ms.unwrap().abs() <= 34,
        "{measured:?}"
    );
    let context = AdviceContext {
        target_duration_s: 4,
        low_latency: true,
        ..AdviceContext::default()
    };
    assert_eq!(advice(&measured, &context), Vec::<String>::new());
}

#[test]
fn frame_rates_survive_millisecond_time_stamps() {
    for (sent, seen) in [
        (24_000.0 / 1_001.0, 23.976),
        (24.0, 24.0),
        (25.0, 25.0),
        (30_000.0 / 1_001.0, 29.97),
        (30.0, 30.0),
        (50.0, 50.0),
        (60_000.0 / 1_001.0, 59.94),
        (60.0, 60.0),
    ] {
        let mut encoder = Encoder {
            frame_rate: sent,
            ..Encoder::new()
        };
        assert_eq!(
            encoder.run(15).measured().frame_rate,
            None,
            "too few to judge"
        );
        for _ in 0..7 {
            assert_eq!(encoder.run(113).measured().frame_rate, Some(seen));
        }
    }
    let odd = Encoder {
        frame_rate: 17.3,
        ..Encoder::new()
    }
    .run(300)
    .measured()
    .frame_rate
    .unwrap();
    assert!((odd - 17.3).abs() < 0.02, "{odd}");
}

#[test]
fn key_frame_intervals_count_the_one_in_progress() {
    let mut encoder = Encoder {
        key_every: 250,
        ..Encoder::new()
    };
    for video_frames in [1, 9, 50] {
        let measured = encoder.run(video_frames).measured();
        let intervals = (
            measured.key_frame_interval_s,
            measured.max_key_frame_interval_s,
        );
        assert_eq!(intervals, (None, None), "the first may end at any frame");
    }
    assert_eq!(encoder.run(91).measured().key_frame_interval_s, Some(5.0));
    assert_eq!(
        encoder.run(600).measured().key_frame_interval_s,
        Some(8.333)
    );
    encoder.key_every = 1_000_000;
    let measured = encoder.run(900).measured();
    assert!(
        measured.key_frame_interval_s.unwrap() >= 30.0,
        "{measured:?}"
    );
    assert_eq!(
        measured.key_frame_interval_s,
        measured.max_key_frame_interval_s
    );
}

#[test]
fn b_frames_differ_from_a_constant_offset() {
    for (pattern, used, delay_ms) in [
        (&[0][..], false, 0),
        (&[6_000], false, 0),               // constant delay of two frames
        (&[6_000, 6_030, 5_970], false, 0), // and its rounding
        (&[6_000, 15_030, 6_030, 0, 3_060], true, 167),
        (&[0, -3_000, 3_000], true, 66),
        (&[i32::MIN, i32::MAX], true, i64::from(i32::MAX) / 90),
    ] {
        let mut encoder = Encoder {
            cts_pattern_90k: pattern,
            ..Encoder::new()
        };
        assert!(encoder.run(1).measured().b_frames.is_none());
        let measured = encoder.run(300).measured();
        assert_eq!(
            (measured.b_frames, measured.reorder_delay_ms),
            (Some(used), Some(delay_ms)),
            "{pattern:?}"
        );
    }
}

#[test]
fn jumps_and_stalls_are_distinguished() {
    // (media jumps by, wall clock jumps by, jumps, stalls)
    for (media_ms, wall_ms, jumps, stalls) in [
        (0, 0, 0, 0),
        (900, 0, 0, 0),
        (5_000, 0, 1, 0),
        (-40, 0, 1, 0),
        (-3_600_000, 0, 1, 0),
        (i64::from(u32::MAX), 0, 1, 0),
        (0, 1_500, 0, 1),         // the network paused, everything comes late
        (5_000, 5_000, 0, 1),     // the encoder dropped five seconds
        (3_600_000, 5_000, 1, 0), // it slept and woke with another clock
        (0, -7_200_000, 0, 0),    // our own clock was set back
    ] {
        let mut encoder = Encoder::new();
        encoder.run(100);
        encoder.media_90k += media_ms as f64 * 90.0;
        encoder.now_ms += wall_ms;
        let measured = encoder.run(100).measured();
        assert_eq!(
            (measured.timestamp_jumps, measured.stalls),
            (jumps, stalls),
            "{media_ms} ms in {wall_ms} ms"
        );
        let frame_rate = measured.frame_rate.unwrap();
        assert!(
            media_ms == 900 || (frame_rate - 30.0).abs() < 0.1,
            "{media_ms} ms: {frame_rate}"
        );
        let at_once = measured
            .last_timestamp_jump_age_ms
            .is_none_or(|age_ms| (3_000..4_000).contains(&age_ms));
        assert!(at_once, "{measured:?}");
    }
}

#[test]
fn drift_is_media_time_against_the_wall_clock() {
    for (pace, expected_ms) in [
        (1.0, -20..=20),
        (1.05, -1_000..=-900),
        (0.5, 8_900..=10_000),
    ] {
        let drift_ms = Encoder {
            pace,
            ..Encoder::new()
        }
        .run(600)
        .measured()
        .drift_ms
        .unwrap();
        assert!(
            expected_ms.contains(&drift_ms),
            "pace {pace}: {drift_ms} ms"
        );
    }
    let mut jumped = Encoder::new();
    jumped.run(100).media_90k += 90_000.0 * 3_600.0;
    assert!(
        jumped.run(100).measured().drift_ms.unwrap().abs() <= 1,
        "counts from the jump on"
    );
}

#[test]
fn offset_between_audio_and_frame() {
    for (lead_90k, expected_ms) in [(0, -35..=0), (90_000, 960..=1_000), (-45_000, -540..=-500)] {
        let measured = Encoder {
            audio_lead_90k: Some(lead_90k),
            ..Encoder::new()
        }
        .run(300)
        .measured();
        assert!(
            expected_ms.contains(&measured.av_offset_ms.unwrap()),
            "{lead_90k}: {measured:?}"
        );
    }
    let alone = Encoder {
        audio_lead_90k: None,
        ..Encoder::new()
    }
    .run(300)
    .measured();
    assert_eq!((alone.av_offset_ms, alone.audio_bitrate_bps), (None, None));
}

#[test]
fn bitrates_fall_to_zero_when_nothing_comes() {
    let mut encoder = Encoder::new();
    encoder.run(15);
    assert_eq!(
        encoder.measured().video_bitrate_bps,
        None,
        "less than a second"
    );
    encoder.run(585);
    assert_eq!(encoder.measured().video_bitrate_bps, Some(6_000_000));
    encoder.now_ms += 5_000;
    assert_eq!(encoder.measured().video_bitrate_bps, Some(3_000_000));
    encoder.now_ms += 6_000;
    let measured = encoder.measured();
    assert_eq!(
        (measured.video_bitrate_bps, measured.last_media_age_ms),
        (Some(0), Some(11_033))
    );
}

#[test]
fn audio_alone_is_measured() {
    let mut meter = Meter::new();
    meter.begin_session(0);
    for frame in 0..500i64 {
        let unit = AudioUnit {
            pts_90k: frame * 1_920,
            data: Bytes::from_static(&[0; 427]),
        };
        let pause_ms = if frame > 250 { 2_000 } else { 0 };
        meter.observe(&Unit::Audio(unit), frame * 64 / 3 + pause_ms);
    }
    let measured = meter.snapshot(499 * 64 / 3 + 2_000);
    assert_eq!(
        (
            measured.stalls,
            measured.timestamp_jumps,
            measured.video_bitrate_bps
        ),
        (1, 0, None)
    );
    assert!(
        (-2_000..-1_900).contains(&measured.drift_ms.unwrap()),
        "{measured:?}"
    );
}

#[test]
fn configurations_are_shown_and_forgotten_with_the_session() {
    let video = VideoConfig {
        codec: VideoCodec::Avc,
        record: Bytes::new(),
        width: 1920,
        height: 1080,
        pixel_aspect: (1, 1),
        frame_rate: Some(30.0),
        nal_length_size: 4,
        codecs: "avc1.640029".to_owned(),
        profile: "High".to_owned(),
        level: "4.1".to_owned(),
        bit_depth: 8,
        may_reorder: None,
    };
    let audio = AudioConfig::parse(AudioCodec::Aac, Bytes::from_static(&[0x12, 0x10])).unwrap();
    let mut encoder = Encoder::new();
    encoder.run(100);
    encoder
        .meter
        .observe(&Unit::VideoConfig(Arc::new(video)), encoder.now_ms);
    encoder
        .meter
        .observe(&Unit::AudioConfig(Arc::new(audio)), encoder.now_ms);
    let measured = encoder.measured();
    assert_eq!(
        (measured.video_codec, measured.video_profile.as_deref()),
        (Some("h264"), Some("High 4.1"))
    );
    assert_eq!(
        (
            measured.width,
            measured.height,
            measured.declared_frame_rate
        ),
        (Some(1920), Some(1080), Some(30.0))
    );
    assert_eq!(
        (
            measured.audio_codec,
            measured.sample_rate,
            measured.channels
        ),
        (Some("aac"), Some(44_100), Some(2))
    );

    encoder.meter.begin_session(encoder.now_ms);
    assert_eq!(
        encoder.measured(),
        Measured {
            last_media_age_ms: Some(0),
            ..Measured::default()
        }
    );
}

proptest! {
    #[test]
    fn no_times_panic(units in proptest::collection::vec((any::<i64>(), any::<i32>(), any::<bool>(), 0..2_000i64), 1..300)) {
        let mut meter = Meter::new();
        let mut now_ms = 0;
        for (time_90k, cts_90k, key, step_ms) in units {
            now_ms += step_ms;
            let data = Bytes::new();
            let unit = match cts_90k % 2 {
                0 => Unit::Video(VideoUnit { dts_90k: time_90k, cts_90k, key, data }),
                _ => Unit::Audio(AudioUnit { pts_90k: time_90k, data }),
            };
            meter.observe(&unit, now_ms);
            let measured = meter.snapshot(now_ms);
            advice(&measured, &AdviceContext::default());
        }
    }
}
