//! Planes of the planar path: one component's samples with a margin, chroma sampling, Lanczos scaling.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use sluice_media::geometry::Rect;

use super::Refused;
use super::transpose::transpose;

/// Number of pixels that share one chroma sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// No chroma.
    Grey,
    /// 4:2:0 is 2 across and 2 down.
    Colour { across: u8, down: u8 },
}

impl Sampling {
    pub const FULL: Self = Self::Colour { across: 1, down: 1 };
    pub const HALVED: Self = Self::Colour { across: 2, down: 2 };

    pub fn components(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Colour { .. } => 3,
        }
    }

    /// Pixels across and down per sample of a component.
    pub fn pitch(self, component: usize) -> (u32, u32) {
        match self {
            Self::Colour { across, down } if component > 0 => (across.into(), down.into()),
            _ => (1, 1),
        }
    }

    /// The size rounded up to whole chroma samples.
    pub fn padded(self, (width, height): (u32, u32)) -> (u32, u32) {
        let (across, down) = self.pitch(1);
        (
            width.next_multiple_of(across),
            height.next_multiple_of(down),
        )
    }

    /// The size of a component's plane in an image of that size, which is padded to whole chroma samples: TurboJPEG's rule.
    pub fn plane_size(self, size: (u32, u32), component: usize) -> (u32, u32) {
        if component >= self.components() {
            return (0, 0);
        }
        let (width, height) = self.padded(size);
        let (across, down) = self.pitch(component);
        (width / across, height / down)
    }
}

/// Scales planes; keeps its memory.
///
/// Both directions are scaled as columns, with a transposition between them: that is several times faster than scaling
/// rows, since a vector register holds the same row of many columns.
#[derive(Default)]
pub struct Scaler {
    resizer: Resizer,
    squeezed: Vec<u8>,
    transposed: Vec<u8>,
}

/// Samples of the result to either side that count for one of its samples.
const LANCZOS_REACH: f64 = 3.0;

/// Scales a part of the source, given as left, top, width and height, of which left and width are whole and stay so.
fn squeeze(
    resizer: &mut Resizer,
    source: &ImageRef,
    [left, top, width, height]: [f64; 4],
    size: (u32, u32),
    squeezed: &mut Vec<u8>,
) -> Result<(), Refused> {
    squeezed.resize(size.0 as usize * size.1 as usize, 0);
    let mut target =
        Image::from_slice_u8(size.0, size.1, squeezed, PixelType::U8).map_err(|_| Refused)?;
    let height = height.min(f64::from(source.height()) - top);
    let options = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
        .use_alpha(false)
        .crop(left, top, width, height);
    resizer
        .resize(source, &mut target, &options)
        .map_err(|_| Refused)
}

/// Samples beyond the plane on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin {
    pub left: u32,
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
}

impl Margin {
    /// Returns the margin that scaling `window` to `scaled` reads beyond the edges of a plane of that size.
    pub fn around(window: &Rect, (width, height): (u32, u32), scaled: (u32, u32)) -> Self {
        let (left, right) = beyond(window.left, window.width, width, scaled.0);
        let (top, bottom) = beyond(window.top, window.height, height, scaled.1);
        Self {
            left,
            top,
            right,
            bottom,
        }
    }
}

/// Samples before and after a row or column of `length`. All that the filter reads, within reason: for a result of a few
/// samples that would be several times the plane, and then as much as the window itself hangs over.
fn beyond(start: f64, window: f64, length: u32, scaled: u32) -> (u32, u32) {
    const WITHIN_REASON: f64 = 64.0;
    let end = start + window;
    let overhang = (-start).max(end - f64::from(length));
    let reach = LANCZOS_REACH * (window / f64::from(scaled)).max(1.0);
    let reach = reach.min(overhang.max(WITHIN_REASON));
    let whole = |distance: f64| distance.max(0.0).ceil() as u32;
    (whole(reach - start), whole(end + reach - f64::from(length)))
}

