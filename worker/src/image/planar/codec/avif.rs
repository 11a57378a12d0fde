//! AVIF encoder of the planar path: libavif with aom on one thread, speeds by effort, quality. The other half is
//! `avif.c`.

use std::ptr;

use libc::c_int;
use sluice_media::task::Effort;

use super::{Refused, Settings, YuvImage};
use crate::image::planar::plane::Sampling;

/// aom's fastest setting for still images.
const FAST_SPEED: c_int = 9;
const BALANCED_SPEED: c_int = 6;

/// `struct sluice_avif_image` of `avif.c`.
#[repr(C)]
struct AvifImage {
    planes: [*const u8; 3],
    strides: [u32; 3],
    width: u32,
    height: u32,
    full_chroma: c_int,
    quantizer: c_int,
    speed: c_int,
}

unsafe extern "C" {
    fn sluice_avif_encode(
        image: *const AvifImage,
        bytes: *mut *mut u8,
        length: *mut usize,
    ) -> c_int;
    fn sluice_avif_free(bytes: *mut u8, length: usize);
}

/// Encodes a 4:4:4 or 4:2:0 image.
pub fn encode(image: &YuvImage, settings: Settings) -> Result<Vec<u8>, Refused> {
    let full_chroma = match image.sampling {
        Sampling::FULL => 1,
        Sampling::HALVED => 0,
        _ => return Err(Refused),
    };
    let image = AvifImage {
        planes: [
            image.luma.as_ptr(),
            image.chroma[0].as_ptr(),
            image.chroma[1].as_ptr(),
        ],
        strides: [0, 1, 2].map(|component| image.stride(component) as u32),
        width: image.width as u32,
        height: image.height as u32,
        full_chroma,
        quantizer: quantizer(settings.quality),
        speed: match settings.effort {
            Effort::Fast => FAST_SPEED,
            Effort::Balanced => BALANCED_SPEED,
        },
    };
    let (mut bytes, mut length) = (ptr::null_mut(), 0);
    // SAFETY: the planes have strides × rows samples (a rule of `YuvImage`) and are only read.
    if unsafe { sluice_avif_encode(&image, &mut bytes, &mut length) } != 0 || bytes.is_null() {
        return Err(Refused);
    }
    // SAFETY: a success comes with `length` bytes, which are ours until they are freed, once.
    unsafe {
        let copy = std::slice::from_raw_parts(bytes, length).to_vec();
        sluice_avif_free(bytes, length);
        Ok(copy)
    }
}

/// Maps the quality as libheif does, so that a quality means the same on both paths.
fn quantizer(quality: u8) -> c_int {
    ((100 - c_int::from(quality.clamp(1, 100))) * 63 + 50) / 100
}
