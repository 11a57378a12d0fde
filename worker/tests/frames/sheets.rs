//! Storyboards: every frame from its place, and a map that says where it is.

use sluice_media::{
    av::{
        AvTask, Sheet,
        ladder::{self, Profile, Rung},
    },
    format::Format,
    task::{Encode, FailureCode, Limits},
};

use super::{
    clips::{self, LIMITS, can_be_made, clip},
    material::{X264, counted, number, perform, perform_within, pixel, raster},
};
use sluice_worker::{av::probe, image::Raster};

fn sheet(frames: u32, columns: u32, width: u32, format: Format) -> AvTask {
    AvTask::Sheet(form(frames, columns, width, format))
}

fn form(frames: u32, columns: u32, width: u32, format: Format) -> Sheet {
    Sheet {
        frames,
        columns,
        width,
        output: Encode::new(format, 95),
        image_name: "story board.png".into(),
    }
}

/// Returns a frame of it.
fn cell(storyboard: &Raster, (left, top): (u32, u32), (width, height): (u32, u32)) -> Raster {
    let pixels = (top..top + height)
        .flat_map(|y| (left..left + width).flat_map(move |x| pixel(storyboard, x, y)))
        .collect();
    Raster {
        width,
        height,
        bands: 3,
        pixels,
    }
}

#[test]
fn frames_are_where_the_map_says() {
    if !can_be_made() {
        return;
    }
    let clip = counted("board.mp4", X264);
    for format in [Format::Png, Format::Jpg, Format::Webp, Format::Avif] {
        let performed = perform(&sheet(5, 2, 32, format), &clip).expect("a storyboard");
        let storyboard = raster(&performed.outputs[0], format);
        assert_eq!((storyboard.width, storyboard.height), (64, 72));
        let map = String::from_utf8(performed.outputs[1].clone()).expect("text");
        let mut cues = map
            .strip_prefix("WEBVTT\n")
            .expect("a signature")
            .split("\n\n");
        for (index, video_frame, times, place) in [
            (0, 3, "00:00:00.000 --> 00:00:00.600", (0, 0)),
            (1, 9, "00:00:00.600 --> 00:00:01.200", (32, 0)),
            (2, 15, "00:00:01.200 --> 00:00:01.800", (0, 24)),
            (3, 21, "00:00:01.800 --> 00:00:02.400", (32, 24)),
            (4, 27, "00:00:02.400 --> 00:00:03.000", (0, 48)),
        ] {
            let cue = cues.next().expect("a cue").trim();
            let expected = format!(
                "{times}\nstory board.png#xywh={},{},32,24",
                place.0, place.1
            );
            assert_eq!(cue, expected);
            let shown = number(&cell(&storyboard, place, (32, 24)));
            assert_eq!(shown, video_frame, "{format:?} {index}");
        }
        assert_eq!(cues.next(), None);
        assert_eq!(performed.done.outputs[1].format, None);
        assert!(performed.shares.is_sorted() && performed.shares.len() >= 5);
    }
}

#[test]
fn a_ladder_that_decodes_draws_the_same_one() {
    if !can_be_made() {
        return;
    }
    let clip = counted("climbed.mp4", X264);
    let taken = perform(&sheet(5, 2, 32, Format::Png), &clip).expect("a storyboard");
    let facts = probe::probe(&clips::input(&clip), &LIMITS).expect("facts");
    let rung = |height| Rung {
        height,
        bitrate: None,
    };
    let profile = Profile::Custom(vec![rung(24), rung(48)]);
    let mut ladder = ladder::plan(&facts, &profile, 2).expect("a plan").ladder;
    ladder.sheet = Some(form(5, 2, 32, Format::Png));
    let drawn = perform(&AvTask::Ladder(ladder.clone()), &clip).expect("a ladder");
    assert_eq!(drawn.done.outputs.len(), 2 + 2);
    assert_eq!(drawn.done.outputs[2..], taken.done.outputs);
    assert_eq!(drawn.outputs[3], taken.outputs[1]);
    let storyboard = raster(&drawn.outputs[2], Format::Png);
    let places = [(0, 0), (32, 0), (0, 24), (32, 24), (0, 48)];
    let numbers = places.map(|place| number(&cell(&storyboard, place, (32, 24))));
    assert_eq!(numbers, [3, 9, 15, 21, 27]);

    // Nothing is decoded of what is copied.
    ladder.video.truncate(1);
    ladder.video[0].copy = true;
    let copied = perform(&AvTask::Ladder(ladder), &clip).expect("a ladder");
    assert_eq!(copied.done.outputs.len(), 1);
    assert!(!copied.outputs[0].is_empty());
    assert!(copied.outputs[1..].iter().all(Vec::is_empty));
}

#[test]
fn a_short_clip_repeats_its_frames_and_a_giant_is_refused() {
    if !can_be_made() {
        return;
    }
    let clip = counted("short.mkv", &format!("{X264} -frames:v 2"));
    let performed = perform(&sheet(6, 9, 999, Format::Png), &clip).expect("a storyboard");
    let storyboard = raster(&performed.outputs[0], Format::Png);
    assert_eq!((storyboard.width, storyboard.height), (6 * 64, 48));
    let numbers =
        [0, 1, 2, 3, 4, 5].map(|index| number(&cell(&storyboard, (index * 64, 0), (64, 48))));
    assert_eq!(numbers, [0, 0, 0, 1, 1, 1]);

    let limits = Limits {
        max_pixels: 6 * 64 * 48 - 1,
        ..LIMITS
    };
    let refused = perform_within(&sheet(6, 6, 64, Format::Png), &clip, &limits).err();
    assert_eq!(refused.expect("too large").code, FailureCode::TooLarge);
    let audio = clip_of_audio();
    let refused = perform(&sheet(6, 6, 64, Format::Png), &audio).err();
    assert_eq!(refused.expect("no frames").code, FailureCode::Impossible);
}

fn clip_of_audio() -> std::path::PathBuf {
    clip("audio.wav", "-f lavfi -i sine=duration=1")
}
