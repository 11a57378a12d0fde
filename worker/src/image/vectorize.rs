//! Vectorizes images into SVG by tracing: in colour, or as a black silhouette (`mono`).
//!
//! Tracing takes time by pixels and colours, so drawings are traced at no more than 1024 pixels and photographs at 512;
//! the SVG has the size of its source all the same.

use std::{collections::HashSet, panic::catch_unwind};

use sluice_media::{
    format::Format,
    task::{Failure, FailureCode, Limits, OutputFacts},
};
use vtracer::{ColorImage, Config, Preset};

use super::{Raster, bounds::check_output, vips};

/// Longest side, in pixels, at which drawings and photographs are traced.
const DRAWING_LONG_EDGE: u32 = 1024;
const PHOTO_LONG_EDGE: u32 = 512;
/// Colours, of 32 768, from which on an image counts as a photograph.
const PHOTO_COLOURS: usize = 1500;

/// Traces an image in its colours, or as a silhouette in black.
pub fn vectorize(
    source: Format,
    mono: bool,
    input: &[u8],
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let mut raster = vips::raster(source, 1, input, limits, DRAWING_LONG_EDGE)?;
    let size = upright_size(source, input, limits)?;
    let is_photo = has_many_colours(&raster);
    if is_photo {
        raster = vips::raster(source, 1, input, limits, PHOTO_LONG_EDGE)?;
    }
    let config = if mono {
        blacken(&mut raster);
        Config::from_preset(Preset::Bw)
    } else if is_photo {
        Config::from_preset(Preset::Photo)
    } else {
        Config::from_preset(Preset::Poster)
    };
    let svg = trace(raster, &config, size)?;
    check_output("the SVG", svg.len(), limits)?;
    let facts = OutputFacts {
        width: Some(size.0),
        height: Some(size.1),
        ..OutputFacts::of(Some(Format::Svg), svg.len())
    };
    Ok((facts, svg.into_bytes()))
}

/// Width and height after turning by the camera's orientation.
fn upright_size(source: Format, input: &[u8], limits: &Limits) -> Result<(u32, u32), Failure> {
    let facts = vips::inspect(source, input, limits)?;
    Ok(if facts.orientation >= 5 {
        (facts.height, facts.width)
    } else {
        (facts.width, facts.height)
    })
}

fn trace(raster: Raster, config: &Config, size: (u32, u32)) -> Result<String, Failure> {
    let (width, height) = (raster.width, raster.height);
    let image = ColorImage {
        width: width as usize,
        height: height as usize,
        pixels: with_alpha(raster),
    };
    // The tracer divides by the number of regions, of which an image of a pixel or two has none.
    let traced = catch_unwind(|| config.build().and_then(|pipeline| pipeline.to_svg(&image)));
    let Ok(Ok(svg)) = traced else {
        return Err(Failure::new(
            FailureCode::Impossible,
            "the image could not be traced: it has no shapes",
        ));
    };
    let shapes = svg
        .find("<svg")
        .and_then(|start| svg[start..].split_once('>'))
        .map_or("</svg>", |(_, shapes)| shapes.trim());
    let (shown_width, shown_height) = size;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{shown_width}\" height=\"{shown_height}\" \
         viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\">\n{shapes}\n"
    ))
}

/// Counts colours of five bits a band: noise and smooth shades have thousands, drawings hundreds.
fn has_many_colours(raster: &Raster) -> bool {
    let mut colours = HashSet::new();
    raster
        .pixels
        .chunks_exact(usize::from(raster.bands))
        .any(|pixel| {
            colours.insert([pixel[0] >> 3, pixel[1] >> 3, pixel[2] >> 3]);
            colours.len() > PHOTO_COLOURS
        })
}

/// Makes the subject black and the rest white: what is opaque where something is transparent, else what is darker than
/// the threshold that parts dark and light best.
fn blacken(raster: &mut Raster) {
    let bands = usize::from(raster.bands);
    let is_cut_out = bands == 4 && raster.pixels.chunks_exact(4).any(|pixel| pixel[3] < 128);
    let threshold = darkest_of_light(raster);
    for pixel in raster.pixels.chunks_exact_mut(bands) {
        let is_subject = if is_cut_out {
            pixel[3] >= 128
        } else {
            luma(pixel) < threshold
        };
        pixel.fill(if is_subject { 0 } else { 255 });
        if let Some(alpha) = pixel.get_mut(3) {
            *alpha = 255;
        }
    }
}

