//! Placeholders to show while an image loads: BlurHash (<https://blurha.sh>) and ThumbHash
//! (<https://evanw.github.io/thumbhash/>). The former follows its "Algorithm.md".
//!
//! Both keep the lowest frequencies of a cosine transform, quantised to a few bits each.

use std::f64::consts::PI;

use base64::{Engine, engine::general_purpose::STANDARD};
use sluice_media::{
    format::Format,
    task::{Failure, Limits, OutputFacts, Placeholder},
};

use super::{Raster, vips};

/// ThumbHash takes no more, and neither hash would gain by it.
const LONG_EDGE: u32 = 100;

/// The hash of a page as ASCII text: a BlurHash as it is, a ThumbHash in base64.
pub fn placeholder(
    source: Format,
    page: u32,
    style: Placeholder,
    input: &[u8],
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let raster = vips::raster(source, page, input, limits, LONG_EDGE)?;
    let text = match style {
        Placeholder::BlurHash => blur_hash(&raster),
        Placeholder::ThumbHash => STANDARD.encode(thumb_hash(&raster)),
    };
    let facts = OutputFacts::of(None, text.len());
    Ok((facts, text.into_bytes()))
}

/// A value per pixel, rows from the top.
struct Channel {
    width: usize,
    height: usize,
    values: Vec<f64>,
}

impl Channel {
    fn new(raster: &Raster, value: impl FnMut(&[u8]) -> f64) -> Self {
        Self {
            width: raster.width as usize,
            height: raster.height as usize,
            values: raster
                .pixels
                .chunks_exact(usize::from(raster.bands))
                .map(value)
                .collect(),
        }
    }

    /// Returns the share in the image of the cosine with `cx` half waves across and `cy` down: the mean of their
    /// product.
    fn frequency(&self, cx: usize, cy: usize, phase: f64) -> f64 {
        let wave = |length: usize, half_waves: usize| -> Vec<f64> {
            let step = PI * half_waves as f64 / length as f64;
            (0..length)
                .map(|at| (step * (at as f64 + phase)).cos())
                .collect()
        };
        let (across, down) = (wave(self.width, cx), wave(self.height, cy));
        let sum: f64 = self
            .values
            .chunks_exact(self.width)
            .zip(&down)
            .map(|(row, down)| {
                let row: f64 = row
                    .iter()
                    .zip(&across)
                    .map(|(value, wave)| value * wave)
                    .sum();
                row * down
            })
            .sum();
        sum / self.values.len() as f64
    }
}

/// Nearest whole number, halves upwards, as the reference implementations in JavaScript round.
fn rounded(value: f64) -> f64 {
    (value + 0.5).floor()
}

/// Four waves along the longer side and three along the shorter; four both ways in a square.
fn blur_hash(raster: &Raster) -> String {
    let (nx, ny) = match raster.width.cmp(&raster.height) {
        std::cmp::Ordering::Greater => (4, 3),
        std::cmp::Ordering::Less => (3, 4),
        std::cmp::Ordering::Equal => (4, 4),
    };
    let channels: [Channel; 3] =
        [0, 1, 2].map(|band| Channel::new(raster, |pixel| linear(over_white(pixel, band))));
    let factors: Vec<[f64; 3]> = (0..nx * ny)
        .map(|index| {
            let (cx, cy) = (index % nx, index / nx);
            let scale = if index == 0 { 1.0 } else { 2.0 };
            [0, 1, 2].map(|band: usize| channels[band].frequency(cx, cy, 0.0) * scale)
        })
        .collect();
    let (average, details) = factors.split_first().expect("at least twelve factors");

    let largest = details
        .iter()
        .flatten()
        .fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let step = (largest * 166.0 - 0.5).floor().clamp(0.0, 82.0);
    let scale = (step + 1.0) / 166.0;

    let mut hash = String::new();
    push_base83(&mut hash, ((nx - 1) + (ny - 1) * 9) as u32, 1);
    push_base83(&mut hash, step as u32, 1);
    let [red, green, blue] = average.map(|value| u32::from(gamma(value)));
    push_base83(&mut hash, red << 16 | green << 8 | blue, 4);
    for detail in details {
        let [red, green, blue] = detail.map(|value| {
            let root = (value / scale).abs().sqrt().copysign(value);
            (root * 9.0 + 9.5).floor().clamp(0.0, 18.0) as u32
        });
        push_base83(&mut hash, (red * 19 + green) * 19 + blue, 2);
    }
    hash
}

