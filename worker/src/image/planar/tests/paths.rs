//! Both paths draw the same image.

use sluice_media::format::Format;
use sluice_media::task::{Crop, Fit, Gravity, Path, Render, Task};

use super::material::{Jpeg, LIMITS, SAMPLINGS, render};
use crate::image::{ImageProcessor, Raster, vips};

/// Renders a JPEG on both paths; returns the results, and the mean difference per sample.
fn compare(processor: &mut ImageProcessor, jpeg: &[u8], render: &Render, what: &str) -> f64 {
    let [planar, other] =
        [Path::Planar, Path::Vips].map(|path| drawn(processor, jpeg, render, path, what));
    assert_eq!(
        (planar.width, planar.height),
        (other.width, other.height),
        "{what}"
    );
    let sum: u64 = planar
        .pixels
        .iter()
        .zip(&other.pixels)
        .map(|(a, b)| u64::from(a.abs_diff(*b)))
        .sum();
    sum as f64 / planar.pixels.len() as f64
}

fn drawn(
    processor: &mut ImageProcessor,
    jpeg: &[u8],
    render: &Render,
    path: Path,
    what: &str,
) -> Raster {
    let render = Render {
        path,
        ..render.clone()
    };
    let format = render.output.format;
    let task = Task::Render(Box::new(render));
    let (done, outputs) = processor
        .perform(&task, &[jpeg], &LIMITS)
        .unwrap_or_else(|failure| panic!("{what} by {path:?}: {failure}"));
    let facts = &done.outputs[0];
    assert_eq!(facts.format, Some(format), "{what} by {path:?}");
    assert_eq!(facts.bytes, outputs[0].len() as u64, "{what} by {path:?}");
    let raster = vips::raster(format, 1, &outputs[0], &LIMITS, 4096)
        .unwrap_or_else(|failure| panic!("{what} by {path:?} does not decode: {failure}"));
    assert_eq!(
        (facts.width, facts.height),
        (Some(raster.width), Some(raster.height)),
        "{what} by {path:?}"
    );
    raster
}

fn assert_alike(
    processor: &mut ImageProcessor,
    jpeg: &[u8],
    render: &Render,
    most: f64,
    what: &str,
) {
    let difference = compare(processor, jpeg, render, what);
    assert!(difference <= most, "{what}: {difference:.2} levels");
}

#[test]
fn every_sampling_plain_and_progressive_to_every_format() {
    let processor = &mut ImageProcessor::new();
    for sampling in SAMPLINGS {
        for progressive in [false, true] {
            let made = Jpeg {
                sampling,
                progressive,
                ..Jpeg::new(211, 97)
            };
            let jpeg = made.bytes();
            for format in [Format::Jpg, Format::Webp, Format::Avif] {
                for width in [0, 105, 61, 40] {
                    let render = render(format, width, 0, Fit::Inside);
                    assert_alike(
                        processor,
                        &jpeg,
                        &render,
                        2.5,
                        &format!("{made:?} {format:?} {width}"),
                    );
                }
            }
        }
    }
}

#[test]
fn odd_sizes_at_every_scale_of_the_decoder() {
    let processor = &mut ImageProcessor::new();
    for side in 1..=33 {
        for sampling in SAMPLINGS {
            let made = Jpeg {
                sampling,
                ..Jpeg::new(side, (side * 7) % 33 + 1)
            };
            let jpeg = made.bytes();
            for divisor in [1, 2, 3, 6] {
                let width = side.div_ceil(divisor);
                if width * made.height / side < 6 || width < 6 {
                    continue;
                }
                let render = render(Format::Jpg, width, 0, Fit::Inside);
                // Chroma of a few samples is rounded differently; a shift of one pixel would cost ten levels.
                assert_alike(
                    processor,
                    &jpeg,
                    &render,
                    5.0,
                    &format!("{made:?} by {divisor}"),
                );
            }
        }
    }
}

