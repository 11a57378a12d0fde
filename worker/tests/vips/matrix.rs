//! Every source to every target: size, alpha, colours, frames, pages, orientation.

use sluice_media::{
    format::Format,
    task::{Encode, FailureCode, Fit, Resize, Task},
};
use sluice_worker::image::{ImageProcessor, vips};

use crate::material::*;

const TARGETS: [Format; 8] = [
    Format::Jpg,
    Format::Png,
    Format::Webp,
    Format::Avif,
    Format::Tiff,
    Format::Gif,
    Format::Heif,
    Format::Jxl,
];

/// Two colours a GIF's dither or a chroma sample may be apart.
const TOLERANCE: u8 = 12;

#[test]
fn every_source_becomes_every_target() {
    let (width, height) = (65, 47);
    for source in TARGETS {
        let input = written(&quarters(width, height), source);
        for target in TARGETS {
            let what = format!("{} to {}", source.name(), target.name());
            let (facts, bytes) =
                vips::render(&request(source, target), &input, None, &LIMITS).expect(&what);
            assert_eq!(Format::sniff(&bytes), Some(target), "{what}");
            assert_eq!(
                (facts.width, facts.height),
                (Some(width), Some(height)),
                "{what}"
            );
            assert_eq!(facts.pages, 1, "{what}");
            let back = vips::raster(target, 1, &bytes, &LIMITS, 1000).expect(&what);
            assert_eq!((back.width, back.height), (width, height), "{what}");
            for (x, y, expected) in [
                (0.25, 0.25, RED),
                (0.75, 0.25, GREEN),
                (0.25, 0.75, BLUE),
                (0.75, 0.75, GREY),
            ] {
                assert_colour(&colour_at(&back, x, y), &expected, TOLERANCE, &what);
            }
        }
    }
}

#[test]
fn formats_that_libvips_does_not_read_go_the_same_way() {
    // Two by two pixels of 24 bits, the bottom row first.
    let mut bmp =
        b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\x18\0".to_vec();
    bmp.extend([0; 24]);
    bmp.extend([200, 60, 40, 128, 128, 128, 0, 0]);
    bmp.extend([30, 30, 220, 60, 180, 30, 0, 0]);
    let mut render = request(Format::Bmp, Format::Webp);
    render.output.lossless = true;
    render.rotate = 90;
    let (facts, bytes) = vips::render(&render, &bmp, None, &LIMITS).unwrap();
    assert_eq!((facts.width, facts.height), (Some(2), Some(2)));
    let back = vips::raster(Format::Webp, 1, &bytes, &LIMITS, 10).unwrap();
    assert_eq!(colour_at(&back, 0.75, 0.25), RED);
    assert_eq!(colour_at(&back, 0.25, 0.25), BLUE);
    let seen = vips::inspect(Format::Bmp, &bmp, &LIMITS).unwrap();
    assert_eq!((seen.width, seen.bands, seen.density_dpi), (2, 3, None));
}

#[test]
fn transparency_lives_where_the_target_has_it_and_is_white_elsewhere() {
    let input = written(&half_transparent(64, 48), Format::Png);
    for target in TARGETS {
        let what = target.name();
        let (_, bytes) =
            vips::render(&request(Format::Png, target), &input, None, &LIMITS).expect(what);
        let back = vips::raster(target, 1, &bytes, &LIMITS, 1000).expect(what);
        let through = colour_at(&back, 0.75, 0.25);
        assert_colour(&colour_at(&back, 0.25, 0.25), &RED, TOLERANCE, what);
        if target == Format::Jpg {
            assert_colour(&through, &[255; 3], TOLERANCE, what);
        } else {
            assert_eq!(back.bands, 4, "{what}");
            assert!(through[3] < 3, "{what}: {through:?}");
        }
    }
}

#[test]
fn animations_keep_frames_delays_and_size() {
    let input = gif(40, 30, 6);
    for target in [Format::Gif, Format::Webp] {
        let mut render = request(Format::Gif, target);
        render.resize = Some(Resize::new(Some(20), Some(20), Fit::Cover));
        render.rotate = 90;
        let (facts, bytes) = vips::render(&render, &input, None, &LIMITS).unwrap();
        assert_eq!(facts.pages, 6);
        let seen = vips::inspect(target, &bytes, &LIMITS).unwrap();
        assert_eq!((seen.width, seen.height, seen.pages), (20, 20, 6));
        assert!(seen.animated);
        assert_eq!(seen.delays, [50, 60, 70, 80, 90, 100]);
        for (page, expected) in [(1, RED), (2, GREEN), (3, BLUE), (4, GREY), (5, RED)] {
            let frame = vips::raster(target, page, &bytes, &LIMITS, 100).unwrap();
            assert_colour(
                &colour_at(&frame, 0.5, 0.5),
                &expected,
                TOLERANCE,
                target.name(),
            );
        }
    }
    let still = request(Format::Gif, Format::Png);
    let (facts, bytes) = vips::render(&still, &input, None, &LIMITS).unwrap();
    assert_eq!((facts.pages, facts.height), (1, Some(30)));
    assert_eq!(
        vips::inspect(Format::Png, &bytes, &LIMITS).unwrap().pages,
        1
    );
}

