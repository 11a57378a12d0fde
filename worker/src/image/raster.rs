//! Decodes BMP, ICO and TGA, which libvips does not read, by the crate `image` into plain pixels.
//!
//! The header is believed only as far as the file has bytes for it, and nothing larger than the limits is decoded.

use std::io::Cursor;

use image::{
    ColorType, DynamicImage, ImageDecoder, ImageResult,
    codecs::{bmp::BmpDecoder, ico::IcoDecoder, tga::TgaDecoder},
};
use sluice_media::{
    format::Format,
    task::{Failure, FailureCode, Limits},
};

use super::{
    Raster,
    bounds::{check_pixels, undecodable},
};

/// Decodes a PNG file.
pub type DecodePng = fn(&[u8], &Limits) -> Result<Raster, Failure>;

/// Most pixels per byte of a file: a run of 255 in two bytes is the most that any of these formats has.
const MAX_PIXELS_PER_BYTE: u64 = 128;

/// Returns whether these decoders read the format.
pub fn reads(format: Format) -> bool {
    matches!(format, Format::Bmp | Format::Ico | Format::Tga)
}

/// Decodes a file; of an icon, its largest image. The result has three bands, or four with an alpha channel.
/// `decode_png` reads the PNG that an icon may hold.
pub fn decode(
    format: Format,
    bytes: &[u8],
    limits: &Limits,
    decode_png: DecodePng,
) -> Result<Raster, Failure> {
    let undecodable = |_| undecodable(format);
    match format {
        Format::Bmp => pixels(
            BmpDecoder::new(Cursor::new(bytes)).map_err(undecodable)?,
            format,
            bytes.len(),
            limits,
        ),
        Format::Tga => pixels(
            TgaDecoder::new(Cursor::new(bytes)).map_err(undecodable)?,
            format,
            bytes.len(),
            limits,
        ),
        Format::Ico => icon(bytes, limits, decode_png),
        other => Err(Failure::new(
            FailureCode::UnsupportedType,
            format!("{} files are not images that can be read", other.name()),
        )),
    }
}

fn pixels(
    mut decoder: impl ImageDecoder,
    format: Format,
    file_bytes: usize,
    limits: &Limits,
) -> Result<Raster, Failure> {
    let (width, height) = decoder.dimensions();
    check_pixels(width, height, limits)?;
    let stated = u64::from(width) * u64::from(height);
    if stated == 0 || stated > file_bytes as u64 * MAX_PIXELS_PER_BYTE {
        return Err(undecodable(format));
    }
    let decoded = decoder
        .set_limits(decoder_limits(limits))
        .and_then(|()| DynamicImage::from_decoder(decoder));
    raster(decoded).map_err(|_| undecodable(format))
}

/// An image of four bands and as much again for what a decoder keeps beside it.
fn decoder_limits(limits: &Limits) -> image::Limits {
    let mut bounds = image::Limits::default();
    bounds.max_alloc = Some(limits.max_pixels.saturating_mul(8));
    bounds
}

fn raster(decoded: ImageResult<DynamicImage>) -> ImageResult<Raster> {
    let decoded = decoded?;
    let (width, height) = (decoded.width(), decoded.height());
    let has_alpha = matches!(decoded.color(), ColorType::Rgba8 | ColorType::La8);
    let (bands, pixels) = if has_alpha {
        (4, decoded.into_rgba8().into_raw())
    } else {
        (3, decoded.into_rgb8().into_raw())
    };
    Ok(Raster {
        width,
        height,
        bands,
        pixels,
    })
}

/// The header of an icon file, and the length of one entry of the directory that follows it.
const ICON_HEADER: usize = 6;
const ICON_ENTRY: usize = 16;

/// Decodes the largest image of an icon, as if it were the only one. It is a PNG or a headless BMP.
fn icon(bytes: &[u8], limits: &Limits, decode_png: DecodePng) -> Result<Raster, Failure> {
    let (entry, image) = largest(bytes).ok_or_else(|| undecodable(Format::Ico))?;
    if Format::sniff(image) == Some(Format::Png) {
        return decode_png(image, limits);
    }
    let mut alone = vec![0, 0, 1, 0, 1, 0];
    alone.extend_from_slice(&entry[..12]);
    alone.extend_from_slice(&((ICON_HEADER + ICON_ENTRY) as u32).to_le_bytes());
    alone.extend_from_slice(image);
    let length = alone.len();
    let decoder = IcoDecoder::new(Cursor::new(alone)).map_err(|_| undecodable(Format::Ico))?;
    pixels(decoder, Format::Ico, length, limits)
}

