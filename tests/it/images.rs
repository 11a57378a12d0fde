//! Images in, images out, judged by a decoder that is not ours: format, size, orientation, alpha, colours.

mod colour;
mod delivery;
mod example;
mod formats;
mod tools;

use crate::support::{
    Failure,
    images::{BLUE, DecodedImage, Pixel, RED, YELLOW},
};

/// Colours of the four quadrants of every drawn image, upright.
const UPRIGHT: [Pixel; 4] = [RED, crate::support::images::GREEN, BLUE, YELLOW];
/// Difference of a mean colour that lossy encoders and a change of colour space may cause.
const LOSSY: u8 = 8;

/// Fails with the name of the case.
fn expect<T>(case: &str, result: Result<T, Failure>) -> Result<T, Failure> {
    result.map_err(|failure| format!("{case}: {failure}").into())
}

/// Upright, in its colours, with nothing left to turn it by.
fn check_upright(case: &str, image: &DecodedImage) -> Result<(), Failure> {
    assert_eq!(image.orientation, 1, "{case}: still to be turned");
    expect(case, image.check_corners(UPRIGHT, LOSSY))
}
