//! WebP encoder of the planar path: libwebp, lossy, methods by effort, full range to BT.601 video range.

use std::mem::MaybeUninit;

use libc::c_int;
use libwebp_sys as webp;
use sluice_media::task::Effort;

use super::{Refused, Settings, YuvImage};
use crate::image::planar::plane::Sampling;

/// Method 4, libwebp's own choice, costs 1.7 times the time of 2 for 2.5 % fewer bytes.
const FAST_METHOD: c_int = 2;
const BALANCED_METHOD: c_int = 4;

/// A WebP encoder with the buffers that it reuses.
pub struct WebpEncoder {
    luma_levels: [u8; 256],
    chroma_levels: [u8; 256],
    planes: [Vec<u8>; 3],
}

impl WebpEncoder {
    pub fn new() -> Self {
        Self {
            luma_levels: std::array::from_fn(|level| limited(level, 16.0, 0.0, 219.0)),
            chroma_levels: std::array::from_fn(|level| limited(level, 128.0, 128.0, 224.0)),
            planes: Default::default(),
        }
    }

    /// Encodes a 4:2:0 image.
    pub fn encode(&mut self, image: &YuvImage, settings: Settings) -> Result<Vec<u8>, Refused> {
        if image.sampling != Sampling::HALVED {
            return Err(Refused);
        }
        self.take_limited(image);
        let config = config(settings)?;
        let mut written = Vec::new();
        let mut frame = empty_frame()?;
        frame.use_argb = 0;
        frame.width = image.width;
        frame.height = image.height;
        frame.y_stride = image.stride(0);
        frame.uv_stride = image.stride(1);
        let [y, u, v] = &mut self.planes;
        (frame.y, frame.u, frame.v) = (y.as_mut_ptr(), u.as_mut_ptr(), v.as_mut_ptr());
        frame.writer = Some(append);
        frame.custom_ptr = (&raw mut written).cast();
        // SAFETY: the planes have strides × rows samples (a rule of `YuvImage`) and live longer than the call, as does the
        // vector behind `custom_ptr`. The `WebPPicture` owns no memory, so that there is nothing to free.
        match unsafe { webp::WebPEncode(&config, &mut frame) } {
            0 => Err(Refused),
            _ => Ok(written),
        }
    }

    fn take_limited(&mut self, image: &YuvImage) {
        let sources = [image.luma, image.chroma[0], image.chroma[1]];
        let levels = [&self.luma_levels, &self.chroma_levels, &self.chroma_levels];
        for ((plane, source), levels) in self.planes.iter_mut().zip(sources).zip(levels) {
            plane.clear();
            plane.extend(source.iter().map(|&level| levels[usize::from(level)]));
        }
    }
}

/// JFIF's full range to the range of BT.601 video, which WebP means: `zero` and a span around it.
fn limited(level: usize, zero: f32, origin: f32, span: f32) -> u8 {
    (zero + (level as f32 - origin) * span / 255.0).round() as u8
}

fn config(settings: Settings) -> Result<webp::WebPConfig, Refused> {
    let mut config = webp::WebPConfig::new().map_err(|()| Refused)?;
    config.quality = f32::from(settings.quality);
    config.method = match settings.effort {
        Effort::Fast => FAST_METHOD,
        Effort::Balanced => BALANCED_METHOD,
    };
    Ok(config)
}

fn empty_frame() -> Result<webp::WebPPicture, Refused> {
    let mut frame = MaybeUninit::zeroed();
    // SAFETY: the function writes every field of what it is given, or answers false.
    unsafe {
        if webp::WebPPictureInit(frame.as_mut_ptr()) {
            Ok(frame.assume_init())
        } else {
            Err(Refused)
        }
    }
}

/// Callback by which libwebp hands over its output: 1 continues.
unsafe extern "C" fn append(
    bytes: *const u8,
    length: usize,
    frame: *const webp::WebPPicture,
) -> c_int {
    // SAFETY: `encode` put its vector there, and nothing else touches it during the call.
    let written = unsafe { &mut *(*frame).custom_ptr.cast::<Vec<u8>>() };
    if length > 0 {
        // SAFETY: libwebp says how many bytes there are.
        written.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes, length) });
    }
    1
}