#[test]
fn all_orientations_with_all_turns() {
    let processor = &mut ImageProcessor::new();
    for orientation in 0..=9 {
        let made = Jpeg {
            orientation,
            ..Jpeg::new(120, 70)
        };
        let jpeg = made.bytes();
        for (rotate, flip, flop) in [
            (0, false, false),
            (90, false, false),
            (-90, true, false),
            (180, false, true),
            (270, true, true),
        ] {
            for auto_orient in [true, false] {
                let render = Render {
                    rotate,
                    flip,
                    flop,
                    auto_orient,
                    ..render(Format::Jpg, 35, 33, Fit::Cover)
                };
                let what = format!("{orientation} {rotate} {flip} {flop} {auto_orient}");
                assert_alike(processor, &jpeg, &render, 2.5, &what);
            }
        }
    }
}

/// libvips' filter leans to one side when a result has few pixels, so that these are held against plain means, as near as a
/// sharp filter comes to them.
#[test]
fn tiny_targets_are_the_means_of_what_they_cover() {
    let processor = &mut ImageProcessor::new();
    for orientation in [1, 3, 6, 8] {
        let made = Jpeg {
            orientation,
            ..Jpeg::new(301, 199)
        };
        let jpeg = made.bytes();
        let source = vips::raster(Format::Jpg, 1, &jpeg, &LIMITS, 4096).expect("an image");
        for (width, height) in [(1, 1), (1, 2), (2, 1), (3, 3), (1, 40), (40, 1), (7, 5)] {
            let what = format!("{orientation} {width} × {height}");
            let mut fill = render(Format::Jpg, width, height, Fit::Fill);
            fill.output.quality = 100;
            let tiny = drawn(processor, &jpeg, &fill, Path::Planar, &what);
            assert_eq!((tiny.width, tiny.height), (width, height), "{what}");
            let means = means(&source, width, height);
            for (found, mean) in tiny.pixels.iter().zip(means) {
                assert!(
                    (f64::from(*found) - mean).abs() < 6.0,
                    "{what}: {found} {mean}"
                );
            }
        }
    }
}

/// The mean of each cell of a grid over an image of three bands.
fn means(source: &Raster, width: u32, height: u32) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); (width * height * 3) as usize];
    for (place, level) in source.pixels.iter().enumerate() {
        let (pixel, band) = (place as u32 / 3, place as u32 % 3);
        let column = pixel % source.width * width / source.width;
        let row = pixel / source.width * height / source.height;
        let (sum, count) = &mut sums[((row * width + column) * 3 + band) as usize];
        *sum += f64::from(*level);
        *count += 1.0;
    }
    sums.into_iter().map(|(sum, count)| sum / count).collect()
}

#[test]
fn crops_and_covers_with_a_focal_point() {
    let processor = &mut ImageProcessor::new();
    let crop = |left, top, width, height| {
        Some(Crop {
            left,
            top,
            width,
            height,
        })
    };
    for orientation in 1..=8 {
        let made = Jpeg {
            orientation,
            ..Jpeg::new(240, 160)
        };
        let jpeg = made.bytes();
        for cut in [None, crop(13, 7, 90, 77), crop(100, 50, 1000, 1000)] {
            for (x, y) in [(0.0, 0.0), (0.5, 0.5), (0.2, 0.9), (1.0, 0.5)] {
                let mut render = render(Format::Jpg, 40, 30, Fit::Cover);
                render.crop = cut;
                let resize = render.resize.as_mut().expect("it is asked for");
                resize.gravity = Gravity::Point { x, y };
                let what = format!("{orientation} {cut:?} {x} {y}");
                assert_alike(processor, &jpeg, &render, 3.0, &what);
            }
        }
    }
}

#[test]
fn full_chroma_from_quality_90_on() {
    let processor = &mut ImageProcessor::new();
    let jpeg = Jpeg::new(161, 119).bytes();
    for format in [Format::Jpg, Format::Webp, Format::Avif] {
        let mut render = render(format, 81, 0, Fit::Inside);
        render.output.quality = 92;
        assert_alike(processor, &jpeg, &render, 2.0, &format!("{format:?}"));
    }
}