#[test]
fn a_still_made_of_an_animation_is_one_frame_in_formats_that_move() {
    let mut render = request(Format::Gif, Format::Webp);
    render.animate = false;
    render.rotate = 90;
    let (_, bytes) = vips::render(&render, &gif(20, 40, 3), None, &LIMITS).unwrap();
    let seen = vips::inspect(Format::Webp, &bytes, &LIMITS).unwrap();
    assert_eq!((seen.width, seen.height, seen.pages), (40, 20, 1));
}

#[test]
fn pages_of_documents_are_found_and_missed() {
    let tiff = tiff(&[RED, BLUE].map(|colour| TiffPage {
        width: 8,
        height: 8,
        bits: 8,
        samples: 3,
        photometric: 2,
        pixels: colour.repeat(64),
    }));
    for (format, input, second) in [
        (Format::Pdf, pdf(), [0, 255, 0]),
        (Format::Tiff, tiff, BLUE),
    ] {
        let page = vips::raster(format, 2, &input, &LIMITS, 400).unwrap();
        assert_colour(&colour_at(&page, 0.5, 0.5), &second, 2, format.name());
        let missed = vips::raster(format, 3, &input, &LIMITS, 400).unwrap_err();
        assert_eq!(missed.code, FailureCode::Impossible, "{missed}");
        assert!(missed.message.contains("has 2"), "{missed}");
    }
    let one = written(&quarters(8, 8), Format::Png);
    assert!(vips::raster(Format::Png, 7, &one, &LIMITS, 100).is_ok());
}

#[test]
fn vectors_are_drawn_at_the_size_asked_for() {
    let svg = br##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10"><path fill="#00f" d="M0 0h10v10H0z"/></svg>"##;
    let sized = |width, height, fit| Some(Resize::new(width, height, fit));
    let cases: [(Format, &[u8], _, _); 6] = [
        (Format::Svg, svg, None, (1024, 512)),
        (
            Format::Svg,
            svg,
            sized(Some(333), None, Fit::Inside),
            (333, 167),
        ),
        (
            Format::Svg,
            svg,
            sized(Some(64), Some(64), Fit::Cover),
            (64, 64),
        ),
        (
            Format::Svg,
            svg,
            sized(Some(64), Some(64), Fit::Fill),
            (64, 64),
        ),
        (Format::Pdf, &pdf(), None, (400, 200)),
        (
            Format::Pdf,
            &pdf(),
            sized(Some(1600), None, Fit::Inside),
            (1600, 800),
        ),
    ];
    for (format, input, resize, size) in cases {
        let mut render = request(format, Format::Png);
        render.resize = resize;
        let (facts, _) = vips::render(&render, input, None, &LIMITS).unwrap();
        assert_eq!(
            (facts.width, facts.height),
            (Some(size.0), Some(size.1)),
            "{resize:?}"
        );
    }
    let drawn = vips::raster(Format::Svg, 1, svg, &LIMITS, 200).unwrap();
    assert_eq!((drawn.width, drawn.height, drawn.bands), (200, 100, 4));
    assert_eq!(
        colour_at(&drawn, 0.48, 0.5),
        [0, 0, 255, 255],
        "a sharp edge"
    );
    assert_eq!(colour_at(&drawn, 0.51, 0.5)[3], 0, "a sharp edge");
}

