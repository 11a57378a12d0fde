//! Encodes images by libvips: options of each format (JPEG, PNG, WebP, AVIF, HEIF, TIFF, GIF, JXL), `targetBytes`,
//! metadata, largest sides.

use std::ffi::CStr;

use sluice_media::{
    format::Format,
    task::{Effort, Encode, Failure, FailureCode, Limits},
};

use super::{
    colour::PROFILE,
    render::{Frames, Timing, defect},
    safe::{Image, Operation, Refused},
};
use crate::image::bounds::check_output;

/// Encodings that the search for a size in bytes may cost: enough for every quality of 1 to 100.
const MAX_TRIES: u32 = 7;
/// HEVC costs about two seconds a megapixel.
const MAX_HEIF_PIXELS: u64 = 16_000_000;
/// AV1 in a hurry costs about a tenth of that.
const MAX_AVIF_PIXELS: u64 = 64_000_000;

/// Longest sides, in pixels, that writers of these formats take.
const MAX_WEBP_SIDE: u32 = 16_383;
const MAX_AVIF_SIDE: u32 = 16_384;
const MAX_JPG_SIDE: u32 = 65_500;

/// Below it libvips asks libjxl for more loss than that allows.
const MIN_JXL_QUALITY: u8 = 5;

/// An encoded image.
pub struct Encoded {
    pub bytes: Vec<u8>,
    /// The quality that the search for a size ended with.
    pub applied_quality: Option<u8>,
}

/// Writes the image; `keep_metadata` keeps EXIF, XMP and IPTC, and names the colours where the source did.
pub fn encode(
    rendered: &Frames<'_>,
    encode: &Encode,
    keep_metadata: bool,
    limits: &Limits,
) -> Result<Encoded, Failure> {
    let kept = match keep_metadata {
        true => Kept::of(&rendered.frames[0]),
        false => Kept::NOTHING,
    };
    let roll = roll(rendered, kept).map_err(defect)?;
    check_sides(&rendered.frames[0], encode.format)?;
    let saver = Saver {
        encode,
        kept,
        pixels: u64::from(roll.width()) * u64::from(roll.height()),
        page_height: rendered.frames[0].height(),
    };
    let encoded = match encode.target_bytes {
        Some(target) if saver.has_quality() => smallest_loss(&saver, &roll, target),
        _ => saver.save(&roll, encode.quality).map(|bytes| Encoded {
            bytes,
            applied_quality: None,
        }),
    };
    let encoded = encoded.map_err(|Refused| {
        Failure::new(
            FailureCode::Impossible,
            format!(
                "the image is of a form that cannot be written as {}",
                encode.format.name()
            ),
        )
    })?;
    check_output("the result", encoded.bytes.len(), limits)?;
    Ok(encoded)
}

/// Parts of the source's header that go into the result.
#[derive(Clone, Copy, Debug)]
struct Kept {
    metadata: bool,
    profile: bool,
}

impl Kept {
    const NOTHING: Self = Self {
        metadata: false,
        profile: false,
    };

    /// No more than is there: where libvips may write metadata, it makes some up.
    fn of(image: &Image<'_>) -> Self {
        let fields = image.fields();
        Self {
            metadata: fields.iter().any(|field| is_metadata(field)),
            profile: fields.iter().any(|field| field.as_c_str() == PROFILE),
        }
    }
}

/// All frames, one below the other, with the header that is to be written and no more.
fn roll<'a>(rendered: &Frames<'a>, kept: Kept) -> Result<Image<'a>, Refused> {
    let joined = match rendered.frames.as_slice() {
        [single] => Operation::on(c"copy", single).run()?,
        frames => Operation::new(c"arrayjoin")
            .images(c"in", frames)
            .option(c"across", 1)
            .run()?,
    };
    let mut roll = joined;
    for field in roll.fields() {
        if !(kept.metadata && is_metadata(&field)) {
            roll.remove(&field);
        }
    }
    roll.remove(PROFILE);
    if kept.metadata {
        // The pixels have been turned.
        roll.set_number(c"orientation", 1);
    }
    if let Some(Timing { delays, loops }) = &rendered.timing {
        roll.set_number(c"page-height", height_of(rendered));
        roll.set_numbers(c"delay", delays);
        roll.set_number(c"loop", *loops);
    }
    Ok(roll)
}

fn height_of(rendered: &Frames<'_>) -> i32 {
    i32::try_from(rendered.frames[0].height()).unwrap_or(i32::MAX)
}

/// Fields worth keeping; a thumbnail inside EXIF shows what was cut off, so it goes.
fn is_metadata(field: &CStr) -> bool {
    let name = field.to_bytes();
    matches!(name, b"exif-data" | b"xmp-data" | b"iptc-data") || name.starts_with(b"exif-ifd")
}

/// The best quality up to the one asked for whose result fits; the smallest result tried when none does.
fn smallest_loss(saver: &Saver<'_>, roll: &Image<'_>, target: u64) -> Result<Encoded, Refused> {
    let mut best: Option<(u8, Vec<u8>)> = None;
    let (mut low, mut high) = (1, saver.encode.quality.clamp(1, 100));
    let mut next = high;
    for _ in 0..MAX_TRIES {
        let bytes = saver.save(roll, next)?;
        let fits = bytes.len() as u64 <= target;
        let better = match &best {
            None => true,
            Some((quality, best)) => {
                if fits {
                    best.len() as u64 > target || next > *quality
                } else {
                    best.len() > bytes.len()
                }
            }
        };
        if better {
            best = Some((next, bytes));
        }
        if fits {
            low = next + 1;
        } else {
            high = next.saturating_sub(1);
        }
        if low > high {
            break;
        }
        next = low + (high - low) / 2;
    }
    best.map(|(quality, bytes)| Encoded {
        bytes,
        applied_quality: Some(quality),
    })
    .ok_or(Refused)
}

