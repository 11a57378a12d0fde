//! Requests that the planar path leaves to libvips, and bytes that are wrong.

use proptest::prelude::*;
use sluice_media::format::Format;
use sluice_media::task::{Adjust, FailureCode, Fit, Gravity, Limits, Path, Render, Task};

use super::material::{
    DISPLAY_P3, GAMMA_2_2, Jpeg, LIMITS, SAMPLINGS, SRGB, SRGB_CURVE, profile, render,
    with_profile, with_segment,
};
use crate::image::ImageProcessor;
use crate::image::planar::{Head, Planar};

fn takes(render: &Render, jpeg: &[u8]) -> bool {
    Planar::new().try_render(render, jpeg, &LIMITS).is_some()
}

fn plain() -> Render {
    render(Format::Jpg, 20, 0, Fit::Inside)
}

#[test]
fn effects_canvases_and_growth_are_for_libvips() {
    let jpeg = Jpeg::new(60, 40).bytes();
    assert!(takes(&plain(), &jpeg));
    type Change = fn(&mut Render);
    let cases: [(&str, Change); 16] = [
        ("a source by another name", |it| it.source = Format::Png),
        ("PNG", |it| it.output.format = Format::Png),
        ("JPEG XL", |it| it.output.format = Format::Jxl),
        ("a size in bytes", |it| it.output.target_bytes = Some(1000)),
        ("lossless", |it| it.output.lossless = true),
        ("trim", |it| it.trim = true),
        ("blur", |it| {
            it.adjust = Adjust {
                blur: 1.0,
                ..Adjust::default()
            };
        }),
        ("an odd angle", |it| it.rotate = 45),
        ("metadata", |it| it.keep_metadata = true),
        ("libvips asked for", |it| it.path = Path::Vips),
        ("a canvas", |it| {
            *it = render(Format::Jpg, 20, 20, Fit::Contain);
        }),
        ("attention", |it| {
            *it = render(Format::Jpg, 20, 20, Fit::Cover);
            it.resize.as_mut().unwrap().gravity = Gravity::Smart;
        }),
        ("growth", |it| {
            *it = render(Format::Jpg, 100, 0, Fit::Inside);
            it.resize.as_mut().unwrap().enlarge = true;
        }),
        ("growth on one side", |it| {
            *it = render(Format::Jpg, 100, 20, Fit::Fill);
            it.resize.as_mut().unwrap().enlarge = true;
        }),
        ("a crop beside the image", |it| {
            it.crop = Some(sluice_media::task::Crop {
                left: 60,
                top: 0,
                width: 5,
                height: 5,
            });
        }),
        ("a watermark", |it| {
            it.watermark = Some(sluice_media::task::Watermark {
                text: Some("mine".into()),
                image: None,
                position: 5,
                opacity: 1.0,
                margin: 0,
                width: None,
            });
        }),
    ];
    for (what, change) in cases {
        let mut render = plain();
        change(&mut render);
        assert!(!takes(&render, &jpeg), "{what}");
    }
}

#[test]
fn profiles_are_recognized_by_what_they_do() {
    let jpeg = Jpeg::new(60, 40).bytes();
    let grey = Jpeg {
        sampling: SAMPLINGS[0],
        ..Jpeg::new(60, 40)
    };
    let srgb = profile(SRGB, SRGB_CURVE);
    let cases = [
        ("sRGB", with_profile(&jpeg, &srgb), true),
        (
            "P3",
            with_profile(&jpeg, &profile(DISPLAY_P3, SRGB_CURVE)),
            false,
        ),
        (
            "another curve",
            with_profile(&jpeg, &profile(SRGB, GAMMA_2_2)),
            false,
        ),
        ("cut off", with_profile(&jpeg, &srgb[..300]), false),
        ("empty", with_profile(&jpeg, &[]), false),
        (
            "twice",
            with_profile(&with_profile(&jpeg, &srgb), &srgb),
            false,
        ),
        ("on grey", with_profile(&grey.bytes(), &srgb), false),
        ("FlashPix", with_segment(&jpeg, 0xe2, b"FPXR\0"), true),
    ];
    for (what, jpeg, expected) in cases {
        assert_eq!(takes(&plain(), &jpeg), expected, "{what}");
    }
}

