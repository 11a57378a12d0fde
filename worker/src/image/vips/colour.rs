//! Colours of images: ICC profiles, CMYK, Lab and 16 bits to 8-bit sRGB or grey; alpha, background.
//!
//! An image without a profile is taken as sRGB (CMYK: as a common press), and a broken profile as none. Grey stays
//! grey until something coloured is added.

use sluice_media::task::Colour;

use super::safe::{Image, Operation, Refused, Samples, Space};
use crate::image::planar::profile;

pub const PROFILE: &std::ffi::CStr = c"icc-profile-data";

/// Turns the image into 8 bits of sRGB or grey, with or without alpha.
pub fn to_srgb<'a>(image: Image<'a>) -> Result<Image<'a>, Refused> {
    let foreign = foreign_profile(&image);
    let plain = matches!(image.space(), Space::Srgb | Space::Grey);
    if plain && !foreign && image.samples() == Samples::U8 && image.bands() <= 4 {
        return Ok(image);
    }
    if !image.has_alpha() {
        return colours_to_srgb(&image, foreign);
    }
    let count = colour_bands(&image);
    let colours = bands_of(&image, 0, count)?;
    let alpha = alpha_to_u8(&image, count)?;
    join(colours_to_srgb(&colours, foreign)?, alpha)
}

/// Bands before the alpha; what comes after it means nothing to us.
fn colour_bands(image: &Image<'_>) -> u32 {
    let usual = match image.space() {
        Space::Grey | Space::Grey16 => 1,
        Space::Cmyk => 4,
        Space::Srgb | Space::Rgb16 | Space::LinearRgb | Space::Lab => 3,
        Space::Other => image.bands() - 1,
    };
    usual.min(image.bands() - 1)
}

/// CIE Lab comes packed, in a form that no other operation reads.
pub fn unpacked<'a>(image: &Image<'a>) -> Result<Image<'a>, Refused> {
    if image.space() == Space::Lab {
        return Operation::on(c"colourspace", image)
            .option(c"space", "srgb")
            .run();
    }
    Operation::on(c"copy", image).run()
}

/// Returns whether the embedded profile is another one than sRGB.
fn foreign_profile(image: &Image<'_>) -> bool {
    image
        .blob(PROFILE)
        .is_some_and(|profile| !profile::is_srgb(&profile))
}

fn colours_to_srgb<'a>(image: &Image<'a>, foreign: bool) -> Result<Image<'a>, Refused> {
    if foreign && let Ok(image) = through_profile(image) {
        return Ok(image);
    }
    let grey = matches!(image.space(), Space::Grey | Space::Grey16)
        || (image.space() == Space::Other && image.bands() < 3);
    let known = if image.space() == Space::Other {
        let kept = if image.bands() < 3 { 1 } else { 3 };
        let kept = bands_of(image, 0, kept)?;
        Operation::on(c"copy", &kept)
            .option(c"interpretation", if grey { "b-w" } else { "srgb" })
            .run()?
    } else {
        Operation::on(c"copy", image).run()?
    };
    let converted = Operation::on(c"colourspace", &known)
        .option(c"space", if grey { "b-w" } else { "srgb" })
        .run()?;
    to_u8(converted)
}

fn through_profile<'a>(image: &Image<'a>) -> Result<Image<'a>, Refused> {
    Operation::on(c"icc_transform", image)
        .option(c"output-profile", "srgb")
        .option(c"embedded", true)
        .option(c"depth", 8)
        .run()
}

fn alpha_to_u8<'a>(image: &Image<'a>, band: u32) -> Result<Image<'a>, Refused> {
    let alpha = bands_of(image, band, 1)?;
    match image.samples() {
        Samples::U8 => Ok(alpha),
        Samples::U16 => to_u8(linear(&alpha, "0.0038910505836575876", "0")?),
        Samples::Float if image.space() == Space::LinearRgb => to_u8(linear(&alpha, "255", "0")?),
        _ => to_u8(alpha),
    }
}

