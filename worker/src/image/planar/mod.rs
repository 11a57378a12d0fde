//! Planar path of images, for JPEGs that shrink: JPEG → planes at a DCT scale → resized planes → JPEG, WebP or AVIF.
//!
//! A JPEG holds luma and chroma planes, and so do the results: the steps between (RGB at full size, and back) are left
//! out, which is most of the work. Everything that is not plain, and every image that is corrupt, is left to libvips,
//! so that both paths give the same answers: this one renders or returns nothing.
//!
//! Planes are scaled as they are stored and turned last, when they are small.

mod codec;
mod head;
mod layout;
mod plane;
pub(crate) mod profile;
mod transpose;
pub(crate) mod turn;

#[cfg(test)]
mod tests;

use sluice_media::format::Format;
use sluice_media::geometry::Rect;
use sluice_media::task::{Failure, Limits, OutputFacts, Path, Render};

use self::codec::{Compressor, Decompressor, JpegSource, Refused, Settings, WebpEncoder, YuvImage};
pub use self::head::Head;
use self::layout::Layout;
pub use self::layout::can_render;
use self::plane::{Margin, Plane, Sampling, Scaler};
use self::turn::Orientation;
use super::bounds::check_output;

/// Memory of one plane that is kept for the next image.
const KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Chroma sample without colour.
const NEUTRAL: u8 = 128;

/// Reused codecs and buffers of the planar path.
pub struct Planar {
    decompressor: Decompressor,
    compressor: Compressor,
    webp: WebpEncoder,
    scaler: Scaler,
    decoded: [Plane; 3],
    scaled: Vec<u8>,
    /// Planes of the result.
    planes: [Vec<u8>; 3],
}

impl Planar {
    pub fn new() -> Self {
        Self {
            decompressor: Decompressor::new().expect("a decoder needs only memory"),
            compressor: Compressor::new().expect("an encoder needs only memory"),
            webp: WebpEncoder::new(),
            scaler: Scaler::default(),
            decoded: Default::default(),
            scaled: Vec::new(),
            planes: Default::default(),
        }
    }

    /// Renders `input`, or answers `None` when the request or the image is not for this path and libvips is to render it:
    /// also for an image that is damaged or too large, which libvips then rejects. Fails when the result is too large.
    pub fn try_render(
        &mut self,
        render: &Render,
        input: &[u8],
        limits: &Limits,
    ) -> Option<Result<(OutputFacts, Vec<u8>), Failure>> {
        let head = Head::read(input)?;
        if !can_render(render, &head) {
            return None;
        }
        let source = self.decompressor.open(input, limits.max_pixels).ok()?;
        if (source.width, source.height) != (head.width, head.height) {
            return None;
        }
        let layout = Layout::of(render, &head, source.sampling)?;
        let from = source.sampling;
        decode(source, &layout, &mut self.decoded).ok()?;
        self.scale(&head, from, &layout).ok()?;
        let bytes = self.encode(render, &layout).ok()?;
        for plane in &mut self.decoded {
            plane.keep_at_most(KEPT_BYTES);
        }
        Some(deliver(render, &layout, bytes, limits))
    }

    /// From the decoded planes to those of the result.
    fn scale(&mut self, head: &Head, from: Sampling, layout: &Layout) -> Result<(), Refused> {
        for component in 0..layout.sampling.components() {
            let (width, height) = layout.stored_size(component);
            let plane = &mut self.planes[component];
            if component >= from.components() {
                plane.clear();
                plane.resize(width as usize * height as usize, NEUTRAL);
                continue;
            }
            let decoded = &mut self.decoded[component];
            decoded.extend_edges(true_size(head, layout, from, component));
            decoded.scale_transposed(
                &decoded_window(layout, from, component),
                (width, height),
                &mut self.scaler,
                &mut self.scaled,
            )?;
            let turn = Orientation::TRANSPOSED.then(layout.turn);
            turn.apply(&self.scaled, height as usize, plane);
        }
        Ok(())
    }

    fn encode(&mut self, render: &Render, layout: &Layout) -> Result<Vec<u8>, Refused> {
        let [y, u, v] = &self.planes;
        let image = YuvImage::new(layout.size, layout.sampling, [y, u, v])?;
        let settings = Settings {
            quality: render.output.quality.clamp(1, 100),
            effort: render.output.effort,
        };
        match render.output.format {
            Format::Jpg => self.compressor.encode(&image, settings),
            Format::Webp => self.webp.encode(&image, settings),
            Format::Avif => codec::encode_avif(&image, settings),
            _ => Err(Refused),
        }
    }
}

impl Default for Planar {
    fn default() -> Self {
        Self::new()
    }
}

fn decode(source: JpegSource, layout: &Layout, planes: &mut [Plane; 3]) -> Result<(), Refused> {
    let components = source.sampling.components();
    for (component, plane) in planes.iter_mut().enumerate().take(components) {
        let size = source.plane_size(component, layout.divisor);
        let window = decoded_window(layout, source.sampling, component);
        let scaled = layout.stored_size(component);
        plane.reset(size, Margin::around(&window, size, scaled));
    }
    source.decode(layout.divisor, planes)
}

/// The layout's window in samples of a decoded plane.
fn decoded_window(layout: &Layout, from: Sampling, component: usize) -> Rect {
    let (across, down) = from.pitch(component);
    let (x, y) = (
        f64::from(across * layout.divisor),
        f64::from(down * layout.divisor),
    );
    Rect {
        left: layout.window.left / x,
        top: layout.window.top / y,
        width: layout.window.width / x,
        height: layout.window.height / y,
    }
}

/// The samples of a decoded plane that show something of the image; the rest is padding.
fn true_size(head: &Head, layout: &Layout, from: Sampling, component: usize) -> (u32, u32) {
    let (across, down) = from.pitch(component);
    (
        head.width.div_ceil(across * layout.divisor),
        head.height.div_ceil(down * layout.divisor),
    )
}

fn deliver(
    render: &Render,
    layout: &Layout,
    bytes: Vec<u8>,
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    check_output("the result", bytes.len(), limits)?;
    let facts = OutputFacts {
        bytes: bytes.len() as u64,
        format: Some(render.output.format),
        width: Some(layout.size.0),
        height: Some(layout.size.1),
        pages: 1,
        duration_ms: None,
        applied_quality: None,
        path: Some(Path::Planar),
    };
    Ok((facts, bytes))
}
