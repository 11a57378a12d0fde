//! Opens a source by the loader of its format: pages, EXIF orientation, limits of pixels, frames and SVG bytes before
//! any pixel.

use std::ffi::CStr;

use sluice_media::{
    format::Format,
    task::{Failure, FailureCode, Limits},
};

use super::safe::{Image, Operation, Refused};
use crate::image::{
    Raster,
    bounds::{self, check_pixels},
    raster,
};

/// The longest SVG, in bytes; drawings of cities and machines have a few million.
const MAX_SVG_BYTES: usize = 16 << 20;
/// The most frames of a WebP, also where one is asked for: libwebp takes time by the square of their number.
const MAX_WEBP_FRAMES: usize = 10_000;

/// Facts of the header, in pixels (or points, of a vector) of one page as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub width: u32,
    pub height: u32,
    /// EXIF, 1 to 8.
    pub orientation: u8,
    /// Frames or pages in the file.
    pub pages: u32,
}

/// Options for opening a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// From 0.
    pub page: u32,
    /// All frames, one below the other, instead of one page.
    pub all: bool,
    pub scale: Scale,
    /// The preview inside a HEIF instead of the image.
    pub preview: bool,
}

/// Scaling by the decoder itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    Full,
    /// A JPEG, by 2, 4 or 8.
    Shrunk(u32),
    /// A WebP or a vector.
    By(f64),
}

impl Options {
    pub const FIRST: Self = Self {
        page: 0,
        all: false,
        scale: Scale::Full,
        preview: false,
    };
}

/// A file in memory, and what is known of it.
pub struct LoadedImage<'a> {
    pub format: Format,
    bytes: &'a [u8],
    /// The pixels of a format that libvips does not read.
    decoded: Option<Image<'static>>,
}

impl<'a> LoadedImage<'a> {
    /// Fails with [`FailureCode::UnsupportedType`] for what is no image.
    pub fn new(format: Format, bytes: &'a [u8], limits: &Limits) -> Result<Self, Failure> {
        if raster::reads(format) {
            let decoded = super::image_of(&raster::decode(format, bytes, limits, super::png)?)?;
            return Ok(Self {
                format,
                bytes,
                decoded: Some(decoded),
            });
        }
        if loader(format).is_none() {
            return Err(Failure::new(
                FailureCode::UnsupportedType,
                format!("{} files are not images that can be read", format.name()),
            ));
        }
        if format == Format::Svg {
            check_svg(bytes)?;
        }
        if format == Format::Webp {
            check_webp(bytes)?;
        }
        Ok(Self {
            format,
            bytes,
            decoded: None,
        })
    }

    /// Pixels that another decoder made, of the format that they count as.
    pub fn decoded(format: Format, raster: &Raster) -> Result<Self, Failure> {
        Ok(Self {
            format,
            bytes: &[],
            decoded: Some(super::image_of(raster)?),
        })
    }

    /// Returns whether it has no pixels of its own and is drawn at any size.
    pub fn is_vector(&self) -> bool {
        matches!(self.format, Format::Svg | Format::Pdf)
    }