#[test]
fn all_orientations_come_upright_with_and_without_a_resize() {
    let upright = quarters(64, 48);
    for orientation in 1..=8u8 {
        let stored = stored_as(orientation);
        let jpeg = with_segment(&stored, 0xe1, &exif(orientation));
        for width in [None, Some(32)] {
            let mut render = request(Format::Jpg, Format::Png);
            render.resize = width.map(|width| Resize::new(Some(width), None, Fit::Cover));
            let (facts, bytes) = vips::render(&render, &jpeg, None, &LIMITS).unwrap();
            let (width, height) = (width.unwrap_or(upright.width), width.map_or(48, |_| 24));
            assert_eq!((facts.width, facts.height), (Some(width), Some(height)));
            let back = vips::raster(Format::Png, 1, &bytes, &LIMITS, 100).unwrap();
            let what = format!("orientation {orientation}");
            assert_colour(&colour_at(&back, 0.25, 0.25), &RED, TOLERANCE, &what);
            assert_colour(&colour_at(&back, 0.75, 0.25), &GREEN, TOLERANCE, &what);
            assert_colour(&colour_at(&back, 0.25, 0.75), &BLUE, TOLERANCE, &what);
        }
        let seen = vips::inspect(Format::Jpg, &jpeg, &LIMITS).unwrap();
        assert_eq!(seen.orientation, orientation);
        assert_eq!(seen.exif["Make"], "Canon");
        let mut asis = request(Format::Jpg, Format::Png);
        asis.auto_orient = false;
        let (facts, _) = vips::render(&asis, &jpeg, None, &LIMITS).unwrap();
        assert_eq!(facts.width, Some(seen.width));
    }
}

/// [`quarters`] as a camera of that orientation stores it: the tag says where row 0 and column 0 belong.
fn stored_as(orientation: u8) -> Vec<u8> {
    let upright = quarters(64, 48);
    let (width, height) = if orientation >= 5 { (48, 64) } else { (64, 48) };
    let mut stored = upright.clone();
    (stored.width, stored.height) = (width, height);
    stored.pixels.clear();
    for row in 0..height {
        for column in 0..width {
            let (x, y) = match orientation {
                2 => (63 - column, row),
                3 => (63 - column, 47 - row),
                4 => (column, 47 - row),
                5 => (row, column),
                6 => (63 - row, column),
                7 => (63 - row, 47 - column),
                8 => (row, 47 - column),
                _ => (column, row),
            };
            let start = ((y * upright.width + x) * 3) as usize;
            stored.pixels.extend(&upright.pixels[start..start + 3]);
        }
    }
    written(&stored, Format::Jpg)
}

#[test]
fn a_target_in_bytes_is_met_by_the_best_quality_that_fits() {
    let noisy = noise(256, 256);
    for format in [
        Format::Jpg,
        Format::Webp,
        Format::Avif,
        Format::Png,
        Format::Jxl,
    ] {
        let input = written(&noisy, Format::Png);
        let mut render = request(Format::Png, format);
        render.output.target_bytes = Some(60_000);
        let (facts, bytes) = vips::render(&render, &input, None, &LIMITS).unwrap();
        let quality = facts.applied_quality.expect("a quality was looked for");
        assert!(
            bytes.len() <= 60_000,
            "{}: {} at {quality}",
            format.name(),
            bytes.len()
        );
        render.output.target_bytes = Some(10);
        let (facts, small) = vips::render(&render, &input, None, &LIMITS).unwrap();
        assert!(facts.applied_quality.is_some());
        assert!(small.len() <= bytes.len());
    }
}

fn noise(width: u32, height: u32) -> sluice_worker::image::Raster {
    let mut state = 1u32;
    let mut raster = quarters(width, height);
    for sample in &mut raster.pixels {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *sample = sample.wrapping_add((state >> 26) as u8);
    }
    raster
}

#[test]
fn lossless_targets_give_every_pixel_back() {
    let raster = noise(50, 40);
    let input = written(&raster, Format::Png);
    for format in [Format::Png, Format::Webp, Format::Tiff, Format::Jxl] {
        let mut render = request(Format::Png, format);
        render.output = Encode {
            lossless: true,
            ..Encode::new(format, 80)
        };
        let (_, bytes) = vips::render(&render, &input, None, &LIMITS).unwrap();
        let back = vips::raster(format, 1, &bytes, &LIMITS, 100).unwrap();
        assert_eq!(back, raster, "{}", format.name());
    }
}

#[test]
fn an_image_processor_sends_tasks_where_they_belong() {
    let mut processor = ImageProcessor::new();
    let jpeg = written(&quarters(64, 48), Format::Jpg);
    let task = Task::Render(Box::new(request(Format::Jpg, Format::Webp)));
    let (done, outputs) = processor.perform(&task, &[&jpeg], &LIMITS).unwrap();
    assert_eq!(done.outputs[0].bytes, outputs[0].len() as u64);
    let task = Task::Inspect {
        format: Format::Jpg,
    };
    let (done, outputs) = processor.perform(&task, &[&jpeg], &LIMITS).unwrap();
    assert!(outputs.is_empty());
    let image = done.image.unwrap();
    assert_eq!((image.width, image.height, image.bands), (64, 48, 3));
    assert_eq!((image.bits_per_sample, &*image.colour_space), (8, "srgb"));
}
