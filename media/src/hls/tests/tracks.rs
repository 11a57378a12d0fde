//! One session: frame rates, key-frame patterns, tracks that come late or not at all.

use super::{
    encoder::{Encoder, Stamps, audio_config, frame, video_config, video_frame},
    reader::{ReadSegment, audio, check_always, check_full_parts, segments, video},
    *,
};
use crate::unit::Unit;

fn run(target_duration_s: u32, units: Vec<Unit>) -> (Packager, Vec<Output>) {
    let mut packager = Packager::new(settings(target_duration_s), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    units
        .into_iter()
        .for_each(|unit| packager.push(unit, NOON_MS, &mut out));
    packager.tick(NOON_MS + 2_000, &mut out);
    packager.end_session(&mut out);
    (packager, out)
}

fn pack(target_duration_s: u32, units: Vec<Unit>) -> Vec<ReadSegment> {
    let (_, out) = run(target_duration_s, units);
    let read = segments(&out);
    check_always(&read, target_duration_s);
    read
}

#[test]
fn every_usual_frame_rate_makes_full_parts_and_two_second_segments() {
    let rates = [
        24.0,
        25.0,
        29.97,
        30.0,
        50.0,
        59.94,
        60.0,
        24_000.0 / 1_001.0,
    ];
    for frame_rate in rates {
        for (stamps, b_frames) in [(Stamps::Milliseconds, true), (Stamps::Exact, false)] {
            let gop = (2.0_f64 * frame_rate).round() as usize;
            let encoder = Encoder {
                frame_rate,
                gop,
                stamps,
                b_frames,
                ..Encoder::default()
            };
            let read = pack(4, encoder.units(20.0));
            check_full_parts(&read);
            assert_eq!(read.len(), 10, "{frame_rate} {stamps:?}");
            assert!(read.iter().all(ReadSegment::starts_with_key));
            assert!(read.iter().all(|segment| !segment.discontinuity()));
            assert_eq!(video(&read).len(), (20.0 * frame_rate).round() as usize);
            let expected_audio = (20.0_f64 * 48_000.0 / 1_024.0).floor() as usize;
            assert_eq!(audio(&read).len(), expected_audio, "{frame_rate}");
        }
    }
}

#[test]
fn composition_offsets_and_durations_are_the_encoder_s() {
    let encoder = Encoder {
        b_frames: true,
        stamps: Stamps::Exact,
        ..Encoder::default()
    };
    let sent: Vec<i32> = encoder
        .units(4.0)
        .iter()
        .filter_map(|unit| match unit {
            Unit::Video(video_frame) => Some(video_frame.cts_90k),
            _ => None,
        })
        .collect();
    let read = video(&pack(4, encoder.units(4.0)));
    assert!(read.iter().all(|sample| sample.duration == 3_000));
    assert!(
        read.iter()
            .zip(sent)
            .all(|(sample, cts)| sample.cts == i64::from(cts))
    );
    assert!(read.iter().any(|sample| sample.cts == 9_000));
}

#[test]
fn key_frame_patterns() {
    // Frames at 30 fps between key frames, TARGETDURATION, expected segment seconds, starts with a key frame.
    let cases = [
        (15, 4, 2.0, true),
        (30, 4, 2.0, true),
        (45, 4, 3.0, true),
        (60, 2, 2.0, true),
        (90, 4, 3.0, true),
        (120, 4, 4.0, true),
        (250, 4, 4.1, false),
        (100_000, 6, 6.1, false),
    ];
    for (gop, target, seconds, key) in cases {
        let read = pack(
            target,
            Encoder {
                gop,
                ..Encoder::default()
            }
            .units(25.0),
        );
        let whole = &read[..read.len() - 1];
        if key {
            for segment in whole {
                assert!((segment.duration_s() - seconds).abs() < 0.01, "GOP {gop}");
                assert!(segment.starts_with_key());
            }
        } else {
            let longest = whole
                .iter()
                .map(ReadSegment::duration_s)
                .fold(0.0, f64::max);
            assert!(
                longest <= seconds && longest > seconds - 0.15,
                "GOP {gop}: {longest}"
            );
            assert!(whole.iter().any(|segment| !segment.starts_with_key()));
        }
    }
}

#[test]
fn the_next_broadcast_s_target_duration_follows_the_key_frames() {
    for (gop, expected) in [(60, 2), (90, 3), (120, 4), (250, 6), (15, 2)] {
        let (packager, _) = run(
            4,
            Encoder {
                gop,
                ..Encoder::default()
            }
            .units(20.0),
        );
        assert_eq!(
            packager.next_target_duration_s(),
            Some(expected),
            "GOP {gop}"
        );
    }
    let (packager, _) = run(
        4,
        Encoder {
            video: false,
            ..Encoder::default()
        }
        .units(20.0),
    );
    assert_eq!(packager.next_target_duration_s(), None);
}

#[test]
fn audio_alone_and_video_alone() {
    for sample_rate in [48_000, 44_100, 22_050] {
        let encoder = Encoder {
            video: false,
            sample_rate,
            ..Encoder::default()
        };
        let read = pack(4, encoder.units(10.0));
        check_full_parts(&read);
        assert!(
            read.iter()
                .flat_map(|segment| &segment.parts)
                .all(|part| part.part.independent)
        );
        let whole = &read[..read.len() - 1];
        assert!(
            whole
                .iter()
                .all(|segment| (1.9..2.3).contains(&segment.duration_s()))
        );
        let samples = audio(&read);
        assert!(
            samples
                .windows(2)
                .all(|pair| pair[0].dts + 1_024 == pair[1].dts)
        );
    }
    let read = pack(
        4,
        Encoder {
            audio: false,
            ..Encoder::default()
        }
        .units(10.0),
    );
    check_full_parts(&read);
    assert_eq!(video(&read).len(), 300);
}

#[test]
fn audio_before_the_first_key_frame_is_left_out() {
    let mut units = Encoder::default().configs();
    units.extend((0..20).map(|index| frame(index * 1_920, vec![0xaa])));
    units.extend((0..20).map(|index| video_frame(index * 3_000, false, vec![0xbb])));
    let later = Encoder {
        first_90k: 90_000,
        ..Encoder::default()
    };
    units.extend(later.media(5.0));
    let (packager, out) = run(4, units);
    let read = segments(&out);
    check_always(&read, 4);
    assert_eq!(packager.dropped(), 40);
    assert!(read[0].starts_with_key());
    assert_eq!((video(&read)[0].dts, audio(&read)[0].dts), (0, 0));
}

#[test]
fn the_wait_for_the_other_track_is_bounded_and_costs_nothing() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    let encoder = Encoder {
        audio: false,
        ..Encoder::default()
    };
    let sent = encoder.units(0.9);
    for unit in sent {
        packager.push(unit, NOON_MS + 10, &mut out);
    }
    assert!(out.is_empty());
    packager.tick(NOON_MS + 1_009, &mut out);
    assert!(out.is_empty());
    packager.tick(NOON_MS + 1_010, &mut out);
    assert!(!out.is_empty());
    packager.end_session(&mut out);
    assert_eq!(video(&segments(&out)).len(), 27);
    let Output::Init(init) = &out[0] else {
        panic!("init comes first")
    };
    assert!(init.info.has_video && !init.info.has_audio);
}

