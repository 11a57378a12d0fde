//! C codecs of the planar path behind safe functions: libjpeg-turbo 3, libwebp, libavif.
//!
//! The only module of the path with `unsafe`. It keeps two rules: a plane's length is checked against its size before
//! its address is given away, and what a codec has allocated is copied and freed before a function returns.
#![allow(
    unsafe_code,
    reason = "the codecs are C; this module wraps the few calls that the planar path makes"
)]

mod avif;
mod turbojpeg;
mod webp;

use sluice_media::task::Effort;

pub use self::avif::encode as encode_avif;
pub use self::turbojpeg::{Compressor, Decompressor, JpegSource};
pub use self::webp::WebpEncoder;
use super::plane::Sampling;

/// A codec could not do it; what it says may hold the file's own bytes, so it is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Encoding of an image.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// 1 to 100.
    pub quality: u8,
    pub effort: Effort,
}

/// Planes of the padded size that their sampling asks for, one row after the other; full-range BT.601 as in JFIF.
#[derive(Clone, Copy, Debug)]
pub struct YuvImage<'a> {
    width: i32,
    height: i32,
    sampling: Sampling,
    luma: &'a [u8],
    chroma: [&'a [u8]; 2],
}

impl<'a> YuvImage<'a> {
    /// Takes the first samples of each plane; [`Refused`] when one has too few. Grey images have no chroma.
    pub fn new(
        (width, height): (u32, u32),
        sampling: Sampling,
        planes: [&'a [u8]; 3],
    ) -> Result<Self, Refused> {
        let samples = |component: usize| {
            let (width, height) = sampling.plane_size((width, height), component);
            planes[component]
                .get(..width as usize * height as usize)
                .ok_or(Refused)
        };
        if width == 0 || height == 0 {
            return Err(Refused);
        }
        Ok(Self {
            width: i32::try_from(width).map_err(|_| Refused)?,
            height: i32::try_from(height).map_err(|_| Refused)?,
            sampling,
            luma: samples(0)?,
            chroma: [samples(1)?, samples(2)?],
        })
    }

    /// Samples of one row of a component, 0 when there is no such component.
    fn stride(&self, component: usize) -> i32 {
        let size = (self.width as u32, self.height as u32);
        self.sampling.plane_size(size, component).0 as i32
    }
}
