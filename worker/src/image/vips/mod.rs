//! libvips: every image that the planar path does not take.

use sluice_media::{
    format::Format,
    task::{Encode, Failure, FailureCode, ImageFacts, Limits, OutputFacts, Render},
};

use super::Raster;

/// Starts libvips once; only the loaders of the formats we name stay usable.
pub fn start() {}

/// Facts of an image, from its header alone.
pub fn inspect(_source: Format, _input: &[u8], _limits: &Limits) -> Result<ImageFacts, Failure> {
    Err(unbuilt())
}

/// Renders `input`; `mark` is the image of a watermark.
pub fn render(
    _render: &Render,
    _input: &[u8],
    _mark: Option<&[u8]>,
    _limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    Err(unbuilt())
}

/// Decodes a page (1-based) to sRGB, oriented, scaled down so that its long edge is at most `long_edge`.
pub fn raster(
    _source: Format,
    _page: u32,
    _input: &[u8],
    _limits: &Limits,
    _long_edge: u32,
) -> Result<Raster, Failure> {
    Err(unbuilt())
}

/// Writes a raster in a format.
pub fn encode_raster(_raster: &Raster, _encode: &Encode) -> Result<Vec<u8>, Failure> {
    Err(unbuilt())
}

fn unbuilt() -> Failure {
    Failure::new(FailureCode::Internal, "not built yet")
}