#[test]
fn the_second_track_ends_the_wait_at_once() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    for unit in Encoder::default().units(0.5) {
        packager.push(unit, NOON_MS, &mut out);
    }
    let Output::Init(init) = &out[0] else {
        panic!("init comes first")
    };
    assert!(init.info.has_video && init.info.has_audio);
    assert_eq!(init.info.codecs, "avc1.640028,mp4a.40.2");
    assert!(
        out.iter()
            .filter(|output| matches!(output, Output::Part(_)))
            .count()
            >= 2
    );
}

#[test]
fn a_flood_while_waiting_ends_the_wait() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    packager.push(Unit::VideoConfig(video_config(None, 40)), NOON_MS, &mut out);
    for index in 0..20 {
        packager.push(
            video_frame(index * 9_000, index == 0, vec![0; 1 << 20]),
            NOON_MS,
            &mut out,
        );
    }
    assert!(!out.is_empty(), "16 MiB may wait, not more");
}

#[test]
fn late_audio_joins_with_the_next_segment_and_one_discontinuity() {
    let encoder = Encoder {
        audio_from_s: 3.0,
        ..Encoder::default()
    };
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    for (index, unit) in encoder.units(10.0).into_iter().enumerate() {
        packager.push(unit, NOON_MS + index as i64 * 33, &mut out);
    }
    packager.end_session(&mut out);
    let read = segments(&out);
    check_always(&read, 4);
    let breaks: Vec<bool> = read.iter().map(ReadSegment::discontinuity).collect();
    assert_eq!(breaks, [false, false, true, false, false]);
    assert_eq!(
        read.iter().map(ReadSegment::init).collect::<Vec<_>>(),
        [0, 0, 1, 1, 1]
    );
    assert_eq!(video(&read).len(), 300);
    assert!(audio(&read)[0].dts.abs_diff(4 * 48_000) < 1_100);
}

#[test]
fn late_video_cuts_at_its_first_key_frame() {
    let audio = Encoder {
        video: false,
        ..Encoder::default()
    };
    let mut units = audio.units(3.0);
    units.push(Unit::VideoConfig(video_config(Some(30.0), 40)));
    let both = Encoder {
        first_90k: 270_000,
        ..Encoder::default()
    };
    units.extend(both.media(4.0));
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    for (index, unit) in units.into_iter().enumerate() {
        packager.push(unit, NOON_MS + index as i64 * 30, &mut out);
    }
    packager.end_session(&mut out);
    let read = segments(&out);
    check_always(&read, 4);
    let breaks: Vec<usize> = (0..read.len())
        .filter(|&index| read[index].discontinuity())
        .collect();
    assert_eq!(breaks.len(), 1);
    assert!(read[breaks[0]].starts_with_key());
    assert_eq!(video(&read).len(), 120);
    assert_eq!(video(&read)[0].dts, 270_000);
}