/// A plane inside its margin. The memory is kept from one image to the next.
#[derive(Debug, Default)]
pub struct Plane {
    memory: Vec<u8>,
    width: u32,
    height: u32,
    margin: Margin,
}

impl Plane {
    /// Takes a new size; what the samples are is undefined until they are written.
    pub fn reset(&mut self, (width, height): (u32, u32), margin: Margin) {
        (self.width, self.height, self.margin) = (width, height, margin);
        let needed = self.stride() * self.rows();
        if self.memory.len() < needed {
            self.memory.resize(needed, 0);
        }
    }

    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// From one row to the next.
    pub fn stride(&self) -> usize {
        self.margin.left as usize + self.width as usize + self.margin.right as usize
    }

    fn rows(&self) -> usize {
        self.margin.top as usize + self.height as usize + self.margin.bottom as usize
    }

    /// From the first sample of the plane to the last, margins between the rows included.
    pub fn samples_mut(&mut self) -> &mut [u8] {
        let stride = self.stride();
        let start = self.margin.top as usize * stride + self.margin.left as usize;
        let length = match self.height {
            0 => 0,
            height => stride * (height as usize - 1) + self.width as usize,
        };
        &mut self.memory[start..][..length]
    }

    /// Repeats the edges of the true image, which is at most as large as the plane, over padding and margin.
    pub fn extend_edges(&mut self, (true_width, true_height): (u32, u32)) {
        let stride = self.stride();
        let left = self.margin.left as usize;
        let top = self.margin.top as usize;
        let end = left + true_width.clamp(1, self.width) as usize;
        let bottom = top + true_height.clamp(1, self.height) as usize;
        let rows = self.rows();
        let memory = &mut self.memory[..stride * rows];
        if left > 0 || end < stride {
            for row in memory[top * stride..bottom * stride].chunks_exact_mut(stride) {
                let (first, last) = (row[left], row[end - 1]);
                row[..left].fill(first);
                row[end..].fill(last);
            }
        }
        for row in 0..top {
            memory.copy_within(top * stride..(top + 1) * stride, row * stride);
        }
        for row in bottom..rows {
            memory.copy_within((bottom - 1) * stride..bottom * stride, row * stride);
        }
    }

    /// Scales the part inside `window` (in samples of the plane) to `size`, and gives it transposed: one column after the
    /// other in `scaled`.
    pub fn scale_transposed(
        &self,
        window: &Rect,
        (width, height): (u32, u32),
        scaler: &mut Scaler,
        scaled: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (stride, rows) = (self.stride(), self.rows());
        let left = (window.left + f64::from(self.margin.left)).max(0.0);
        let top = (window.top + f64::from(self.margin.top)).max(0.0);
        let reach = LANCZOS_REACH * (window.width / f64::from(width)).max(1.0);
        let first = (left - reach).floor().max(0.0);
        let last = (left + window.width + reach).ceil().min(stride as f64);
        let whole = ImageRef::new(
            stride as u32,
            rows as u32,
            &self.memory[..stride * rows],
            PixelType::U8,
        )
        .map_err(|_| Refused)?;
        let Scaler {
            resizer,
            squeezed,
            transposed,
        } = scaler;
        let columns = (last - first) as u32;
        squeeze(
            resizer,
            &whole,
            [first, top, last - first, window.height],
            (columns, height),
            squeezed,
        )?;
        transpose(squeezed, columns as usize, transposed);
        let turned =
            ImageRef::new(height, columns, transposed, PixelType::U8).map_err(|_| Refused)?;
        squeeze(
            resizer,
            &turned,
            [0.0, left - first, f64::from(height), window.width],
            (height, width),
            scaled,
        )
    }

    /// Gives memory above `bytes` back.
    pub fn keep_at_most(&mut self, bytes: usize) {
        if self.memory.capacity() > bytes {
            self.memory = Vec::new();
        }
    }
}
