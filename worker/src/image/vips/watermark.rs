//! Watermark over an image: an image, a line of text, or one above the other; font, shadow, position, margin, opacity.
//!
//! Text is plain text in one font family; nothing in it is markup.

use std::cell::OnceCell;

use sluice_media::task::{Encode, Failure, Limits, Render, Resize, Watermark};
use sluice_media::{format::Format, task::Fit};

use super::{
    colour, frame,
    render::{self, defect},
    safe::{Image, Operation, Refused},
};

/// Font of a text.
const FONT: &str = "DejaVu Sans Bold";
/// Letters of a text; what is longer is unreadable at any size.
const MAX_LETTERS: usize = 200;
/// The font's size, in pixels, at which a text is measured.
const MEASURED_SIZE: f64 = 48.0;
/// Largest font, in pixels.
const MAX_FONT_SIZE: f64 = 512.0;
/// Darkness of the shadow that keeps white letters readable on white, 0 to 1.
const SHADOW: f64 = 0.6;
/// A watermark without a width takes this share of the image's.
const USUAL_SHARE: u32 = 5;
/// The size up to which a watermark's image is decoded.
const MAX_IMAGE_SIDE: u32 = 4096;

/// Overlay of every frame; empty for a render without a watermark.
pub struct Overlay<'a> {
    wanted: Option<(Watermark, Option<Image<'a>>)>,
    /// Made for the first frame; all are of one size.
    made: OnceCell<Option<Image<'a>>>,
}

impl<'a> Overlay<'a> {
    /// Decodes the watermark's image.
    pub fn prepare(
        render: &Render,
        input: Option<&'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, Failure> {
        let Some(wanted) = &render.watermark else {
            return Ok(Self {
                wanted: None,
                made: OnceCell::new(),
            });
        };
        Ok(Self {
            wanted: Some((wanted.clone(), overlay(wanted, input, limits)?)),
            made: OnceCell::new(),
        })
    }

    /// Lays the watermark over an image in memory.
    pub fn apply(&self, image: Image<'a>) -> Result<Image<'a>, Refused> {
        let Some((wanted, overlay)) = &self.wanted else {
            return Ok(image);
        };
        if self.made.get().is_none() {
            let made = made(wanted, overlay.as_ref(), size(&image))?;
            self.made.get_or_init(|| made);
        }
        match self.made.get() {
            Some(Some(watermark)) => laid_over(image, watermark, wanted),
            _ => Ok(image),
        }
    }
}

/// A watermark with the place of its top left corner, in pixels from the left and from the top.
pub type Placed<I> = (I, (u32, u32));

/// The watermark for images of a size; `None` when there is nothing to show.
pub fn placed<'a>(
    wanted: &Watermark,
    input: Option<&'a [u8]>,
    size: (u32, u32),
    limits: &Limits,
) -> Result<Option<Placed<Image<'a>>>, Failure> {
    let overlay = overlay(wanted, input, limits)?;
    let watermark = made(wanted, overlay.as_ref(), size).map_err(defect)?;
    Ok(watermark.map(|watermark| {
        let place = place(wanted, size, (watermark.width(), watermark.height()));
        (watermark, place)
    }))
}

/// The image of a watermark, decoded. A watermark that has one and comes without it is a defect of ours.
fn overlay<'a>(
    wanted: &Watermark,
    input: Option<&'a [u8]>,
    limits: &Limits,
) -> Result<Option<Image<'a>>, Failure> {
    match (wanted.image, input) {
        (None, _) => Ok(None),
        (Some(format), Some(input)) => decoded(format, wanted, input, limits).map(Some),
        (Some(_), None) => Err(Failure::internal("a watermark came without its image")),
    }
}

fn size(image: &Image<'_>) -> (u32, u32) {
    (image.width(), image.height())
}