    /// Reads the header; pixels are decoded when the image is read, line after line from the top.
    pub fn open(&self, options: Options) -> Result<Image<'a>, Failure> {
        self.load(options).map_err(|Refused| self.undecodable())
    }

    fn load(&self, options: Options) -> Result<Image<'a>, Refused> {
        if let Some(decoded) = &self.decoded {
            return Operation::on(c"copy", decoded).run();
        }
        let name = loader(self.format).ok_or(Refused)?;
        let mut operation = Operation::load(name, self.bytes)
            .option(c"access", "sequential")
            .option(c"fail-on", "error");
        if self.has_pages() {
            operation = operation
                .option(c"page", options.page)
                .option(c"n", if options.all { -1 } else { 1 });
        }
        if options.preview {
            operation = operation.option(c"thumbnail", true);
        }
        match options.scale {
            Scale::Full => operation,
            Scale::Shrunk(factor) => operation.option(c"shrink", factor),
            Scale::By(factor) => operation.option(c"scale", factor),
        }
        .run()
    }

    fn has_pages(&self) -> bool {
        matches!(
            self.format,
            Format::Webp | Format::Gif | Format::Tiff | Format::Pdf | Format::Heif | Format::Avif
        )
    }

    /// The header, checked against the limits of one page.
    pub fn header(&self, image: &Image<'_>, limits: &Limits) -> Result<Header, Failure> {
        let header = self.header_of(image);
        if !self.is_vector() {
            check_pixels(header.width, header.height, limits)?;
        }
        Ok(header)
    }

    /// The header, unchecked.
    pub fn header_of(&self, image: &Image<'_>) -> Header {
        Header {
            width: image.width(),
            height: image.height(),
            orientation: image
                .number(c"orientation")
                .and_then(|orientation| u8::try_from(orientation).ok())
                .filter(|orientation| (1..=8).contains(orientation))
                .unwrap_or(1),
            pages: image
                .number(c"n-pages")
                .and_then(|pages| u32::try_from(pages).ok())
                .map_or(1, |pages| pages.max(1)),
        }
    }

    /// The 0-based page for the 1-based one asked for. One-page images, PDFs excepted, have that page under any number.
    pub fn page(&self, asked: u32, image: &Image<'_>, pages: u32) -> Result<u32, Failure> {
        if asked <= 1 {
            let primary = image.number(c"heif-primary").unwrap_or(0);
            return Ok(u32::try_from(primary).unwrap_or(0));
        }
        if pages == 1 && self.format != Format::Pdf {
            return Ok(0);
        }
        if asked > pages {
            return Err(Failure::new(
                FailureCode::Impossible,
                format!("page {asked} is not there: the file has {pages}"),
            ));
        }
        Ok(asked - 1)
    }

    /// Failure for bytes that do not decode.
    pub fn undecodable(&self) -> Failure {
        bounds::undecodable(self.format)
    }
}

/// Checks all frames of an animation together.
pub fn check_frames(header: &Header, limits: &Limits) -> Result<(), Failure> {
    if header.pages > limits.max_frames {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the animation has {} frames; at most {} are taken (image_workers.max_frames)",
                header.pages, limits.max_frames
            ),
        ));
    }
    let pixels = u64::from(header.width) * u64::from(header.height) * u64::from(header.pages);
    if pixels > limits.max_total_pixels {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the animation has {} × {} pixels in {} frames; at most {} megapixels together are taken (image_workers.max_total_megapixels)",
                header.width,
                header.height,
                header.pages,
                limits.max_total_pixels / 1_000_000
            ),
        ));
    }
    Ok(())
}

fn check_svg(bytes: &[u8]) -> Result<(), Failure> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    if bytes.starts_with(GZIP) {
        return Err(Failure::new(
            FailureCode::UnsupportedType,
            "compressed SVG (svgz) is not taken; send the plain SVG",
        ));
    }
    if bytes.len() > MAX_SVG_BYTES {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the SVG has {} bytes; at most {MAX_SVG_BYTES} are taken",
                bytes.len()
            ),
        ));
    }
    Ok(())
}

fn check_webp(bytes: &[u8]) -> Result<(), Failure> {
    let mut frames = webp_chunks(bytes).filter(|name| *name == b"ANMF");
    match frames.nth(MAX_WEBP_FRAMES) {
        None => Ok(()),
        Some(_) => Err(Failure::new(
            FailureCode::TooLarge,
            format!("the animation has more than {MAX_WEBP_FRAMES} frames; a WebP may not"),
        )),
    }
}

/// The names of the chunks in a WebP's RIFF container (RFC 9649, section 2.3).
fn webp_chunks(bytes: &[u8]) -> impl Iterator<Item = &[u8; 4]> {
    const FILE_HEADER: usize = 12;
    let mut rest = bytes.get(FILE_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk()?;
        let (size, body) = after.split_first_chunk()?;
        let size = u32::from_le_bytes(*size) as usize;
        rest = body.get(size + size % 2..).unwrap_or_default();
        Some(name)
    })
}

/// The loader that reads a format from memory.
fn loader(format: Format) -> Option<&'static CStr> {
    Some(match format {
        Format::Jpg => c"jpegload_buffer",
        Format::Png => c"pngload_buffer",
        Format::Webp => c"webpload_buffer",
        Format::Avif | Format::Heif => c"heifload_buffer",
        Format::Tiff => c"tiffload_buffer",
        Format::Gif => c"gifload_buffer",
        Format::Jxl => c"jxlload_buffer",
        Format::Svg => c"svgload_buffer",
        Format::Pdf => c"pdfload_buffer",
        _ => return None,
    })
}