/// The entry of the largest image, of the most colours among equals, and that image's bytes.
fn largest(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let count = usize::from(u16::from_le_bytes([*bytes.get(4)?, *bytes.get(5)?]));
    let best = bytes
        .get(ICON_HEADER..)?
        .chunks_exact(ICON_ENTRY)
        .take(count)
        .max_by_key(|entry| {
            // 0 means 256.
            let side = |at: usize| u32::from(entry[at].wrapping_sub(1)) + 1;
            let bits = u16::from_le_bytes([entry[6], entry[7]]);
            (side(0) * side(1), bits)
        })?;
    let number =
        |at: usize| usize::try_from(u32::from_le_bytes(*best.get(at..)?.first_chunk()?)).ok();
    let (length, start) = (number(8)?, number(12)?);
    let image = bytes.get(start..)?;
    Some((best, &image[..length.min(image.len())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_pixels: 1_000_000,
        max_frames: 1,
        max_total_pixels: 1_000_000,
        max_output_bytes: 1 << 20,
        max_members: 1,
        max_duration_ms: 0,
        max_side: 0,
    };

    fn no_png(_: &[u8], _: &Limits) -> Result<Raster, Failure> {
        Err(undecodable(Format::Png))
    }

    /// Two by two pixels of 24 bits, bottom row first: red, green above blue, white.
    fn bitmap(width: u32, height: u32) -> Vec<u8> {
        let mut file = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
        file.extend_from_slice(&width.to_le_bytes());
        file.extend_from_slice(&height.to_le_bytes());
        file.extend_from_slice(b"\x01\0\x18\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        file.extend_from_slice(b"\xff\0\0\xff\xff\xff\0\0");
        file.extend_from_slice(b"\0\0\xff\0\xff\0\0\0");
        file
    }

    /// Images of 32 bits, each in one colour.
    fn icon_of(sides: &[(u8, [u8; 4])]) -> Vec<u8> {
        let mut directory = vec![0, 0, 1, 0, sides.len() as u8, 0];
        let mut images = Vec::new();
        let start = ICON_HEADER + ICON_ENTRY * sides.len();
        for (side, [red, green, blue, alpha]) in sides {
            let offset = (start + images.len()) as u32;
            let side_32 = u32::from(*side);
            let before = images.len();
            images.extend_from_slice(&40u32.to_le_bytes());
            images.extend_from_slice(&side_32.to_le_bytes());
            images.extend_from_slice(&(side_32 * 2).to_le_bytes());
            images.extend_from_slice(&[1, 0, 32, 0]);
            images.extend_from_slice(&[0; 24]);
            for _ in 0..side_32 * side_32 {
                images.extend_from_slice(&[*blue, *green, *red, *alpha]);
            }
            let length = (images.len() - before) as u32;
            directory.extend_from_slice(&[*side, *side, 0, 0, 1, 0, 32, 0]);
            directory.extend_from_slice(&length.to_le_bytes());
            directory.extend_from_slice(&offset.to_le_bytes());
        }
        directory.extend_from_slice(&images);
        directory
    }

    #[test]
    fn reads_pixels_from_the_top_in_the_order_of_red_green_blue() {
        let raster = decode(Format::Bmp, &bitmap(2, 2), &LIMITS, no_png).expect("a bitmap");
        assert_eq!((raster.width, raster.height, raster.bands), (2, 2, 3));
        assert_eq!(
            raster.pixels,
            [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255]
        );

        let mut targa = vec![0u8; 18];
        targa[2] = 2;
        (targa[12], targa[14], targa[16], targa[17]) = (2, 1, 32, 0x28);
        targa.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let raster = decode(Format::Tga, &targa, &LIMITS, no_png).expect("a targa");
        assert_eq!((raster.width, raster.height, raster.bands), (2, 1, 4));
        assert_eq!(raster.pixels, [3, 2, 1, 4, 7, 6, 5, 8]);
    }

    #[test]
    fn takes_the_largest_image_of_an_icon() {
        let file = icon_of(&[
            (2, [1, 2, 3, 255]),
            (4, [9, 8, 7, 128]),
            (1, [0, 0, 0, 255]),
        ]);
        let raster = decode(Format::Ico, &file, &LIMITS, no_png).expect("an icon");
        assert_eq!((raster.width, raster.height, raster.bands), (4, 4, 4));
        assert_eq!(raster.pixels[..4], [9, 8, 7, 128]);
    }

    #[test]
    fn lying_and_giant_headers_fail_before_memory_is_taken() {
        let code = |format, bytes: &[u8]| {
            decode(format, bytes, &LIMITS, no_png)
                .map(|_| ())
                .map_err(|failure| failure.code)
        };
        for (bytes, expected) in [
            (bitmap(40_000, 40_000), FailureCode::TooLarge),
            (bitmap(900, 900), FailureCode::Undecodable),
            (bitmap(3, 3), FailureCode::Undecodable),
            (bitmap(0, 2), FailureCode::Undecodable),
            (bitmap(2, 2)[..60].to_vec(), FailureCode::Undecodable),
            (b"BM".to_vec(), FailureCode::Undecodable),
            (Vec::new(), FailureCode::Undecodable),
        ] {
            assert_eq!(code(Format::Bmp, &bytes), Err(expected), "{}", bytes.len());
        }
        for cut in 0..icon_of(&[(2, [0; 4])]).len() - 1 {
            let file = icon_of(&[(2, [0; 4])]);
            assert!(code(Format::Ico, &file[..cut]).is_err(), "{cut}");
        }
        assert_eq!(code(Format::Png, b""), Err(FailureCode::UnsupportedType));
    }

    proptest::proptest! {
        #[test]
        fn damaged_files_never_panic(
            at in 0usize..60,
            byte in proptest::num::u8::ANY,
            cut in 0usize..80,
        ) {
            for (format, mut file) in [
                (Format::Bmp, bitmap(2, 2)),
                (Format::Ico, icon_of(&[(2, [1, 2, 3, 4])])),
            ] {
                if let Some(hit) = file.get_mut(at) {
                    *hit = byte;
                }
                file.truncate(cut.max(20));
                let _ = decode(format, &file, &LIMITS, no_png);
                let _ = decode(Format::Tga, &file, &LIMITS, no_png);
            }
        }
    }
}
