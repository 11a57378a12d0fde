//! Invariants for every publisher, however it behaves: random units, random clocks, random sessions.

use proptest::prelude::*;

use super::{
    encoder::{Encoder, Stamps, audio_config, frame, video_config, video_frame},
    reader::{audio, check_always, check_full_parts, segments, video},
    *,
};
use crate::unit::Unit;

/// Next step of a hostile or broken publisher.
#[derive(Clone, Debug)]
enum Step {
    VideoFrame { advance_90k: i64, key: bool },
    Frame { advance_90k: i64 },
    VideoConfig(u8),
    AudioConfig(u32),
    Session,
    Lull { ms: i64 },
}

fn advance() -> impl Strategy<Value = i64> {
    prop_oneof![
        20 => 2_000..5_000_i64,
        5 => -9_000..200_000_i64,
        1 => any::<i32>().prop_map(|ms| i64::from(ms) * 90),
        1 => Just(0),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (advance(), prop::bool::weighted(0.05))
            .prop_map(|(advance_90k, key)| Step::VideoFrame { advance_90k, key }),
        30 => advance().prop_map(|advance_90k| Step::Frame { advance_90k }),
        1 => (1..4_u8).prop_map(Step::VideoConfig),
        1 => prop_oneof![Just(48_000), Just(44_100), Just(96_000)].prop_map(Step::AudioConfig),
        1 => Just(Step::Session),
        1 => (0..3_000_i64).prop_map(|ms| Step::Lull { ms }),
    ]
}

/// Runs the steps; outputs, and how many frames were sent.
fn run(steps: &[Step], target_duration_s: u32) -> (Packager, Vec<Output>, usize) {
    let mut packager = Packager::new(settings(target_duration_s), None);
    let mut out = Vec::new();
    let (mut video_90k, mut audio_90k, mut now_ms, mut units) = (0_i64, 0_i64, NOON_MS, 0);
    packager.begin_session(&mut out);
    for (index, step) in (0_u32..).zip(steps) {
        let data = index.to_be_bytes().to_vec();
        let unit = match *step {
            Step::VideoFrame { advance_90k, key } => {
                video_90k += advance_90k;
                video_frame(video_90k, key, data)
            }
            Step::Frame { advance_90k } => {
                audio_90k += advance_90k;
                frame(audio_90k, data)
            }
            Step::VideoConfig(version) => Unit::VideoConfig(video_config(None, version)),
            Step::AudioConfig(rate) => Unit::AudioConfig(audio_config(rate)),
            Step::Session => {
                packager.begin_session(&mut out);
                continue;
            }
            Step::Lull { ms } => {
                now_ms += ms;
                packager.tick(now_ms, &mut out);
                continue;
            }
        };
        units += usize::from(matches!(unit, Unit::Video(_) | Unit::Audio(_)));
        now_ms += 10;
        packager.push(unit, now_ms, &mut out);
    }
    packager.end_session(&mut out);
    (packager, out, units)
}

proptest! {
    #![proptest_config(sampled(300))]

    #[test]
    fn no_publisher_breaks_the_rules(
        steps in prop::collection::vec(step(), 0..800),
        target_duration_s in 2_u32..=6,
    ) {
        let (packager, out, units) = run(&steps, target_duration_s);
        let read = segments(&out);
        check_bare(&read, target_duration_s);
        let mut payloads: Vec<_> = video(&read).into_iter().map(|sample| sample.data).collect();
        prop_assert!(payloads.is_sorted(), "frames in order, each once");
        payloads.extend(audio(&read).into_iter().map(|sample| sample.data));
        let taken = payloads.len() as u64;
        prop_assert_eq!(taken + packager.dropped(), units as u64, "every unit is out or counted");
        payloads.sort();
        payloads.dedup();
        prop_assert_eq!(payloads.len() as u64, taken, "none twice");
        for (previous, segment) in read.iter().zip(read.iter().skip(1)) {
            prop_assert!(previous.init() == segment.init() || segment.discontinuity());
        }
    }

    #[test]
    fn a_regular_publisher_loses_nothing(
        frame_rate in 10.0..120.0_f64,
        gop in 1_usize..400,
        b_frames: bool,
        exact: bool,
        first_90k in -(1_i64 << 40)..(1_i64 << 40),
        seconds in 0.1..15.0_f64,
    ) {
        let stamps = if exact { Stamps::Exact } else { Stamps::Milliseconds };
        let first_90k = first_90k / 90 * 90;
        let encoder = Encoder { frame_rate, gop, b_frames, stamps, first_90k, ..Encoder::default() };
        let mut packager = Packager::new(settings(4), None);
        let mut out = Vec::new();
        packager.begin_session(&mut out);
        for unit in encoder.units(seconds) {
            packager.push(unit, NOON_MS, &mut out);
        }
        packager.end_session(&mut out);
        let read = segments(&out);
        check_always(&read, 4);
        if (20.0..70.0).contains(&frame_rate) {
            check_full_parts(&read);
        }
        prop_assert_eq!(packager.dropped(), 0);
        prop_assert_eq!(video(&read).len(), (seconds * frame_rate).round() as usize);
        prop_assert!(read.iter().all(|segment| !segment.discontinuity()));
        for parts in read.iter().flat_map(|segment| &segment.parts).collect::<Vec<_>>().windows(2) {
            let end_90k = parts[0].part.start_90k + i64::from(parts[0].part.duration_90k);
            prop_assert_eq!(end_90k, parts[1].part.start_90k, "no gap between parts");
        }
    }
}

/// [`check_always`], but for audio across changes of its sample rate, which have clocks of their own.
fn check_bare(read: &[reader::ReadSegment], target_duration_s: u32) {
    for init in read.iter().map(reader::ReadSegment::init) {
        let same: Vec<_> = read
            .iter()
            .filter(|segment| segment.init() == init)
            .cloned()
            .collect();
        check_always(&same, target_duration_s);
    }
}
