//! Moving images: number, order, delays and total time of their frames.

use sluice_media::{
    av::{Animation, AvTask, Range},
    format::Format,
    task::{Encode, FailureCode, Fit, Limits, Resize},
};
use sluice_worker::image::vips;

use super::{
    clips::{LIMITS, can_be_made},
    material::{Performed, X264, counted, number, perform, perform_within},
};

fn animation(start_s: f64, duration_s: Option<f64>, rate: f32, format: Format) -> Animation {
    Animation {
        range: Range {
            start_s,
            duration_s,
            accurate: true,
        },
        resize: None,
        frames_per_second: rate,
        output: Encode::new(format, 90),
    }
}

/// Delays in milliseconds, and the numbers of the frames.
fn read(performed: &Performed, format: Format) -> (Vec<u32>, Vec<u32>) {
    let bytes = &performed.outputs[0];
    let facts = vips::inspect(format, bytes, &LIMITS).expect("an image");
    let video_frames = (1..=facts.pages)
        .map(|page| number(&vips::raster(format, page, bytes, &LIMITS, 999).expect("a frame")));
    (facts.delays.clone(), video_frames.collect())
}

#[test]
fn frames_and_delays_are_those_of_the_part() {
    if !can_be_made() {
        return;
    }
    let clip = counted("animated.mp4", X264);
    for format in [Format::Gif, Format::Webp] {
        for (start_s, duration_s, rate, video_frames, total_ms) in [
            (1.0, Some(0.5), 10.0, vec![10, 11, 12, 13, 14], 500),
            (0.0, Some(1.0), 3.0, vec![0, 3, 6], 1_000),
            (2.55, None, 10.0, vec![25, 26, 27, 28, 29], 450),
            (2.0, Some(99.0), 4.0, vec![20, 22, 25, 27], 1_000),
            // A frame that is shown twice as long is there once.
            (0.0, Some(0.4), 20.0, vec![0, 1, 2, 3], 400),
            (0.3, Some(0.01), 12.0, vec![3], 10),
        ] {
            let animation = animation(start_s, duration_s, rate, format);
            let performed = perform(&AvTask::Animation(animation), &clip).expect("an animation");
            let facts = &performed.done.outputs[0];
            let name = format!("{format:?} {start_s} {duration_s:?} {rate}");
            assert_eq!(facts.duration_ms, Some(total_ms), "{name}");
            assert_eq!(facts.pages as usize, video_frames.len(), "{name}");
            let (delays, found) = read(&performed, format);
            assert_eq!(found, video_frames, "{name}");
            if video_frames.len() > 1 {
                assert_eq!(
                    u64::from(delays.iter().sum::<u32>()),
                    total_ms,
                    "{name} {delays:?}"
                );
            }
            assert!(performed.shares.is_sorted(), "{:?}", performed.shares);
        }
    }
}

#[test]
fn sizes_follow_the_request_and_limits_hold() {
    if !can_be_made() {
        return;
    }
    let clip = counted("sized.mp4", X264);
    for (width, height, fit, expected) in [
        (Some(32), None, Fit::Inside, (32, 24)),
        (Some(20), Some(20), Fit::Cover, (20, 20)),
        (Some(640), None, Fit::Inside, (64, 48)),
    ] {
        let mut animation = animation(0.0, Some(0.3), 10.0, Format::Gif);
        animation.resize = Some(Resize::new(width, height, fit));
        let performed = perform(&AvTask::Animation(animation), &clip).expect("an animation");
        let facts = &performed.done.outputs[0];
        assert_eq!(
            (facts.width, facts.height),
            (Some(expected.0), Some(expected.1))
        );
        assert_eq!(read(&performed, Format::Gif).1, [0, 1, 2]);
    }
    let frames = Limits {
        max_frames: 9,
        ..LIMITS
    };
    let pixels = Limits {
        max_total_pixels: 64 * 48 * 10 - 1,
        ..LIMITS
    };
    for (limits, setting) in [
        (frames, "image_workers.max_frames"),
        (pixels, "image_workers.max_total_megapixels"),
    ] {
        let task = AvTask::Animation(animation(0.0, Some(1.0), 10.0, Format::Gif));
        let failure = perform_within(&task, &clip, &limits)
            .err()
            .expect("too large");
        assert_eq!(failure.code, FailureCode::TooLarge);
        assert!(failure.message.contains(setting), "{failure}");
    }
    let task = AvTask::Animation(animation(3.0, Some(1.0), 10.0, Format::Gif));
    let failure = perform(&task, &clip).err().expect("behind the end");
    assert_eq!(failure.code, FailureCode::Impossible);
}