/// The watermark for images of that size; `None` when there is nothing to show.
fn made<'a>(
    wanted: &Watermark,
    overlay: Option<&Image<'a>>,
    size: (u32, u32),
) -> Result<Option<Image<'a>>, Refused> {
    let room = room(size, wanted.margin);
    let width = wanted
        .width
        .unwrap_or(size.0 / USUAL_SHARE)
        .clamp(1, room.0);
    let room = (width, room.1);
    let overlay = overlay.map(|overlay| scaled(overlay, room)).transpose()?;
    let text = wanted
        .text
        .as_deref()
        .map(plain)
        .filter(|text| !text.is_empty())
        .map(|text| written(&text, room))
        .transpose()?;
    let watermark = match (overlay, text) {
        (Some(overlay), Some(text)) => scaled(&stacked(overlay, text)?, room)?,
        (Some(watermark), None) | (None, Some(watermark)) => watermark,
        (None, None) => return Ok(None),
    };
    faded(&watermark, wanted.opacity)?.in_memory().map(Some)
}

fn decoded<'a>(
    format: Format,
    wanted: &Watermark,
    input: &'a [u8],
    limits: &Limits,
) -> Result<Image<'a>, Failure> {
    let side = wanted
        .width
        .unwrap_or(MAX_IMAGE_SIDE)
        .clamp(1, MAX_IMAGE_SIDE);
    let mut render = Render::new(format, Encode::new(Format::Png, 100));
    render.animate = false;
    render.resize = Some(Resize::new(Some(side), Some(MAX_IMAGE_SIDE), Fit::Inside));
    let overlay = render::rendered(&render, input, None, limits).map_err(|failure| {
        Failure::new(
            failure.code,
            format!("the watermark's image: {}", failure.message),
        )
    })?;
    let frame = overlay.frames.into_iter().next().ok_or(Refused);
    frame
        .and_then(colour::with_colours)
        .and_then(colour::with_alpha)
        .and_then(|watermark| watermark.in_memory())
        .map_err(defect)
}

/// The size inside of the margins, which give way on small images.
fn room(size: (u32, u32), margin: u32) -> (u32, u32) {
    let inner = |side: u32| side - 2 * bounded(margin, side);
    (inner(size.0), inner(size.1))
}

/// At least a third of the image stays between two margins.
fn bounded(margin: u32, side: u32) -> u32 {
    margin.min(side / 3).min(side.saturating_sub(1) / 2)
}

/// The watermark at that width, or as wide as its height lets it be.
fn scaled<'a>(watermark: &Image<'a>, (width, height): (u32, u32)) -> Result<Image<'a>, Refused> {
    let scale = (f64::from(width) / f64::from(watermark.width()))
        .min(f64::from(height) / f64::from(watermark.height()));
    let side = |side: u32, most: u32| ((f64::from(side) * scale).round() as u32).clamp(1, most);
    let (width, height) = (
        side(watermark.width(), width),
        side(watermark.height(), height),
    );
    let copy = Operation::on(c"copy", watermark).run()?;
    if (width, height) == (watermark.width(), watermark.height()) {
        return Ok(copy);
    }
    colour::premultiplied(copy, |watermark| frame::resize(&watermark, width, height))?.in_memory()
}

/// Text without control characters, of bounded length.
fn plain(text: &str) -> String {
    let letters: String = text
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .filter(|letter| !letter.is_control())
        .take(MAX_LETTERS)
        .collect();
    letters.trim().to_owned()
}

