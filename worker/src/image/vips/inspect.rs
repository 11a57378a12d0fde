//! Inspection of an image: facts of its header, EXIF tags, ICC profile name, density, delays of an animation.

use std::collections::BTreeMap;

use sluice_media::{
    format::Format,
    task::{Failure, ImageFacts, Limits},
};

use super::{
    colour::PROFILE,
    load::{LoadedImage, Options},
    safe::{Image, Samples, Space},
};

/// Most tags that are shown, and the longest text of one.
const MAX_TAGS: usize = 128;
const MAX_TEXT: usize = 256;
/// Most delays of an animation that are shown.
const MAX_DELAYS: usize = 2_000;
const MILLIMETRES_PER_INCH: f64 = 25.4;

/// Reads the header. A giant is described as well: nothing of it is decoded.
pub fn inspect(format: Format, input: &[u8], limits: &Limits) -> Result<ImageFacts, Failure> {
    let source = LoadedImage::new(format, input, limits)?;
    let image = source.open(Options::FIRST)?;
    let header = source.header_of(&image);
    let animated = header.pages > 1 && format.can_animate();
    let exif = exif(&image);
    Ok(ImageFacts {
        format,
        width: header.width,
        height: header.height,
        orientation: header.orientation,
        pages: header.pages,
        animated,
        has_alpha: image.has_alpha(),
        bands: image.bands(),
        bits_per_sample: bits(&image),
        colour_space: space(&image).to_owned(),
        profile: image.blob(PROFILE).as_deref().and_then(description),
        delays: if animated { delays(&image) } else { Vec::new() },
        density_dpi: density(format, &image),
        exif,
    })
}

fn bits(image: &Image<'_>) -> u32 {
    let declared = image
        .number(c"bits-per-sample")
        .or_else(|| image.number(c"heif-bitdepth"))
        .and_then(|bits| u32::try_from(bits).ok());
    declared.unwrap_or(match image.samples() {
        Samples::U8 => 8,
        Samples::U16 => 16,
        Samples::Float | Samples::Other => 32,
    })
}

fn space(image: &Image<'_>) -> &'static str {
    match image.space() {
        Space::Grey => "b-w",
        Space::Grey16 => "grey16",
        Space::Srgb => "srgb",
        Space::Rgb16 => "rgb16",
        Space::LinearRgb => "scrgb",
        Space::Cmyk => "cmyk",
        Space::Lab => "lab",
        Space::Other => "other",
    }
}

fn delays(image: &Image<'_>) -> Vec<u32> {
    let delays = image.numbers(c"delay").unwrap_or_default();
    delays
        .into_iter()
        .take(MAX_DELAYS)
        .map(|delay| u32::try_from(delay).unwrap_or(0))
        .collect()
}

/// Returns the density only where the file has one: a raster without density is given one pixel per millimetre by
/// libvips.
fn density(format: Format, image: &Image<'_>) -> Option<f64> {
    const UNSAID: f64 = 1.0;
    let density = image.density();
    let said = !matches!(format, Format::Svg | Format::Pdf)
        && density.is_finite()
        && density > 0.0
        && (density - UNSAID).abs() > 1e-6;
    said.then(|| (density * MILLIMETRES_PER_INCH * 100.0).round() / 100.0)
}

/// EXIF tags by name. libvips writes `value (value, type, count, bytes)`.
fn exif(image: &Image<'_>) -> BTreeMap<String, String> {
    let mut tags = BTreeMap::new();
    for field in image.fields() {
        let Some(name) = field
            .to_str()
            .ok()
            .and_then(|field| field.strip_prefix("exif-ifd"))
            .and_then(|field| field.split_once('-'))
            .map(|(_, name)| name.to_owned())
        else {
            continue;
        };
        if tags.len() == MAX_TAGS {
            break;
        }
        let Some(value) = image.text(&field) else {
            continue;
        };
        let value = value.rsplit_once(" (").map_or(&*value, |(value, _)| value);
        let value = printable(value);
        if !value.is_empty() {
            tags.insert(name, value);
        }
    }
    tags
}

fn printable(text: &str) -> String {
    let letters: String = text
        .chars()
        .filter(|letter| !letter.is_control())
        .take(MAX_TEXT)
        .collect();
    letters.trim().to_owned()
}

/// Returns the name of an ICC profile: ASCII in version 2, UTF-16 in version 4 (ICC.1:2022 §9.2.41, §10.15).
fn description(icc: &[u8]) -> Option<String> {
    let tag = crate::image::planar::profile::tag(icc, b"desc")?;
    let text = match tag.get(..4)? {
        b"desc" => {
            let length = usize::try_from(number_at(tag, 8)?).ok()?;
            let ascii = tag.get(12..)?;
            let ascii = &ascii[..length.min(ascii.len())];
            ascii.iter().copied().map(char::from).collect()
        }
        b"mluc" => {
            let length = usize::try_from(number_at(tag, 20)?).ok()?;
            let start = usize::try_from(number_at(tag, 24)?).ok()?;
            let units = tag
                .get(start..start.checked_add(length)?)?
                .chunks_exact(2)
                .map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
            char::decode_utf16(units)
                .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect::<String>()
        }
        _ => return None,
    };
    let text = printable(&text);
    (!text.is_empty()).then_some(text)
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
