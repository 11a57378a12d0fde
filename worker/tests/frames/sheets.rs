//! Storyboards: every picture from its place, and a map that says where it is.

use sluice_media::{
    av::{AvTask, Sheet},
    format::Format,
    task::{Encode, FailureCode, Limits},
};

use super::{
    clips::{LIMITS, can_be_made, clip},
    material::{X264, counted, number, perform, perform_within, pixel, raster},
};
use sluice_worker::image::Raster;

fn sheet(frames: u32, columns: u32, width: u32, format: Format) -> AvTask {
    AvTask::Sheet(Sheet {
        frames,
        columns,
        width,
        output: Encode::new(format, 95),
        image_name: "story board.png".into(),
    })
}

/// One picture of it.
fn cell(board: &Raster, (left, top): (u32, u32), (width, height): (u32, u32)) -> Raster {
    let pixels = (top..top + height)
        .flat_map(|y| (left..left + width).flat_map(move |x| pixel(board, x, y)))
        .collect();
    Raster {
        width,
        height,
        bands: 3,
        pixels,
    }
}

#[test]
fn pictures_stand_where_the_map_says() {
    if !can_be_made() {
        return;
    }
    let clip = counted("board.mp4", X264);
    for format in [Format::Png, Format::Jpg, Format::Webp, Format::Avif] {
        let performed = perform(&sheet(5, 2, 32, format), &clip).expect("a storyboard");
        let board = raster(&performed.outputs[0], format);
        assert_eq!((board.width, board.height), (64, 72));
        let map = String::from_utf8(performed.outputs[1].clone()).expect("text");
        let mut cues = map
            .strip_prefix("WEBVTT\n")
            .expect("a signature")
            .split("\n\n");
        for (index, picture, times, place) in [
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
            let shown = number(&cell(&board, place, (32, 24)));
            assert_eq!(shown, picture, "{format:?} {index}");
        }
        assert_eq!(cues.next(), None);
        assert_eq!(performed.done.outputs[1].format, None);
        assert!(performed.shares.is_sorted() && performed.shares.len() >= 5);
    }
}

#[test]
fn a_short_clip_repeats_its_pictures_and_a_giant_is_refused() {
    if !can_be_made() {
        return;
    }
    let clip = counted("short.mkv", &format!("{X264} -frames:v 2"));
    let performed = perform(&sheet(6, 9, 999, Format::Png), &clip).expect("a storyboard");
    let board = raster(&performed.outputs[0], Format::Png);
    assert_eq!((board.width, board.height), (6 * 64, 48));
    let numbers = [0, 1, 2, 3, 4, 5].map(|index| number(&cell(&board, (index * 64, 0), (64, 48))));
    assert_eq!(numbers, [0, 0, 0, 1, 1, 1]);

    let limits = Limits {
        max_pixels: 6 * 64 * 48 - 1,
        ..LIMITS
    };
    let refused = perform_within(&sheet(6, 6, 64, Format::Png), &clip, &limits).err();
    assert_eq!(refused.expect("too large").code, FailureCode::TooLarge);
    let sound = clip_of_sound();
    let refused = perform(&sheet(6, 6, 64, Format::Png), &sound).err();
    assert_eq!(refused.expect("no pictures").code, FailureCode::Impossible);
}

fn clip_of_sound() -> std::path::PathBuf {
    clip("sound.wav", "-f lavfi -i sine=duration=1")
}
