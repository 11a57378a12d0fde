//! The planar path: JPEG → planes at a DCT scale → resized planes → JPEG, WebP or AVIF.

use sluice_media::task::{Failure, Limits, OutputFacts, Render};

/// Reused codecs and buffers of the planar path.
pub struct Planar {}

impl Planar {
    pub fn new() -> Self {
        Self {}
    }

    /// Renders `input`, or answers `None` when the request or the image is not for this path and libvips is to render it.
    pub fn try_render(
        &mut self,
        _render: &Render,
        _input: &[u8],
        _limits: &Limits,
    ) -> Option<Result<(OutputFacts, Vec<u8>), Failure>> {
        None
    }
}

impl Default for Planar {
    fn default() -> Self {
        Self::new()
    }
}