/// A transparent pixel shows white, as it does where such an image is put on a page.
fn over_white(pixel: &[u8], band: usize) -> f64 {
    let alpha = f64::from(pixel.get(3).copied().unwrap_or(255)) / 255.0;
    f64::from(pixel[band]) * alpha + 255.0 * (1.0 - alpha)
}

/// sRGB, 0 to 255, to linear light, 0 to 1 (IEC 61966-2-1).
fn linear(value: f64) -> f64 {
    let value = value / 255.0;
    if value <= 0.040_45 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

fn gamma(value: f64) -> u8 {
    let value = value.clamp(0.0, 1.0);
    let encoded = if value <= 0.003_130_8 {
        value * 12.92
    } else {
        1.055 * value.powf(1.0 / 2.4) - 0.055
    };
    (encoded * 255.0 + 0.5) as u8
}

fn push_base83(text: &mut String, value: u32, digits: u32) {
    const ALPHABET: &[u8; 83] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~";
    for place in (0..digits).rev() {
        let digit = value / 83u32.pow(place) % 83;
        text.push(char::from(ALPHABET[digit as usize]));
    }
}

/// Spectrum of a channel: its mean, and its frequencies as shares of the largest one.
struct Spectrum {
    mean: f64,
    /// 0 to 1, where ½ is none.
    details: Vec<f64>,
    largest: f64,
}

impl Spectrum {
    /// Transforms a channel; of `nx` × `ny` frequencies those above the diagonal.
    fn of(channel: &Channel, nx: usize, ny: usize) -> Self {
        let mut details = Vec::new();
        for cy in 0..ny {
            let row = (0..).take_while(|cx| cx * ny < nx * (ny - cy));
            details.extend(
                row.filter(|cx| cx + cy > 0)
                    .map(|cx| channel.frequency(cx, cy, 0.5)),
            );
        }
        let largest = details
            .iter()
            .fold(0.0, |largest: f64, value| largest.max(value.abs()));
        if largest > 0.0 {
            for value in &mut details {
                *value = 0.5 + 0.5 / largest * *value;
            }
        }
        Self {
            mean: channel.frequency(0, 0, 0.5),
            details,
            largest,
        }
    }
}

fn thumb_hash(raster: &Raster) -> Vec<u8> {
    let alpha_of = |pixel: &[u8]| f64::from(pixel.get(3).copied().unwrap_or(255)) / 255.0;
    let alpha = Channel::new(raster, alpha_of);
    let opacity: f64 = alpha.values.iter().sum();
    let has_alpha = opacity < alpha.values.len() as f64;
    let average = [0, 1, 2].map(|band: usize| {
        let weighted = Channel::new(raster, |pixel| {
            alpha_of(pixel) * f64::from(pixel[band]) / 255.0
        });
        let sum: f64 = weighted.values.iter().sum();
        if opacity > 0.0 { sum / opacity } else { 0.0 }
    });
    // Transparent pixels take the average colour, so that they add no frequency.
    let colour = |pixel: &[u8]| {
        let alpha = alpha_of(pixel);
        [0, 1, 2].map(|band: usize| {
            average[band] * (1.0 - alpha) + alpha * f64::from(pixel[band]) / 255.0
        })
    };
    let lightness = Channel::new(raster, |pixel| colour(pixel).iter().sum::<f64>() / 3.0);
    let yellow_blue = Channel::new(raster, |pixel| {
        let [red, green, blue] = colour(pixel);
        (red + green) / 2.0 - blue
    });
    let red_green = Channel::new(raster, |pixel| {
        let [red, green, _] = colour(pixel);
        red - green
    });

    let (across, down) = frequencies(raster, if has_alpha { 5.0 } else { 7.0 });
    let lightness = Spectrum::of(&lightness, across.max(3), down.max(3));
    let yellow_blue = Spectrum::of(&yellow_blue, 3, 3);
    let red_green = Spectrum::of(&red_green, 3, 3);
    let alpha = has_alpha.then(|| Spectrum::of(&alpha, 5, 5));

    let bits = |value: f64| rounded(value) as u32;
    let is_landscape = raster.width > raster.height;
    let colours = bits(63.0 * lightness.mean)
        | bits(31.5 + 31.5 * yellow_blue.mean) << 6
        | bits(31.5 + 31.5 * red_green.mean) << 12
        | bits(31.0 * lightness.largest) << 18
        | u32::from(has_alpha) << 23;
    let shape = (if is_landscape { down } else { across }) as u32
        | bits(63.0 * yellow_blue.largest) << 3
        | bits(63.0 * red_green.largest) << 9
        | u32::from(is_landscape) << 15;
    let mut hash = colours.to_le_bytes()[..3].to_vec();
    hash.extend_from_slice(&shape.to_le_bytes()[..2]);
    if let Some(alpha) = &alpha {
        hash.push((bits(15.0 * alpha.mean) | bits(15.0 * alpha.largest) << 4) as u8);
    }

    let spectra = [
        Some(&lightness),
        Some(&yellow_blue),
        Some(&red_green),
        alpha.as_ref(),
    ];
    let nibbles: Vec<u8> = spectra
        .into_iter()
        .flatten()
        .flat_map(|spectrum| &spectrum.details)
        .map(|value| rounded(15.0 * value) as u8)
        .collect();
    hash.extend(
        nibbles
            .chunks(2)
            .map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 4)),
    );
    hash
}

