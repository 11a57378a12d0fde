//! JPEG decoder and encoder of the planar path: TurboJPEG 3, planes at a DCT scale, limits of pixels, memory and scans.

use std::ptr::{self, NonNull};

use libc::{c_int, c_void};
use turbojpeg_sys as tj;

use super::{Refused, Settings, YuvImage};
use crate::image::planar::plane::{Plane, Sampling};

/// Scans of a progressive image; encoders write about 10, the most thorough optimisers some 60.
const MAX_SCANS: c_int = 100;

struct Handle {
    instance: NonNull<c_void>,
    /// A call has failed. TurboJPEG may then be in the midst of a header, and would reject every image to come.
    is_spoiled: bool,
}

// SAFETY: a TurboJPEG handle has no tie to the thread that made it; it may not be used by two at once, and is not `Sync`.
unsafe impl Send for Handle {}

impl Handle {
    fn new(kind: tj::TJINIT) -> Result<Self, Refused> {
        // SAFETY: any value of the enumeration may be passed; null is the only failure.
        let instance = NonNull::new(unsafe { tj::tj3Init(kind as c_int) }).ok_or(Refused)?;
        Ok(Self {
            instance,
            is_spoiled: false,
        })
    }

    fn check(&mut self, status: c_int) -> Result<(), Refused> {
        if status == 0 {
            return Ok(());
        }
        self.is_spoiled = true;
        Err(Refused)
    }

    fn as_ptr(&self) -> tj::tjhandle {
        self.instance.as_ptr()
    }

    fn set(&mut self, parameter: tj::TJPARAM, value: c_int) -> Result<(), Refused> {
        // SAFETY: the handle is alive; unknown parameters and values are answered with −1.
        let status = unsafe { tj::tj3Set(self.as_ptr(), parameter as c_int, value) };
        self.check(status)
    }

    fn get(&self, parameter: tj::TJPARAM) -> c_int {
        // SAFETY: as in `set`.
        unsafe { tj::tj3Get(self.as_ptr(), parameter as c_int) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by tj3Init, destroyed once.
        unsafe { tj::tj3Destroy(self.as_ptr()) }
    }
}

/// A reusable JPEG decoder. Whatever libjpeg-turbo warns of (damaged or missing data) is an error.
pub struct Decompressor {
    handle: Handle,
}

/// A JPEG whose header was read.
pub struct JpegSource<'a> {
    handle: &'a mut Handle,
    jpeg: &'a [u8],
    pub width: u32,
    pub height: u32,
    pub sampling: Sampling,
}

impl Decompressor {
    pub fn new() -> Result<Self, Refused> {
        let mut handle = Handle::new(tj::TJINIT_TJINIT_DECOMPRESS)?;
        handle.set(tj::TJPARAM_TJPARAM_STOPONWARNING, 1)?;
        handle.set(tj::TJPARAM_TJPARAM_SCANLIMIT, MAX_SCANS)?;
        handle.set(tj::TJPARAM_TJPARAM_SAVEMARKERS, 0)?;
        Ok(Self { handle })
    }

    /// Reads the header; rejects what is larger than `max_pixels` and what is not grey or YCbCr of a common sampling.
    pub fn open<'a>(
        &'a mut self,
        jpeg: &'a [u8],
        max_pixels: u64,
    ) -> Result<JpegSource<'a>, Refused> {
        if self.handle.is_spoiled {
            *self = Self::new()?;
        }
        let handle = &mut self.handle;
        let pixels = c_int::try_from(max_pixels).unwrap_or(c_int::MAX);
        handle.set(tj::TJPARAM_TJPARAM_MAXPIXELS, pixels)?;
        handle.set(tj::TJPARAM_TJPARAM_MAXMEMORY, megabytes(max_pixels))?;
        // SAFETY: the pointer and the length are those of a slice that outlives the call.
        let status =
            unsafe { tj::tj3DecompressHeader(handle.as_ptr(), jpeg.as_ptr(), jpeg.len() as _) };
        handle.check(status)?;
        let colour_space = handle.get(tj::TJPARAM_TJPARAM_COLORSPACE);
        let sampling = sampling(handle.get(tj::TJPARAM_TJPARAM_SUBSAMP)).ok_or(Refused)?;
        let expected = match sampling {
            Sampling::Grey => tj::TJCS_TJCS_GRAY,
            Sampling::Colour { .. } => tj::TJCS_TJCS_YCbCr,
        };
        if colour_space != expected as c_int {
            return Err(Refused);
        }
        let side = |parameter| u32::try_from(handle.get(parameter)).map_err(|_| Refused);
        let (width, height) = (
            side(tj::TJPARAM_TJPARAM_JPEGWIDTH)?,
            side(tj::TJPARAM_TJPARAM_JPEGHEIGHT)?,
        );
        if u64::from(width) * u64::from(height) > max_pixels {
            return Err(Refused);
        }
        Ok(JpegSource {
            handle,
            jpeg,
            width,
            height,
            sampling,
        })
    }
}

/// Returns the memory that a progressive image of so many pixels needs for its coefficients (2 bytes × 3 components,
/// with padding).
fn megabytes(max_pixels: u64) -> c_int {
    const COEFFICIENTS_BYTES_PER_PIXEL: u64 = 7;
    const SPARE: u64 = 64;
    let megabytes = max_pixels.saturating_mul(COEFFICIENTS_BYTES_PER_PIXEL) / (1024 * 1024) + SPARE;
    c_int::try_from(megabytes).unwrap_or(c_int::MAX)
}

