//! Draws a waveform: a column for each extent, anti-aliased, silence as a line.

use sluice_media::task::Colour;

use super::peaks::Extent;
use crate::image::Raster;

/// Red, green, blue, alpha.
const BANDS: usize = 4;
/// A sample's whole range.
const RANGE: f32 = 65_536.0;
/// Silence is a line.
const THINNEST: f32 = 1.0;

/// Draws a column for each extent, full scale at the edges; pixels that are covered in part are transparent in part.
pub fn draw(columns: &[Extent], height: u32, colour: Colour) -> Raster {
    let width = columns.len();
    let mut pixels = [colour.red, colour.green, colour.blue, 0].repeat(width * height as usize);
    for (x, column) in columns.iter().enumerate() {
        let (top, bottom) = span(*column, height);
        let last = (bottom.ceil() as usize).min(height as usize);
        for y in top as usize..last {
            let covered = (bottom.min(y as f32 + 1.0) - top.max(y as f32)).clamp(0.0, 1.0);
            pixels[(y * width + x) * BANDS + 3] = (covered * 255.0).round() as u8;
        }
    }
    Raster {
        width: width as u32,
        height,
        bands: BANDS as u8,
        pixels,
    }
}

/// Returns begin and end of a column, in pixels from the top.
fn span(column: Extent, height: u32) -> (f32, f32) {
    let height = height as f32;
    // Half a step more, so that no sample is in the middle.
    let place = |sample: i16| height * (0.5 - (f32::from(sample) + 0.5) / RANGE);
    let (top, bottom) = (place(column.high), place(column.low));
    let missing = (THINNEST - (bottom - top)).max(0.0) / 2.0;
    let top = (top - missing).clamp(0.0, (height - THINNEST).max(0.0));
    (
        top,
        (bottom + missing).clamp(top, height).max(top + THINNEST),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphas(low: i16, high: i16, height: u32) -> Vec<u8> {
        let colour = Colour {
            red: 1,
            green: 2,
            blue: 3,
        };
        let raster = draw(&[Extent { low, high }], height, colour);
        assert_eq!(raster.pixels[..3], [1, 2, 3]);
        raster.pixels.iter().skip(3).step_by(4).copied().collect()
    }

    #[test]
    fn a_column_reaches_from_its_lowest_to_its_highest_sample() {
        for (low, high, expected) in [
            (i16::MIN, i16::MAX, [255, 255, 255, 255]),
            (0, i16::MAX, [255, 255, 0, 0]),
            (i16::MIN, -1, [0, 0, 255, 255]),
            (-16_384, 16_383, [0, 255, 255, 0]),
            (-8_192, 8_191, [0, 128, 128, 0]),
            (0, 0, [0, 128, 128, 0]),
            (i16::MAX, i16::MAX, [255, 0, 0, 0]),
            (i16::MIN, i16::MIN, [0, 0, 0, 255]),
        ] {
            let found = alphas(low, high, 4);
            let is_near = found
                .iter()
                .zip(expected)
                .all(|(one, other)| one.abs_diff(other) < 2);
            assert!(is_near, "{low} {high}: {found:?}");
        }
        assert_eq!(alphas(-5, 5, 1), [255]);
    }
}