/// Returns how many frequencies of lightness go across and down: `most` along the longer side.
fn frequencies(raster: &Raster, most: f64) -> (usize, usize) {
    let longer = f64::from(raster.width.max(raster.height));
    let along = |side: u32| (rounded(most * f64::from(side) / longer) as usize).max(1);
    (along(raster.width), along(raster.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pixel = fn(u32, u32) -> [u32; 4];

    fn drawn(width: u32, height: u32, bands: u8, pixel: Pixel) -> Raster {
        let mut pixels = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let bytes = pixel(x, y).map(|value| value.min(255) as u8);
                pixels.extend_from_slice(&bytes[..usize::from(bands)]);
            }
        }
        Raster {
            width,
            height,
            bands,
            pixels,
        }
    }

    /// Returns pixels without a zero frequency, so that none is between two steps.
    fn wild(x: u32, y: u32) -> [u32; 4] {
        [
            x * x * 7 + y * 13 + x * y * 5,
            x * 11 + y * y * 3 + x * y * 2,
            x * y * 7 + x * 5 + y * 17,
            x * x * 3 + y * y * 5 + x * y * 7,
        ]
        .map(|value| value % 256)
    }

    /// Expected values come from reference implementations: BlurHash in C (PyPI's `blurhash-python` 1.2.2), ThumbHash
    /// in JavaScript (npm's `thumbhash` 0.1.1).
    #[test]
    fn equals_the_reference_implementations() {
        let tall: Pixel = |x, y| [x * 37 % 256, y * y % 256, x * y % 256, 255];
        let dot: Pixel = |_, _| [200, 100, 50, 255];
        for (raster, blur, thumb) in [
            (
                drawn(32, 24, 3, wild),
                "L5Ho5wx^9Y-q]~MyHcE4IQIAQUIV",
                "HwgCDYIFRVdCMlQhQhU2U5Z/T/eK",
            ),
            (
                drawn(10, 40, 4, tall),
                "TfDv.PXc2Amle@b1eBe[fMm]e-a~",
                "lfgJKhQCgUl5dYeWT2xosKg=",
            ),
            (
                drawn(1, 1, 3, dot),
                "U~M|T9}=}=}=}=}=}=}=}=}=}=}=}=}=}=}=",
                "Hcs6zzII9wiIh4hwj3CI+AiIgIAICIgA",
            ),
        ] {
            assert_eq!(blur_hash(&raster), blur);
            assert_eq!(STANDARD.encode(thumb_hash(&raster)), thumb);
        }
    }

    #[test]
    fn a_thumb_hash_keeps_transparency() {
        let clear = drawn(20, 18, 4, wild);
        let hidden = drawn(5, 5, 4, |_, _| [10, 20, 30, 0]);
        assert_eq!(
            STANDARD.encode(thumb_hash(&clear)),
            "IAiCDYIHY48mJ0JplQg/vXPPYINTUjRDdA=="
        );
        assert_eq!(
            STANDARD.encode(thumb_hash(&hidden)),
            "AAiCBQAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
        );
    }

    #[test]
    fn a_blur_hash_shows_white_behind_transparency() {
        let hidden = drawn(5, 4, 4, |_, _| [10, 20, 30, 0]);
        let white = drawn(5, 4, 3, |_, _| [255, 255, 255, 255]);
        assert_eq!(blur_hash(&hidden), blur_hash(&white));
    }
}
