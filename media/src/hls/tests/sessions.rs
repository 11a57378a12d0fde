//! Several sessions, restarts, and publishers whose clocks jump.

use super::{
    encoder::{Encoder, Stamps, audio_config, frame, video_config, video_frame},
    reader::{ReadSegment, audio, check_always, segments, video},
    *,
};
use crate::unit::Unit;

fn feed(packager: &mut Packager, units: Vec<Unit>, now_ms: i64, out: &mut Vec<Output>) {
    units
        .into_iter()
        .for_each(|unit| packager.push(unit, now_ms, out));
}

#[test]
fn each_session_continues_and_opens_with_one_discontinuity() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    for (session, first_90k) in [(0, 0), (1, 0), (2, 1 << 45), (3, -(1 << 45))] {
        let now_ms = NOON_MS + session * 10_000;
        packager.begin_session(&mut out);
        let encoder = Encoder {
            first_90k,
            name: session as u8,
            ..Encoder::default()
        };
        feed(&mut packager, encoder.units(5.0), now_ms, &mut out);
    }
    packager.end_session(&mut out);

    let read = segments(&out);
    check_always(&read, 4);
    let breaks: Vec<bool> = read.iter().map(ReadSegment::discontinuity).collect();
    let expected: Vec<bool> = (0..12).map(|index| index > 0 && index % 3 == 0).collect();
    assert_eq!(breaks, expected);
    assert_eq!(video(&read).len(), 600);
    assert_eq!(
        out.iter()
            .filter(|output| matches!(output, Output::Init(_)))
            .count(),
        1
    );
    for session in 1..4 {
        let start = read[session * 3].parts[0].part.segment.unwrap();
        assert_eq!(
            start.program_date_time_ms,
            NOON_MS + session as i64 * 10_000
        );
    }
    assert_eq!(
        read[1].parts[0].part.segment.unwrap().program_date_time_ms,
        NOON_MS + 2_000
    );
}

#[test]
fn a_session_without_media_leaves_no_trace() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    for session in 0..3 {
        packager.begin_session(&mut out);
        if session != 1 {
            feed(
                &mut packager,
                Encoder::default().units(2.0),
                NOON_MS,
                &mut out,
            );
        }
    }
    packager.end_session(&mut out);
    packager.end_session(&mut out);
    let breaks: Vec<bool> = segments(&out)
        .iter()
        .map(ReadSegment::discontinuity)
        .collect();
    assert_eq!(breaks, [false, true]);
}

#[test]
fn a_unit_outside_a_session_is_dropped() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.push(video_frame(0, true, vec![1]), NOON_MS, &mut out);
    assert!(out.is_empty());
    assert_eq!(packager.dropped(), 1);
}

#[test]
fn after_a_restart_the_broadcast_continues() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    feed(
        &mut packager,
        Encoder::default().units(5.0),
        NOON_MS,
        &mut out,
    );
    let window = window_of(&out, 4);
    let continuation = window.continuation();
    assert!(
        window.open.as_ref().is_some(),
        "killed in the middle of a segment"
    );

    let mut packager = Packager::new(settings(4), Some(continuation));
    let before = out.len();
    packager.begin_session(&mut out);
    feed(
        &mut packager,
        Encoder::default().units(5.0),
        NOON_MS + 9_000,
        &mut out,
    );
    packager.end_session(&mut out);

    let Output::Init(init) = &out[before] else {
        panic!("a new init section first")
    };
    assert_eq!(init.number, 1);
    out.insert(before, Output::SegmentEnd { msn: 3 });
    let read = segments(&out);
    check_always(&read, 4);
    let breaks: Vec<bool> = read.iter().map(ReadSegment::discontinuity).collect();
    assert_eq!(breaks, [false, false, false, true, false, false]);
}

#[test]
fn a_restart_before_the_first_part_is_still_the_first() {
    let mut packager = Packager::new(settings(4), Some(Window::new(header(4)).continuation()));
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    feed(
        &mut packager,
        Encoder::default().units(3.0),
        NOON_MS,
        &mut out,
    );
    packager.end_session(&mut out);
    assert!(!segments(&out)[0].discontinuity());
}

#[test]
fn the_end_sends_every_frame_and_the_last_lasts_as_long_as_the_one_before() {
    for seconds in [0.034, 0.1, 0.5, 1.95, 2.0, 3.7] {
        let mut packager = Packager::new(settings(4), None);
        let mut out = Vec::new();
        packager.begin_session(&mut out);
        let encoder = Encoder {
            stamps: Stamps::Exact,
            ..Encoder::default()
        };
        feed(&mut packager, encoder.units(seconds), NOON_MS, &mut out);
        packager.end_session(&mut out);
        let read = segments(&out);
        check_always(&read, 4);
        let video_frames = video(&read);
        assert_eq!(video_frames.len(), (seconds * 30.0).round() as usize);
        assert_eq!(video_frames.last().unwrap().duration, 3_000);
        assert_eq!(
            audio(&read).len(),
            (seconds * 48_000.0 / 1_024.0).floor() as usize
        );
        assert!(read.last().unwrap().ended);
    }
}