/// White letters with a soft shadow, as wide or as high as the room allows.
fn written<'a>(text: &str, (width, height): (u32, u32)) -> Result<Image<'a>, Refused> {
    let measured = letters(text, MEASURED_SIZE)?;
    let growth = (f64::from(width) / f64::from(measured.width().max(1)))
        .min(f64::from(height) / f64::from(measured.height().max(1)));
    let size = (MEASURED_SIZE * growth).clamp(1.0, MAX_FONT_SIZE);
    let mask = letters(text, size)?;
    let spread = (size / 16.0).clamp(0.6, 8.0);
    let border = spread.ceil() as u32 * 2;
    let mask = Operation::on(c"embed", &mask)
        .option(c"x", border)
        .option(c"y", border)
        .option(c"width", mask.width() + 2 * border)
        .option(c"height", mask.height() + 2 * border)
        .run()?
        .in_memory()?;
    let shadow = Operation::on(c"gaussblur", &mask)
        .option(c"sigma", spread)
        .run()?;
    let shadow = colour::linear(&shadow, &SHADOW.to_string(), "0")?;
    let watermark = over(
        &tinted(&colour::to_u8(shadow)?, 0)?,
        &tinted(&mask, 255)?,
        0,
        0,
    )?;
    scaled(&watermark.in_memory()?, (width, height))
}

/// The letters as a mask, by Pango, at that size in pixels.
fn letters<'a>(text: &str, size: f64) -> Result<Image<'a>, Refused> {
    Operation::new(c"text")
        .option(c"text", escaped(text))
        .option(c"font", format!("{FONT} {size:.2}"))
        .option(c"dpi", 72)
        .run()
}

/// Text whose signs Pango would read as markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A grey of which the mask says how much shows, in four bands.
fn tinted<'a>(mask: &Image<'a>, grey: u8) -> Result<Image<'a>, Refused> {
    let flat = colour::to_u8(colour::linear(
        mask,
        "0 0 0",
        &format!("{grey} {grey} {grey}"),
    )?)?;
    let flat = Operation::on(c"copy", &flat)
        .option(c"interpretation", "srgb")
        .run()?;
    let mask = Operation::on(c"copy", mask).run()?;
    Operation::new(c"bandjoin")
        .images(c"in", &[flat, mask])
        .run()
}

/// Puts one image above the other, both in the middle.
fn stacked<'a>(above: Image<'a>, below: Image<'a>) -> Result<Image<'a>, Refused> {
    Operation::new(c"arrayjoin")
        .images(c"in", &[above, below])
        .option(c"across", 1)
        .option(c"halign", "centre")
        .option(c"hspacing", 0)
        .run()
}

fn faded<'a>(watermark: &Image<'a>, opacity: f32) -> Result<Image<'a>, Refused> {
    let opacity = opacity.clamp(0.0, 1.0);
    let faded = colour::linear(watermark, &format!("1 1 1 {opacity}"), "0 0 0 0")?;
    colour::to_u8(faded)
}

/// Returns the place of a watermark's top left corner; positions count in reading order from 1.
fn place(wanted: &Watermark, size: (u32, u32), watermark: (u32, u32)) -> (u32, u32) {
    let place = u32::from(wanted.position.clamp(1, 9)) - 1;
    let start = |third: u32, side: u32, watermark: u32| {
        let margin = bounded(wanted.margin, side);
        match third {
            0 => margin,
            1 => side.saturating_sub(watermark) / 2,
            _ => side.saturating_sub(watermark + margin),
        }
    };
    (
        start(place % 3, size.0, watermark.0),
        start(place / 3, size.1, watermark.1),
    )
}

/// Lays the watermark at its place.
fn laid_over<'a>(
    image: Image<'a>,
    watermark: &Image<'a>,
    wanted: &Watermark,
) -> Result<Image<'a>, Refused> {
    let (left, top) = place(wanted, size(&image), size(watermark));
    let opaque = !image.has_alpha();
    let image = colour::with_colours(image)?;
    let marked = over(&image, watermark, left, top)?;
    if opaque {
        return colour::bands_of(&marked, 0, 3);
    }
    Ok(marked)
}

fn over<'a>(
    image: &Image<'a>,
    watermark: &Image<'a>,
    left: u32,
    top: u32,
) -> Result<Image<'a>, Refused> {
    let composed = Operation::new(c"composite2")
        .image(c"base", image)
        .image(c"overlay", watermark)
        .option(c"mode", "over")
        .option(c"x", left)
        .option(c"y", top)
        .run()?;
    colour::to_u8(composed)
}