/// Adds grey's missing bands.
pub fn with_colours(image: Image<'_>) -> Result<Image<'_>, Refused> {
    if image.space() == Space::Srgb {
        return Ok(image);
    }
    Operation::on(c"colourspace", &image)
        .option(c"space", "srgb")
        .run()
}

/// Adds an opaque alpha when there is none.
pub fn with_alpha(image: Image<'_>) -> Result<Image<'_>, Refused> {
    if image.has_alpha() {
        return Ok(image);
    }
    Operation::on(c"bandjoin_const", &image)
        .option(c"c", 255)
        .run()
}

/// Lays the image on a colour, which ends its alpha.
pub fn flatten(image: Image<'_>, background: Colour) -> Result<Image<'_>, Refused> {
    if !image.has_alpha() {
        return Ok(image);
    }
    let image = if is_grey(background) {
        image
    } else {
        with_colours(image)?
    };
    Operation::on(c"flatten", &image)
        .option(c"background", numbers(background, image.bands() - 1, None))
        .run()
}

/// The colour as the argument of an operation on that many colour bands.
pub fn numbers(colour: Colour, bands: u32, alpha: Option<u8>) -> String {
    let Colour { red, green, blue } = colour;
    let mut numbers = if bands < 3 {
        red.to_string()
    } else {
        format!("{red} {green} {blue}")
    };
    if let Some(alpha) = alpha {
        numbers.push_str(&format!(" {alpha}"));
    }
    numbers
}

pub fn is_grey(colour: Colour) -> bool {
    colour.red == colour.green && colour.green == colour.blue
}

/// Applies `work` to the colours alone; alpha stays as it is.
pub fn on_colours<'a>(
    image: Image<'a>,
    work: impl FnOnce(Image<'a>) -> Result<Image<'a>, Refused>,
) -> Result<Image<'a>, Refused> {
    if !image.has_alpha() {
        return work(image);
    }
    let last = image.bands() - 1;
    let alpha = bands_of(&image, last, 1)?;
    join(work(bands_of(&image, 0, last)?)?, alpha)
}

/// Applies `work` to an image whose colours are multiplied by alpha, so that what is transparent does not shine through.
pub fn premultiplied<'a>(
    image: Image<'a>,
    work: impl FnOnce(Image<'a>) -> Result<Image<'a>, Refused>,
) -> Result<Image<'a>, Refused> {
    if !image.has_alpha() {
        return work(image);
    }
    let samples = image.samples();
    let worked = work(Operation::on(c"premultiply", &image).run()?)?;
    let worked = Operation::on(c"unpremultiply", &worked).run()?;
    match samples {
        Samples::U8 => cast(&worked, "uchar"),
        Samples::U16 => cast(&worked, "ushort"),
        Samples::Float | Samples::Other => Ok(worked),
    }
}

/// `pixel × factors + terms`, rounded to 8 bits.
pub fn linear<'a>(image: &Image<'a>, factors: &str, terms: &str) -> Result<Image<'a>, Refused> {
    Operation::on(c"linear", image)
        .option(c"a", factors)
        .option(c"b", terms)
        .run()
}

pub fn to_u8(image: Image<'_>) -> Result<Image<'_>, Refused> {
    if image.samples() == Samples::U8 {
        return Ok(image);
    }
    cast(&image, "uchar")
}

pub fn bands_of<'a>(image: &Image<'a>, first: u32, count: u32) -> Result<Image<'a>, Refused> {
    Operation::on(c"extract_band", image)
        .option(c"band", first)
        .option(c"n", count)
        .run()
}

fn cast<'a>(image: &Image<'a>, format: &str) -> Result<Image<'a>, Refused> {
    Operation::on(c"cast", image)
        .option(c"format", format)
        .run()
}

fn join<'a>(colours: Image<'a>, alpha: Image<'a>) -> Result<Image<'a>, Refused> {
    Operation::new(c"bandjoin")
        .images(c"in", &[colours, alpha])
        .run()
}
