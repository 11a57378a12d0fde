//! Steps on one frame: crop, scale, smart crop, turn, rotate by any angle, canvas.

use sluice_media::geometry::Canvas;

use super::{
    colour,
    crop::PageCrop,
    safe::{Image, Operation, Refused},
};
use crate::image::planar::turn::Orientation;

/// Cuts and scales a decoded page; `scale` says how large its pixels are against those of the file (½ after a shrink by 2).
pub fn scale<'a>(page: &Image<'a>, cut: &PageCrop, scale: f64) -> Result<Image<'a>, Refused> {
    let page = colour::unpacked(page)?;
    let span = |start: f64, length: f64, limit: u32| {
        let first = ((start * scale).round() as u32).min(limit - 1);
        let end = (((start + length) * scale).round() as u32).clamp(first + 1, limit);
        (first, end - first)
    };
    let (left, width) = span(cut.from.left, cut.from.width, page.width().max(1));
    let (top, height) = span(cut.from.top, cut.from.height, page.height().max(1));
    let part = part_of(&page, left, top, width, height)?;
    let resized = if (width, height) == (cut.width, cut.height) {
        part
    } else {
        colour::premultiplied(part, |part| resize(&part, cut.width, cut.height))?
    };
    colour::to_srgb(resized)
}

/// A rectangle of the image.
pub fn part_of<'a>(
    image: &Image<'a>,
    left: u32,
    top: u32,
    width: u32,
    height: u32,
) -> Result<Image<'a>, Refused> {
    if (left, top, width, height) == (0, 0, image.width(), image.height()) {
        return Operation::on(c"copy", image).run();
    }
    Operation::new(c"extract_area")
        .image(c"input", image)
        .option(c"left", left)
        .option(c"top", top)
        .option(c"width", width)
        .option(c"height", height)
        .run()
}

/// Scales to exactly that size.
pub fn resize<'a>(image: &Image<'a>, width: u32, height: u32) -> Result<Image<'a>, Refused> {
    let resized = Operation::on(c"resize", image)
        .option(c"scale", f64::from(width) / f64::from(image.width()))
        .option(c"vscale", f64::from(height) / f64::from(image.height()))
        .run()?;
    if (resized.width(), resized.height()) == (width, height) {
        return Ok(resized);
    }
    Operation::on(c"embed", &resized)
        .option(c"x", 0)
        .option(c"y", 0)
        .option(c"width", width)
        .option(c"height", height)
        .option(c"extend", "copy")
        .run()
}

/// Returns the left and top of the part of that size that draws most attention.
pub fn attention(image: &Image<'_>, (width, height): (u32, u32)) -> Result<(u32, u32), Refused> {
    let chosen = Operation::new(c"smartcrop")
        .image(c"input", image)
        .option(c"width", width.min(image.width()))
        .option(c"height", height.min(image.height()))
        .option(c"interesting", "attention")
        .run()?;
    let (left, top) = chosen.offset();
    Ok((left.unsigned_abs(), top.unsigned_abs()))
}

/// Turns and mirrors.
pub fn turned(image: Image<'_>, turn: Orientation) -> Result<Image<'_>, Refused> {
    // A quarter turn clockwise is a transposition whose left and right are changed over.
    let (image, mirror) = if turn.transpose {
        let turned = Operation::on(c"rot", &image)
            .option(c"angle", "d90")
            .run()?;
        (turned, !turn.mirror)
    } else {
        (image, turn.mirror)
    };
    let direction = match (mirror, turn.flip) {
        (false, false) => return Ok(image),
        (true, true) => {
            return Operation::on(c"rot", &image).option(c"angle", "d180").run();
        }
        (true, false) => "horizontal",
        (false, true) => "vertical",
    };
    Operation::on(c"flip", &image)
        .option(c"direction", direction)
        .run()
}

/// Lays the image on a canvas of a colour, transparent without one.
pub fn on_canvas<'a>(
    image: Image<'a>,
    canvas: Canvas,
    fill: Option<sluice_media::task::Colour>,
) -> Result<Image<'a>, Refused> {
    if (canvas.width, canvas.height) == (image.width(), image.height()) {
        return Ok(image);
    }
    let (image, background) = with_fill(image, fill)?;
    Operation::on(c"embed", &image)
        .option(c"x", canvas.left)
        .option(c"y", canvas.top)
        .option(c"width", canvas.width)
        .option(c"height", canvas.height)
        .option(c"extend", "background")
        .option(c"background", background)
        .run()
}

/// Turns clockwise by any angle; new corners are of a colour, transparent without one.
pub fn rotated<'a>(
    image: Image<'a>,
    degrees: i32,
    fill: Option<sluice_media::task::Colour>,
) -> Result<Image<'a>, Refused> {
    if let Some(turn) = Orientation::clockwise(degrees) {
        return turned(image, turn);
    }
    let (image, background) = with_fill(image, fill)?;
    colour::premultiplied(image, |image| {
        Operation::on(c"rotate", &image)
            .option(c"angle", degrees)
            .option(c"background", &background)
            .run()
    })
}

/// The image with the bands that the fill needs, and the fill as an argument.
fn with_fill<'a>(
    image: Image<'a>,
    fill: Option<sluice_media::task::Colour>,
) -> Result<(Image<'a>, String), Refused> {
    let Some(fill) = fill else {
        let image = colour::with_alpha(image)?;
        let transparent = ["0"; 4][..image.bands() as usize].join(" ");
        return Ok((image, transparent));
    };
    let image = if colour::is_grey(fill) {
        image
    } else {
        colour::with_colours(image)?
    };
    let alpha = image.has_alpha();
    let colours = image.bands() - u32::from(alpha);
    let background = colour::numbers(fill, colours, alpha.then_some(255));
    Ok((image, background))
}
