//! Adjustments of images: blur, sharpen, brightness, contrast, saturation, hue, grayscale, invert. They work on 8-bit
//! sRGB or grey with or without alpha.

use sluice_media::task::Adjust;

use super::{
    colour,
    safe::{Image, Operation, Refused, Space},
};

/// Middle grey, about which contrast turns.
const MIDDLE: f32 = 128.0;
/// A wider blur looks the same and costs more.
const MAX_SIGMA: f32 = 250.0;
/// Widest mask of `sharpen`.
const MAX_SHARPEN: f32 = 10.0;

/// Blur, sharpen, brightness, contrast, saturation and hue, grey, inverse, in this order.
pub fn apply<'a>(image: Image<'a>, adjust: &Adjust) -> Result<Image<'a>, Refused> {
    let &Adjust {
        blur,
        sharpen,
        brightness,
        contrast,
        saturation,
        hue,
        grayscale,
        invert,
    } = adjust;
    let mut image = image;
    if blur > 0.0 {
        image = blurred(image, blur)?;
    }
    if sharpen > 0.0 {
        image = colour::on_colours(image, |colours| sharpened(&colours, sharpen))?;
    }
    if brightness != 1.0 || contrast != 1.0 {
        image = colour::on_colours(image, |colours| lightened(&colours, brightness, contrast))?;
    }
    let has_colour = image.space() == Space::Srgb;
    if has_colour && (saturation != 1.0 || hue % 360.0 != 0.0) {
        image = colour::on_colours(image, |colours| coloured(&colours, saturation, hue))?;
    }
    if has_colour && grayscale {
        image = colour::on_colours(image, |colours| in_space(&colours, "b-w"))?;
    }
    if invert {
        image = colour::on_colours(image, |colours| Operation::on(c"invert", &colours).run())?;
    }
    Ok(image)
}

fn blurred(image: Image<'_>, sigma: f32) -> Result<Image<'_>, Refused> {
    colour::premultiplied(image, |image| {
        Operation::on(c"gaussblur", &image)
            .option(c"sigma", sigma.min(MAX_SIGMA))
            .run()
    })
}

/// An unsharp mask on lightness.
fn sharpened<'a>(colours: &Image<'a>, sigma: f32) -> Result<Image<'a>, Refused> {
    let grey = colours.space() == Space::Grey;
    let sharpened = Operation::on(c"sharpen", colours)
        .option(c"sigma", sigma.clamp(0.1, MAX_SHARPEN))
        .run()?;
    in_space(&sharpened, if grey { "b-w" } else { "srgb" })
}

fn lightened<'a>(
    colours: &Image<'a>,
    brightness: f32,
    contrast: f32,
) -> Result<Image<'a>, Refused> {
    let factor = brightness * contrast;
    let term = MIDDLE * (1.0 - contrast);
    colour::to_u8(colour::linear(
        colours,
        &factor.to_string(),
        &term.to_string(),
    )?)
}

/// Chroma and hue in CIE LCh, lightness untouched.
fn coloured<'a>(colours: &Image<'a>, saturation: f32, hue: f32) -> Result<Image<'a>, Refused> {
    let lch = in_space(colours, "lch")?;
    let changed = colour::linear(&lch, &format!("1 {saturation} 1"), &format!("0 0 {hue}"))?;
    let changed = Operation::on(c"copy", &changed)
        .option(c"interpretation", "lch")
        .run()?;
    in_space(&changed, "srgb")
}

fn in_space<'a>(image: &Image<'a>, space: &str) -> Result<Image<'a>, Refused> {
    Operation::on(c"colourspace", image)
        .option(c"space", space)
        .run()
}