#[test]
fn only_grey_and_ycc_of_eight_bits() {
    let jpeg = Jpeg::new(60, 40).bytes();
    let adobe = |transform: u8| {
        let mut body = b"Adobe\0\x64\0\0\0\0".to_vec();
        body.push(transform);
        with_segment(&without_jfif(&jpeg), 0xee, &body)
    };
    let frame = jpeg.windows(2).position(|it| it == [0xff, 0xc0]).unwrap();
    let changed = |at: usize, value: u8| {
        let mut jpeg = without_jfif(&jpeg);
        let frame = frame - 18;
        jpeg[frame + at] = value;
        jpeg
    };
    let is_ycc = |jpeg: &[u8]| Head::read(jpeg).is_some_and(|head| head.is_ycc);
    assert!(is_ycc(&jpeg));
    assert!(is_ycc(&without_jfif(&jpeg)));
    assert!(is_ycc(&adobe(1)));
    assert!(!is_ycc(&adobe(0)), "RGB");
    assert!(!is_ycc(&changed(4, 12)), "twelve bits");
    assert!(!is_ycc(&changed(1, 0xc3)), "lossless");
    assert!(!is_ycc(&changed(1, 0xc9)), "arithmetic");
    assert!(!is_ycc(&changed(9, 4)), "more components than there are");
}

/// TurboJPEG writes a JFIF segment of 18 bytes first.
fn without_jfif(jpeg: &[u8]) -> Vec<u8> {
    assert_eq!(&jpeg[2..4], [0xff, 0xe0]);
    [&jpeg[..2], &jpeg[20..]].concat()
}

#[test]
fn what_is_damaged_gets_the_answer_of_libvips() {
    let jpeg = Jpeg::new(200, 150).bytes();
    let half = &jpeg[..jpeg.len() / 2];
    assert!(!takes(&plain(), half));
    let task = Task::Render(Box::new(plain()));
    let failure = ImageProcessor::new()
        .perform(&task, &[half], &LIMITS)
        .unwrap_err();
    assert_eq!(failure.code, FailureCode::Undecodable);
}

#[test]
fn limits_hold() {
    let jpeg = Jpeg::new(200, 150).bytes();
    let planar = &mut Planar::new();
    let pixels = |max_pixels| Limits {
        max_pixels,
        ..LIMITS
    };
    assert!(
        planar
            .try_render(&plain(), &jpeg, &pixels(29_999))
            .is_none()
    );
    assert!(
        planar
            .try_render(&plain(), &jpeg, &pixels(30_000))
            .is_some()
    );
    let small = Limits {
        max_output_bytes: 100,
        ..LIMITS
    };
    let failure = planar
        .try_render(&plain(), &jpeg, &small)
        .unwrap()
        .unwrap_err();
    assert_eq!(failure.code, FailureCode::TooLarge);
    assert!(planar.try_render(&plain(), &jpeg, &LIMITS).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// For any bytes, the codecs stay within their buffers and the next image is drawn as ever.
    #[test]
    fn mutated_images_are_drawn_or_left(
        sampling in 0..SAMPLINGS.len(),
        progressive: bool,
        format in prop::sample::select(vec![Format::Jpg, Format::Webp]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        end in any::<prop::sample::Index>(),
        cut: bool,
    ) {
        thread_local! {
            static PLANAR: std::cell::RefCell<Planar> = std::cell::RefCell::new(Planar::new());
        }
        let made = Jpeg { sampling: SAMPLINGS[sampling], progressive, ..Jpeg::new(37, 29) };
        let mut jpeg = made.bytes();
        for (place, value) in changes {
            let place = place.index(jpeg.len());
            jpeg[place] = value;
        }
        if cut {
            jpeg.truncate(end.index(jpeg.len()));
        }
        let asked = render(format, 23, 0, Fit::Inside);
        PLANAR.with_borrow_mut(|planar| {
            let _ = planar.try_render(&asked, &jpeg, &LIMITS);
            assert!(planar.try_render(&asked, &made.bytes(), &LIMITS).is_some());
        });
    }
}