#[test]
fn a_changed_configuration_is_one_discontinuity_and_a_repeated_one_is_none() {
    let encoder = Encoder::default();
    let mut units = encoder.units(4.0);
    units.extend(encoder.configs());
    units.extend(
        Encoder {
            first_90k: 360_000,
            ..Encoder::default()
        }
        .media(4.0),
    );
    units.push(Unit::VideoConfig(video_config(Some(30.0), 41)));
    units.extend(
        Encoder {
            first_90k: 720_000,
            ..Encoder::default()
        }
        .media(4.0),
    );
    units.push(Unit::AudioConfig(audio_config(44_100)));
    let changed = Encoder {
        first_90k: 1_080_000,
        sample_rate: 44_100,
        ..Encoder::default()
    };
    units.extend(changed.media(4.0));
    let (packager, out) = run(4, units);
    let read = segments(&out);
    let breaks: Vec<bool> = read.iter().map(ReadSegment::discontinuity).collect();
    let inits: Vec<u32> = read.iter().map(ReadSegment::init).collect();
    assert_eq!(
        breaks.iter().filter(|&&broken| broken).count(),
        2,
        "{breaks:?}"
    );
    assert_eq!(inits.iter().max(), Some(&2));
    assert_eq!(video(&read).len(), 480);
    assert_eq!(packager.dropped(), 0);
}

#[test]
fn audio_that_lags_is_neither_lost_nor_overlapping() {
    for audio_lag_s in [0.1, 0.45, 0.9, -0.5] {
        let read = pack(
            4,
            Encoder {
                audio_lag_s,
                ..Encoder::default()
            }
            .units(10.0),
        );
        let samples = audio(&read);
        assert_eq!(samples.len(), 468, "lag {audio_lag_s}");
        assert!(
            samples
                .windows(2)
                .all(|pair| pair[0].dts + 1_024 == pair[1].dts)
        );
        assert_eq!(video(&read).len(), 300);
        check_full_parts(&read);
    }
}

#[test]
fn when_video_stalls_audio_continues() {
    let mut units = Encoder::default().units(3.0);
    let silent = Encoder {
        video: false,
        first_90k: 270_000,
        ..Encoder::default()
    };
    units.extend(silent.media(5.0));
    units.extend(
        Encoder {
            first_90k: 720_000,
            ..Encoder::default()
        }
        .media(3.0),
    );
    let read = pack(4, units);
    assert!(
        read.iter()
            .flat_map(|segment| &segment.parts)
            .any(|part| part.video.is_empty())
    );
    assert_eq!(video(&read).len(), 180);
    assert!(read.iter().all(|segment| !segment.discontinuity()));
    let resumed = &video(&read)[90];
    assert!(resumed.dts.abs_diff(720_000) < 5_000, "{}", resumed.dts);
}

#[test]
fn slow_and_irregular_frames() {
    // Seconds between frames; with and without audio.
    let patterns: [&[f64]; 5] = [
        &[0.5],
        &[2.0],
        &[0.033, 0.033, 0.9],
        &[0.033, 0.2, 0.05],
        &[0.001],
    ];
    for pattern in patterns {
        for with_audio in [true, false] {
            let mut units = vec![Unit::VideoConfig(video_config(None, 40))];
            let mut timed = vec![];
            let mut time_s = 0.0;
            for (index, step) in pattern.iter().cycle().enumerate() {
                if time_s > 20.0 {
                    break;
                }
                timed.push((
                    time_s,
                    video_frame((time_s * 90_000.0) as i64, index % 10 == 0, vec![1]),
                ));
                time_s += step;
            }
            let video_frames = timed.len();
            if with_audio {
                units.push(Unit::AudioConfig(audio_config(48_000)));
                let frames = (0..(time_s * 48_000.0 / 1_024.0) as i64).map(|index| {
                    (
                        index as f64 * 1_024.0 / 48_000.0,
                        frame(index * 1_920, vec![2]),
                    )
                });
                timed.extend(frames);
                timed.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            units.extend(timed.into_iter().map(|(_, unit)| unit));
            let read = pack(4, units);
            assert_eq!(video(&read).len(), video_frames, "{pattern:?} {with_audio}");
            let most = read
                .iter()
                .map(|segment| segment.parts.len())
                .max()
                .unwrap();
            assert!(most <= 60, "{most} parts in a segment");
        }
    }
}

#[test]
fn a_flood_of_frames_makes_bounded_parts() {
    let mut units = vec![Unit::VideoConfig(video_config(None, 40))];
    units.extend((0..100_000).map(|index| video_frame(0, index == 0, vec![1])));
    let read = pack(4, units);
    let parts: usize = read.iter().map(|segment| segment.parts.len()).sum();
    assert!(parts < 20, "{parts}");
}