/// Checks the longest side and the pixels that a format's writers take.
fn check_sides(image: &Image<'_>, format: Format) -> Result<(), Failure> {
    let most = match format {
        Format::Webp => MAX_WEBP_SIDE,
        Format::Avif | Format::Heif => MAX_AVIF_SIDE,
        Format::Jpg | Format::Gif => MAX_JPG_SIDE,
        _ => return Ok(()),
    };
    let (width, height) = (image.width(), image.height());
    let pixels = u64::from(width) * u64::from(height);
    if width.max(height) > most {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the result has {width} × {height} pixels; a {} has at most {most} a side, so ask for a smaller size",
                format.name()
            ),
        ));
    }
    let budget = match format {
        Format::Heif => MAX_HEIF_PIXELS,
        Format::Avif => MAX_AVIF_PIXELS,
        _ => return Ok(()),
    };
    if pixels > budget {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the result has {width} × {height} pixels; at most {} megapixels are written as {}, so ask for a smaller size",
                budget / 1_000_000,
                format.name()
            ),
        ));
    }
    Ok(())
}

/// Writer of an image at any quality.
struct Saver<'a> {
    encode: &'a Encode,
    kept: Kept,
    pixels: u64,
    page_height: u32,
}

impl Saver<'_> {
    /// Returns whether a quality changes the size.
    fn has_quality(&self) -> bool {
        !self.encode.lossless
            && matches!(
                self.encode.format,
                Format::Jpg
                    | Format::Png
                    | Format::Webp
                    | Format::Avif
                    | Format::Heif
                    | Format::Jxl
            )
    }

    fn save(&self, roll: &Image<'_>, quality: u8) -> Result<Vec<u8>, Refused> {
        let lossless = self.encode.lossless;
        match self.encode.format {
            Format::Jpg => self
                .saver(c"jpegsave_buffer", roll)
                .option(c"Q", quality)
                .option(c"optimize-coding", true)
                .encode(),
            Format::Png => self.save_png(roll, quality),
            Format::Webp => self
                .saver(c"webpsave_buffer", roll)
                .option(c"Q", quality)
                .option(c"lossless", lossless)
                .option(c"effort", if self.is_fast() { 2 } else { 4 })
                .encode(),
            Format::Avif => self
                .saver(c"heifsave_buffer", roll)
                .option(c"compression", "av1")
                .option(c"Q", quality)
                .option(c"lossless", lossless)
                .option(c"bitdepth", 8)
                .option(c"effort", self.avif_effort())
                .encode(),
            Format::Heif => self
                .saver(c"heifsave_buffer", roll)
                .option(c"compression", "hevc")
                .option(c"Q", quality)
                .option(c"lossless", lossless)
                .option(c"bitdepth", 8)
                .encode(),
            Format::Tiff => self
                .saver(c"tiffsave_buffer", roll)
                .option(c"compression", "lzw")
                .option(c"predictor", "horizontal")
                .encode(),
            Format::Gif => self
                .saver(c"gifsave_buffer", roll)
                .option(c"effort", if self.is_fast() { 3 } else { 5 })
                .encode(),
            Format::Jxl => self
                .saver(c"jxlsave_buffer", roll)
                .option(c"Q", quality.max(MIN_JXL_QUALITY))
                .option(c"lossless", lossless)
                .option(c"effort", if self.is_fast() { 3 } else { 4 })
                .encode(),
            _ => Err(Refused),
        }
    }

    /// PNG keeps every pixel, unless a size in bytes is asked for: then colours are counted.
    fn save_png(&self, roll: &Image<'_>, quality: u8) -> Result<Vec<u8>, Refused> {
        let saver = self
            .saver(c"pngsave_buffer", roll)
            .option(c"compression", 6);
        if self.encode.target_bytes.is_some() && !self.encode.lossless && quality < 100 {
            return saver
                .option(c"palette", true)
                .option(c"Q", quality)
                .encode();
        }
        saver.encode()
    }

    fn saver<'a>(&self, name: &CStr, roll: &Image<'a>) -> Operation<'a> {
        let operation = Operation::on(name, roll).option(c"page-height", self.page_height);
        if !self.kept.metadata && !self.kept.profile {
            return operation.option(c"strip", true);
        }
        match self.encode.format {
            Format::Jpg | Format::Png | Format::Webp | Format::Tiff if self.kept.profile => {
                operation.option(c"profile", "srgb")
            }
            _ => operation,
        }
    }

    fn is_fast(&self) -> bool {
        self.encode.effort == Effort::Fast || self.encode.target_bytes.is_some()
    }

    /// AV1's effort, 0 to 9: the least costs a third and 3 % of bytes; it falls with the pixels, so that the time does not
    /// grow with them.
    fn avif_effort(&self) -> u8 {
        match self.pixels {
            _ if self.is_fast() => 0,
            0..4_000_000 => 2,
            4_000_000..12_000_000 => 1,
            _ => 0,
        }
    }
}
