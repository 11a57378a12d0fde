//! Planes: one component's samples, with room around them for what lies beyond an image's edge.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use sluice_media::geometry::Rect;

use super::Refused;

/// How many pixels share one chroma sample.
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

/// Samples beyond the plane on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin {
    pub left: u32,
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
}

impl Margin {
    /// What `window` reaches over the edges of a plane of that size.
    pub fn around(window: &Rect, (width, height): (u32, u32)) -> Self {
        let beyond = |distance: f64| distance.max(0.0).ceil() as u32;
        Self {
            left: beyond(-window.left),
            top: beyond(-window.top),
            right: beyond(window.left + window.width - f64::from(width)),
            bottom: beyond(window.top + window.height - f64::from(height)),
        }
    }
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

    /// Scales the part inside `window` (in samples of the plane) to `size`, one row after the other in `scaled`.
    pub fn scale(
        &self,
        window: &Rect,
        (width, height): (u32, u32),
        resizer: &mut Resizer,
        scaled: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (stride, rows) = (self.stride(), self.rows());
        let length = width as usize * height as usize;
        scaled.resize(length, 0);
        let source = ImageRef::new(
            stride as u32,
            rows as u32,
            &self.memory[..stride * rows],
            PixelType::U8,
        )
        .map_err(|_| Refused)?;
        let mut target =
            Image::from_slice_u8(width, height, scaled, PixelType::U8).map_err(|_| Refused)?;
        let left = (window.left + f64::from(self.margin.left)).clamp(0.0, stride as f64);
        let top = (window.top + f64::from(self.margin.top)).clamp(0.0, rows as f64);
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3))
            .use_alpha(false)
            .crop(
                left,
                top,
                window.width.min(stride as f64 - left),
                window.height.min(rows as f64 - top),
            );
        resizer
            .resize(&source, &mut target, &options)
            .map_err(|_| Refused)
    }

    /// Gives memory above `bytes` back.
    pub fn keep_at_most(&mut self, bytes: usize) {
        if self.memory.capacity() > bytes {
            self.memory = Vec::new();
        }
    }
}