/// TurboJPEG's names for samplings.
const SAMPLINGS: [(tj::TJSAMP, Sampling); 7] = [
    (tj::TJSAMP_TJSAMP_GRAY, Sampling::Grey),
    (tj::TJSAMP_TJSAMP_444, Sampling::FULL),
    (
        tj::TJSAMP_TJSAMP_422,
        Sampling::Colour { across: 2, down: 1 },
    ),
    (tj::TJSAMP_TJSAMP_420, Sampling::HALVED),
    (
        tj::TJSAMP_TJSAMP_440,
        Sampling::Colour { across: 1, down: 2 },
    ),
    (
        tj::TJSAMP_TJSAMP_411,
        Sampling::Colour { across: 4, down: 1 },
    ),
    (
        tj::TJSAMP_TJSAMP_441,
        Sampling::Colour { across: 1, down: 4 },
    ),
];

fn sampling(name: c_int) -> Option<Sampling> {
    let found = SAMPLINGS.iter().find(|(known, _)| *known as c_int == name);
    found.map(|(_, sampling)| *sampling)
}

fn name(sampling: Sampling) -> Option<c_int> {
    let found = SAMPLINGS.iter().find(|(_, known)| *known == sampling);
    found.map(|(name, _)| *name as c_int)
}

impl JpegSource<'_> {
    /// The size of a component's plane when the image is decoded at 1 / `divisor` (1, 2, 4 or 8), padding included.
    pub fn plane_size(&self, component: usize, divisor: u32) -> (u32, u32) {
        let scaled = (self.width.div_ceil(divisor), self.height.div_ceil(divisor));
        self.sampling.plane_size(scaled, component)
    }

    /// Decodes into planes, of which each has the size that [`JpegSource::plane_size`] says.
    pub fn decode(self, divisor: u32, planes: &mut [Plane; 3]) -> Result<(), Refused> {
        let mut pointers: [*mut u8; 3] = [ptr::null_mut(); 3];
        let mut strides: [c_int; 3] = [0; 3];
        for component in 0..self.sampling.components() {
            let plane = &mut planes[component];
            if plane.size() != self.plane_size(component, divisor) {
                return Err(Refused);
            }
            strides[component] = c_int::try_from(plane.stride()).map_err(|_| Refused)?;
            pointers[component] = plane.samples_mut().as_mut_ptr();
        }
        let scale = tj::tjscalingfactor {
            num: 1,
            denom: c_int::try_from(divisor).map_err(|_| Refused)?,
        };
        // SAFETY: the handle is alive; scales that are not supported are answered with −1.
        let status = unsafe { tj::tj3SetScalingFactor(self.handle.as_ptr(), scale) };
        self.handle.check(status)?;
        // SAFETY: the bytes are those whose header gave the sizes of the planes; each plane holds stride × (rows − 1) +
        // columns samples from its pointer on (a rule of `Plane`), and grey images touch no other than the first.
        let status = unsafe {
            tj::tj3DecompressToYUVPlanes8(
                self.handle.as_ptr(),
                self.jpeg.as_ptr(),
                self.jpeg.len() as _,
                pointers.as_mut_ptr(),
                strides.as_mut_ptr(),
            )
        };
        self.handle.check(status)
    }
}

/// A reusable JPEG encoder: baseline, optimised Huffman tables.
pub struct Compressor {
    handle: Handle,
}

impl Compressor {
    pub fn new() -> Result<Self, Refused> {
        let mut handle = Handle::new(tj::TJINIT_TJINIT_COMPRESS)?;
        handle.set(tj::TJPARAM_TJPARAM_OPTIMIZE, 1)?;
        Ok(Self { handle })
    }

    /// Progressive images are for tests: they cost time and memory for 3 % of bytes.
    #[cfg(test)]
    pub fn progressive(&mut self, progressive: bool) -> Result<(), Refused> {
        let parameter = tj::TJPARAM_TJPARAM_PROGRESSIVE;
        self.handle.set(parameter, c_int::from(progressive))
    }

    /// Encodes at the image's sampling.
    pub fn encode(&mut self, image: &YuvImage, settings: Settings) -> Result<Vec<u8>, Refused> {
        if self.handle.is_spoiled {
            *self = Self::new()?;
        }
        let sampling = name(image.sampling).ok_or(Refused)?;
        let handle = &mut self.handle;
        handle.set(tj::TJPARAM_TJPARAM_QUALITY, c_int::from(settings.quality))?;
        handle.set(tj::TJPARAM_TJPARAM_SUBSAMP, sampling)?;
        let planes = [
            image.luma.as_ptr(),
            image.chroma[0].as_ptr(),
            image.chroma[1].as_ptr(),
        ];
        let strides = [image.stride(0), image.stride(1), image.stride(2)];
        let mut buffer = Buffer::default();
        // SAFETY: the planes have the padded sizes that TurboJPEG reads (a rule of `YuvImage`; luma too is padded to whole
        // chroma samples). The buffer is null, so that the library allocates it.
        let status = unsafe {
            tj::tj3CompressFromYUVPlanes8(
                handle.as_ptr(),
                planes.as_ptr(),
                image.width,
                strides.as_ptr(),
                image.height,
                &mut buffer.start,
                &mut buffer.length,
            )
        };
        handle.check(status)?;
        Ok(buffer.copy())
    }
}

/// Memory that TurboJPEG allocates.
struct Buffer {
    start: *mut u8,
    length: tj::size_t,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            start: ptr::null_mut(),
            length: 0,
        }
    }
}

impl Buffer {
    fn copy(&self) -> Vec<u8> {
        if self.start.is_null() {
            return Vec::new();
        }
        // SAFETY: after a successful call the library says how many bytes from `start` on it has written.
        unsafe { std::slice::from_raw_parts(self.start, self.length as usize) }.to_vec()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: null or allocated by the library; freed once.
        unsafe { tj::tj3Free(self.start.cast()) }
    }
}
