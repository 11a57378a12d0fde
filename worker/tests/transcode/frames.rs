//! Operations on frames.

use std::path::Path;

use sluice_media::{
    av::{Transcode, VideoWork},
    format::Format,
    task::{Adjust, Encode, Fit, Resize, Watermark},
};
use sluice_worker::image::{ImageProcessor, Raster, vips};

use crate::{
    clips::{AUDIO, H264, alone, can_be_made, clip, folder},
    made::{convert, ffmpeg, perform, to},
};

/// Grey, and the upper left quarter red: 160×90, 10 frames a second, a second.
const CORNER: &str = "-f lavfi -i color=gray:size=160x90:rate=10:duration=1,drawbox=x=0:y=0:w=80:h=45:color=red:t=fill";

fn video(work: VideoWork) -> Transcode {
    Transcode {
        video: Some(work),
        ..to(Format::Mp4)
    }
}

/// The colours of the first frame at some places, which are shares of its size.
fn colours<const N: usize>(path: &Path, places: [(f64, f64); N]) -> ((usize, usize), [[u8; 3]; N]) {
    let probed = crate::made::probed(path);
    let (width, height) = (probed.size().0 as usize, probed.size().1 as usize);
    let bytes = ffmpeg(path, "-frames:v 1 -pix_fmt rgb24 -f rawvideo");
    // ffmpeg turns what is to be turned.
    let (width, height) = match probed
        .stream("video")
        .and_then(|stream| stream["side_data_list"][0]["rotation"].as_i64())
    {
        Some(90 | -90) => (height, width),
        _ => (width, height),
    };
    let colours = places.map(|(x, y)| {
        let (x, y) = ((x * width as f64) as usize, (y * height as f64) as usize);
        let at = (y * width + x) * 3;
        [bytes[at], bytes[at + 1], bytes[at + 2]]
    });
    ((width, height), colours)
}

fn is_near(found: [u8; 3], expected: [u8; 3]) -> bool {
    found
        .iter()
        .zip(expected)
        .all(|(one, other)| one.abs_diff(other) <= 18)
}

const RED: [u8; 3] = [254, 0, 0];
const GREY: [u8; 3] = [128, 128, 128];
const BLACK: [u8; 3] = [0, 0, 0];

#[test]
fn a_turned_clip_is_upright_when_it_is_encoded_and_still_to_be_turned_when_copied() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let plain = clip("corner.mp4", &format!("{CORNER} {H264}"));
    let plain = plain.to_str().expect("a path");
    let corners = [(0.25, 0.25), (0.75, 0.25), (0.25, 0.75), (0.75, 0.75)];
    for rotate in ["90", "180", "270"] {
        let turned = clip(
            &format!("turned-{rotate}.mp4"),
            &format!("-i {plain} -c copy -metadata:s:v:0 rotate={rotate}"),
        );
        let (size, expected) = colours(&turned, corners);
        assert_eq!(size.0 < size.1, rotate != "180");
        for (format, again) in [
            (Format::Mp4, false),
            (Format::Mov, false),
            (Format::Mkv, false),
            (Format::Mp4, true),
        ] {
            let task = Transcode {
                format,
                ..video(VideoWork {
                    again,
                    ..VideoWork::default()
                })
            };
            let made = convert(&turned, task).expect("a conversion");
            let what = format!("{rotate} {format:?} {again}");
            let (found_size, found) = colours(&made.path, corners);
            assert_eq!(found_size, size, "{what}");
            let is_same = found
                .iter()
                .zip(expected)
                .all(|(one, other)| is_near(*one, other));
            assert!(is_same, "{what}: {found:?}, not {expected:?}");
            let probed = made.probed();
            let video_frames = probed.stream("video").expect("frames");
            let is_flagged = video_frames.get("side_data_list").is_some();
            assert_eq!(is_flagged, !again && format != Format::Mkv, "{what}");
        }
    }
}