#[test]
fn a_jump_of_the_clock_is_one_discontinuity_and_loses_nothing() {
    let wrap_90k = (1_i64 << 31) * 90;
    for jump_90k in [wrap_90k, -wrap_90k, 3_600 * 90_000, -2 * 90_000, 2 * 90_000] {
        for jumps_first in [true, false] {
            let first = Encoder::default();
            let mut units = first.units(3.0);
            let second = Encoder {
                first_90k: 270_000 + jump_90k,
                name: b'b',
                ..Encoder::default()
            };
            let mut media = second.media(3.0);
            if jumps_first {
                // A frame that still carries the old clock, after audio has the new one.
                media.insert(2, video_frame(270_000, false, vec![b'x']));
            }
            units.extend(media);
            let mut packager = Packager::new(settings(4), None);
            let mut out = Vec::new();
            packager.begin_session(&mut out);
            feed(&mut packager, units, NOON_MS, &mut out);
            packager.end_session(&mut out);
            let read = segments(&out);
            check_always(&read, 4);
            let breaks = read
                .iter()
                .filter(|segment| segment.discontinuity())
                .count();
            if !jumps_first {
                assert_eq!(breaks, 1, "jump {jump_90k}");
            }
            assert_eq!(video(&read).len(), 180 + usize::from(jumps_first));
            assert!(audio(&read).len() >= 276, "{}", audio(&read).len());
        }
    }
}

#[test]
fn audio_and_frame_stay_together_over_a_jump() {
    let mut units = Encoder {
        stamps: Stamps::Exact,
        ..Encoder::default()
    }
    .units(3.0);
    let jumped = Encoder {
        first_90k: 1 << 40,
        stamps: Stamps::Exact,
        name: b'b',
        ..Encoder::default()
    };
    units.extend(jumped.media(3.0));
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    feed(&mut packager, units, NOON_MS, &mut out);
    packager.end_session(&mut out);
    let read = segments(&out);
    let first_of = |samples: Vec<reader::Sample>| {
        samples
            .into_iter()
            .find(|sample| sample.data[0] == b'b')
            .unwrap()
            .dts
    };
    let video_frame_ms = first_of(video(&read)) / 90;
    let audio_ms = first_of(audio(&read)) / 48;
    assert!(
        video_frame_ms.abs_diff(audio_ms) <= 22,
        "{video_frame_ms} and {audio_ms}"
    );
}

#[test]
fn a_clock_that_always_jumps_makes_bounded_segments() {
    let mut units = vec![Unit::VideoConfig(video_config(None, 40))];
    units.extend((0..3_000).map(|index| video_frame((index % 2) << 40, index == 0, vec![1])));
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    packager.begin_session(&mut out);
    feed(&mut packager, units, NOON_MS, &mut out);
    packager.tick(NOON_MS + 2_000, &mut out);
    packager.end_session(&mut out);
    let read = segments(&out);
    check_always(&read, 4);
    assert!(read.len() <= 1_010, "{} segments of 100 s", read.len());
}

#[test]
fn programme_time_never_goes_back() {
    let mut packager = Packager::new(settings(4), None);
    let mut out = Vec::new();
    for (session, now_ms) in [(0, NOON_MS), (1, NOON_MS - 3_600_000)] {
        packager.begin_session(&mut out);
        let encoder = Encoder {
            name: session,
            ..Encoder::default()
        };
        feed(&mut packager, encoder.units(5.0), now_ms, &mut out);
    }
    packager.end_session(&mut out);
    let times: Vec<i64> = segments(&out)
        .iter()
        .map(|segment| segment.parts[0].part.segment.unwrap().program_date_time_ms)
        .collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
}

#[test]
fn extreme_timestamps_do_no_harm() {
    for extreme in [i64::MAX, i64::MIN, i64::MAX / 2, 0] {
        let mut packager = Packager::new(settings(4), None);
        let mut out = Vec::new();
        packager.begin_session(&mut out);
        packager.push(Unit::VideoConfig(video_config(None, 40)), NOON_MS, &mut out);
        packager.push(Unit::AudioConfig(audio_config(48_000)), NOON_MS, &mut out);
        for value in [extreme, -1, extreme, i64::MAX, i64::MIN, 0, extreme, 90_000] {
            packager.push(frame(value, vec![1]), NOON_MS, &mut out);
            packager.push(video_frame(value, true, vec![2]), NOON_MS, &mut out);
        }
        packager.end_session(&mut out);
        check_always(&segments(&out), 4);
    }
}
