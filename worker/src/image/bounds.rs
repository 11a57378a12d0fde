//! Limits of pixels and result bytes (`image_workers.max_megapixels`, `image_workers.max_output`) and the failure of
//! damaged files.

use sluice_media::{
    format::Format,
    task::{Failure, FailureCode, Limits},
};

/// Checks one page of pixels before it is decoded.
pub fn check_pixels(width: u32, height: u32, limits: &Limits) -> Result<(), Failure> {
    if u64::from(width) * u64::from(height) > limits.max_pixels {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the image has {width} × {height} pixels; at most {} megapixels are taken (image_workers.max_megapixels)",
                limits.max_pixels / 1_000_000
            ),
        ));
    }
    Ok(())
}

/// Checks a result, or what there is of it; `what` names it: `the SVG`.
pub fn check_output(what: &str, bytes: usize, limits: &Limits) -> Result<(), Failure> {
    if bytes as u64 > limits.max_output_bytes {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "{what} has more than {} bytes (image_workers.max_output)",
                limits.max_output_bytes
            ),
        ));
    }
    Ok(())
}

/// Failure for bytes that do not decode.
pub fn undecodable(format: Format) -> Failure {
    Failure::new(
        FailureCode::Undecodable,
        format!(
            "the bytes do not decode as {}: the file is damaged, cut short, or of a kind that is not read",
            format.name()
        ),
    )
}