#[test]
fn sizes_follow_the_fit() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let clip = clip("fits.mp4", &format!("{CORNER} {H264}"));
    let resize = |width, height, fit| Resize::new(Some(width), height, fit);
    for (resize, size, places, expected) in [
        (
            resize(80, None, Fit::Inside),
            (80, 44),
            [(0.25, 0.25), (0.75, 0.75)],
            [RED, GREY],
        ),
        (
            resize(60, Some(60), Fit::Cover),
            (60, 60),
            [(0.25, 0.25), (0.75, 0.25)],
            [RED, GREY],
        ),
        (
            resize(80, Some(80), Fit::Contain),
            (80, 80),
            [(0.5, 0.05), (0.25, 0.35)],
            [BLACK, RED],
        ),
        (
            resize(50, Some(80), Fit::Fill),
            (50, 80),
            [(0.25, 0.25), (0.75, 0.75)],
            [RED, GREY],
        ),
    ] {
        let work = VideoWork {
            resize: Some(resize),
            ..VideoWork::default()
        };
        let made = convert(&clip, video(work)).expect("a conversion");
        let (found_size, found) = colours(&made.path, places);
        assert_eq!(found_size, size, "{resize:?}");
        assert!(
            is_near(found[0], expected[0]) && is_near(found[1], expected[1]),
            "{resize:?}: {found:?}"
        );
        assert_eq!(made.done.outputs[0].width, Some(size.0 as u32));
    }
}

#[test]
fn light_and_colour_change_as_on_images() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let clip = clip(
        "tones.mp4",
        &format!("{CORNER} {H264} -vf scale=out_color_matrix=bt601"),
    );
    let plain = Adjust::default();
    for (adjust, red, grey) in [
        (
            Adjust {
                invert: true,
                ..plain
            },
            [1, 255, 255],
            [127, 127, 127],
        ),
        (
            Adjust {
                grayscale: true,
                ..plain
            },
            [76, 76, 76],
            GREY,
        ),
        (
            Adjust {
                brightness: 0.5,
                ..plain
            },
            [127, 0, 0],
            [64, 64, 64],
        ),
        (
            Adjust {
                saturation: 0.0,
                ..plain
            },
            [76, 76, 76],
            GREY,
        ),
        (
            Adjust {
                sharpen: 1.0,
                ..plain
            },
            RED,
            GREY,
        ),
        (Adjust { blur: 2.0, ..plain }, RED, GREY),
    ] {
        let work = VideoWork {
            adjust,
            ..VideoWork::default()
        };
        let made = convert(&clip, video(work)).expect("a conversion");
        let (_, found) = colours(&made.path, [(0.25, 0.25), (0.75, 0.75)]);
        assert!(
            is_near(found[0], red) && is_near(found[1], grey),
            "{adjust:?}: {found:?}"
        );
    }
}

#[test]
fn a_mark_is_in_its_place_on_every_frame() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let _processor = ImageProcessor::new();
    let clip = clip(
        "marked.mp4",
        &format!("{CORNER} {AUDIO} {H264} -c:a aac -shortest"),
    );
    let blue = Raster {
        width: 20,
        height: 10,
        bands: 4,
        pixels: [0, 0, 255, 255].repeat(200),
    };
    let image = vips::encode_raster(&blue, &Encode::new(Format::Png, 100)).expect("an image");
    let image_path = folder().join("mark.png");
    std::fs::write(&image_path, image).expect("written");
    let mark = |image, text: Option<&str>| {
        let work = VideoWork {
            watermark: Some(Watermark {
                text: text.map(str::to_owned),
                image,
                position: 9,
                opacity: 1.0,
                margin: 10,
                width: Some(40),
            }),
            ..VideoWork::default()
        };
        sluice_media::av::AvTask::Transcode(video(work))
    };
    let made = perform(
        &mark(Some(Format::Png), None),
        &[&clip, &image_path],
        Format::Mp4,
    )
    .expect("a mark");
    // 40×20, ten pixels from the right and the bottom.
    let (_, found) = colours(
        &made.path,
        [
            (130.0 / 160.0, 70.0 / 90.0),
            (100.0 / 160.0, 70.0 / 90.0),
            (0.25, 0.25),
        ],
    );
    assert!(
        is_near(found[0], [0, 0, 255]) && is_near(found[1], GREY) && is_near(found[2], RED),
        "{found:?}"
    );

    let made = perform(&mark(None, Some("HHHH")), &[&clip], Format::Mp4).expect("a mark");
    let bytes = ffmpeg(&made.path, "-pix_fmt gray -f rawvideo");
    let video_frames: Vec<&[u8]> = bytes.chunks_exact(160 * 90).collect();
    assert_eq!(video_frames.len(), 10);
    for video_frame in video_frames {
        let brightest = video_frame.iter().max().expect("pixels");
        assert!(*brightest > 200, "{brightest}");
    }
}