/// Otsu's threshold: both sides of it differ from each other as much as they can.
fn darkest_of_light(raster: &Raster) -> u8 {
    let mut counts = [0u64; 256];
    for pixel in raster.pixels.chunks_exact(usize::from(raster.bands)) {
        counts[usize::from(luma(pixel))] += 1;
    }
    let weight = |value: usize| counts[value] as f64;
    let total: f64 = (0..256).map(weight).sum();
    let sum: f64 = (0..256).map(|value| value as f64 * weight(value)).sum();
    let (mut dark, mut dark_sum) = (0.0, 0.0);
    let mut best = (0.0, 128u8);
    for value in 0..=254u8 {
        dark += weight(usize::from(value));
        dark_sum += f64::from(value) * weight(usize::from(value));
        let light = total - dark;
        if dark == 0.0 || light == 0.0 {
            continue;
        }
        let distance = dark_sum / dark - (sum - dark_sum) / light;
        let spread = dark * light * distance * distance;
        if spread > best.0 {
            best = (spread, value + 1);
        }
    }
    best.1
}

/// Rec. 601 luma.
fn luma(pixel: &[u8]) -> u8 {
    let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
    ((299 * red + 587 * green + 114 * blue + 500) / 1000) as u8
}

fn with_alpha(raster: Raster) -> Vec<u8> {
    if raster.bands == 4 {
        return raster.pixels;
    }
    raster
        .pixels
        .chunks_exact(3)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(side: u32, bands: u8, pixel: impl Fn(u32, u32) -> [u8; 4]) -> Raster {
        let mut pixels = Vec::new();
        for y in 0..side {
            for x in 0..side {
                pixels.extend_from_slice(&pixel(x, y)[..usize::from(bands)]);
            }
        }
        Raster {
            width: side,
            height: side,
            bands,
            pixels,
        }
    }

    fn is_inside(x: u32, y: u32) -> bool {
        (16..48).contains(&x) && (16..48).contains(&y)
    }

    #[test]
    fn a_square_becomes_a_shape_in_its_colour_at_the_size_of_the_source() {
        let square = drawn(64, 3, |x, y| match is_inside(x, y) {
            true => [255, 0, 0, 255],
            false => [0, 0, 255, 255],
        });
        let svg = trace(square, &Config::from_preset(Preset::Poster), (640, 320)).expect("an SVG");
        assert!(
            svg.contains("width=\"640\" height=\"320\" viewBox=\"0 0 64 64\""),
            "{svg}"
        );
        assert!(svg.to_lowercase().contains("#ff0000"), "{svg}");
        assert!(svg.to_lowercase().contains("#0000ff"), "{svg}");
        assert_eq!(svg.matches("<svg").count(), 1);
        assert_eq!(Format::sniff(svg.as_bytes()), Some(Format::Svg));
    }

    #[test]
    fn a_silhouette_is_what_is_dark_or_opaque() {
        let mut grey = drawn(64, 3, |x, y| [if is_inside(x, y) { 150 } else { 200 }; 4]);
        blacken(&mut grey);
        let mut cut_out = drawn(64, 4, |x, y| {
            [255, 255, 255, if is_inside(x, y) { 255 } else { 0 }]
        });
        blacken(&mut cut_out);
        for raster in [grey, cut_out] {
            let bands = usize::from(raster.bands);
            let black = raster
                .pixels
                .chunks_exact(bands)
                .filter(|pixel| pixel[0] == 0)
                .count();
            assert_eq!(black, 32 * 32);
            let svg = trace(raster, &Config::from_preset(Preset::Bw), (64, 64)).expect("an SVG");
            assert_eq!(svg.matches("<path").count(), 1, "{svg}");
            assert!(svg.contains("#000000"), "{svg}");
        }
    }

    #[test]
    fn odd_images_are_traced_or_rejected_without_a_panic() {
        let empty = drawn(1, 4, |_, _| [0; 4]);
        let noise = drawn(48, 4, |x, y| {
            let mixed = (x * 7919 + y * 104_729).wrapping_mul(2_654_435_761);
            mixed.to_le_bytes()
        });
        let flat = drawn(8, 3, |_, _| [9; 4]);
        for raster in [empty, noise, flat] {
            for preset in [Preset::Bw, Preset::Poster, Preset::Photo] {
                let _ = trace(raster.clone(), &Config::from_preset(preset), (1, 1));
            }
        }
    }

    #[test]
    fn photographs_are_recognized_by_their_colours() {
        let shades = drawn(64, 3, |x, y| [x as u8 * 4, y as u8 * 4, (x * y) as u8, 255]);
        let drawing = drawn(64, 3, |x, _| [x as u8, 0, 0, 255]);
        assert!(has_many_colours(&shades));
        assert!(!has_many_colours(&drawing));
    }
}
