//! Order of steps of a render: source → page → trim → crop and resize → canvas → rotate → flip → adjust → watermark →
//! background. It is the order of a [`Render`]'s fields.
//!
//! Pixels are read once, from the top, while they are cut and scaled; what comes out is kept in memory, and every later
//! step works on that small image. A failure up to there is the file's, one after it ours.

use sluice_media::{
    format::Format,
    geometry::Rect,
    task::{Adjust, Colour, Failure, FailureCode, Limits, Render},
};

use super::{
    adjust, colour,
    crop::PageCrop,
    frame,
    load::{self, Header, LoadedImage, Options, Scale},
    safe::{Image, Refused},
    trim,
    watermark::Overlay,
};
use crate::image::{bounds::check_pixels, planar::turn::Orientation};

/// Size of a JPEG scaled by its decoder, as a multiple of the result: enough for the last resize to be sharp.
const JPEG_MARGIN: f64 = 1.5;
/// The same for WebP, whose decoder scales to any size.
const WEBP_MARGIN: f64 = 1.5;
/// Colour behind transparency in every output without it.
pub const WHITE: Colour = Colour {
    red: 255,
    green: 255,
    blue: 255,
};

/// Frames of one size to be written, in memory; at least one.
pub struct Frames<'a> {
    pub frames: Vec<Image<'a>>,
    pub timing: Option<Timing>,
}

/// Timing of an animation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Milliseconds, one for each frame.
    pub delays: Vec<i32>,
    /// 0: for ever.
    pub loops: i32,
}

/// Performs every step but the encoding.
pub fn rendered<'a>(
    render: &Render,
    input: &'a [u8],
    watermark: Option<&'a [u8]>,
    limits: &Limits,
) -> Result<Frames<'a>, Failure> {
    of_source(
        &LoadedImage::new(render.source, input, limits)?,
        render,
        watermark,
        limits,
    )
}

/// The same with a source that is open.
pub fn of_source<'a>(
    source: &LoadedImage<'a>,
    render: &Render,
    watermark: Option<&'a [u8]>,
    limits: &Limits,
) -> Result<Frames<'a>, Failure> {
    let drawn = draw(source, render, watermark, limits, false);
    // Cameras write HEIFs whose main image this library cannot decode (10 bits in 4:2:2), beside a large preview.
    let is_preview_worth_it = matches!(&drawn, Err(failure) if failure.code == FailureCode::Undecodable)
        && render.source == Format::Heif;
    if is_preview_worth_it {
        return draw(source, render, watermark, limits, true).or(drawn);
    }
    drawn
}

fn draw<'a>(
    source: &LoadedImage<'a>,
    render: &Render,
    watermark: Option<&'a [u8]>,
    limits: &Limits,
    preview: bool,
) -> Result<Frames<'a>, Failure> {
    let undecodable = |Refused| source.undecodable();
    let options = Options {
        preview,
        ..Options::FIRST
    };
    let (options, header) = choose_page(source, render, options, limits)?;
    let kept = if render.trim {
        kept(source, &header, options)?
    } else {
        whole(&header)
    };
    let cut = PageCrop::plan(render, &header, kept, source.is_vector())?;
    check_result(&cut, limits)?;

    let animated = render.animate
        && header.pages > 1
        && source.format.can_animate()
        && render.output.format.can_animate();
    let options = Options {
        all: animated,
        scale: decoder_scale(source.format, &cut, animated),
        ..options
    };
    if animated {
        load::check_frames(&header, limits)?;
    }
    let opened = source.open(options)?;
    let (mut frames, timing) = if animated {
        (
            scaled_frames(&opened, &header, &cut).map_err(undecodable)?,
            Some(timing(&opened, header.pages)),
        )
    } else {
        let scale = pixel_scale(options.scale);
        if source.is_vector() {
            check_pixels(opened.width(), opened.height(), limits)?;
        }
        let frame = frame::scale(&opened, &cut, scale)
            .and_then(|frame| frame.in_memory())
            .map_err(undecodable)?;
        (vec![frame], None)
    };
    if frames.is_empty() {
        return Err(source.undecodable());
    }
    if let Some(size) = cut.attention {
        frames = cut_by_attention(frames, size).map_err(defect)?;
    }
    let watermark = Overlay::prepare(render, watermark, limits)?;
    let frames = frames
        .into_iter()
        .map(|frame| finish(frame, render, &cut, &watermark))
        .collect::<Result<Vec<_>, _>>()
        .map_err(defect)?;
    Ok(Frames { frames, timing })
}

/// Finds the page asked for and checks its header.
fn choose_page(
    source: &LoadedImage<'_>,
    render: &Render,
    options: Options,
    limits: &Limits,
) -> Result<(Options, Header), Failure> {
    let first = source.open(options)?;
    let header = source.header(&first, limits)?;
    let page = source.page(render.page, &first, header.pages)?;
    if page == options.page {
        return Ok((options, header));
    }
    let options = Options { page, ..options };
    let header = source.header(&source.open(options)?, limits)?;
    Ok((options, header))
}

fn whole(header: &Header) -> Rect {
    Rect {
        left: 0.0,
        top: 0.0,
        width: f64::from(header.width),
        height: f64::from(header.height),
    }
}

/// Returns the rest of a page after trimming, in its own pixels or points. A vector is drawn for that in a size that is
/// cheap.
fn kept(source: &LoadedImage<'_>, header: &Header, options: Options) -> Result<Rect, Failure> {
    const DRAWN_LONG_EDGE: f64 = 1024.0;
    let scale = if source.is_vector() {
        Scale::By(DRAWN_LONG_EDGE / f64::from(header.width.max(header.height).max(1)))
    } else {
        Scale::Full
    };
    let page = source.open(Options { scale, ..options })?;
    let kept = trim::kept(&page).map_err(|Refused| source.undecodable())?;
    let size = pixel_scale(scale);
    Ok(Rect {
        left: kept.left / size,
        top: kept.top / size,
        width: kept.width / size,
        height: kept.height / size,
    })
}

/// The result may be larger than the source: an enlargement, a vector, a canvas.
fn check_result(cut: &PageCrop, limits: &Limits) -> Result<(), Failure> {
    check_pixels(cut.width, cut.height, limits)?;
    match cut.canvas {
        Some(canvas) => check_pixels(canvas.width, canvas.height, limits),
        None => Ok(()),
    }
}

/// Returns the scaling that the decoder does more cheaply than a resize.
fn decoder_scale(format: Format, cut: &PageCrop, animated: bool) -> Scale {
    match format {
        Format::Svg | Format::Pdf => Scale::By(1.0 / cut.shrink()),
        Format::Jpg => [8, 4, 2]
            .into_iter()
            .find(|factor| cut.shrink() / f64::from(*factor) >= JPEG_MARGIN)
            .map_or(Scale::Full, Scale::Shrunk),
        Format::Webp if !animated && cut.shrink() > WEBP_MARGIN => {
            Scale::By(WEBP_MARGIN / cut.shrink())
        }
        _ => Scale::Full,
    }
}

fn pixel_scale(scale: Scale) -> f64 {
    match scale {
        Scale::Full => 1.0,
        Scale::Shrunk(factor) => 1.0 / f64::from(factor),
        Scale::By(factor) => factor,
    }
}

/// Cuts the roll of frames apart and scales each; they are read in order, each once.
fn scaled_frames<'a>(
    roll: &Image<'a>,
    header: &Header,
    cut: &PageCrop,
) -> Result<Vec<Image<'a>>, Refused> {
    let count = roll.height() / header.height.max(1);
    (0..count)
        .map(|index| {
            let top = index * header.height;
            let page = frame::part_of(roll, 0, top, header.width, header.height)?;
            frame::scale(&page, cut, 1.0)?.in_memory()
        })
        .collect()
}

/// Delays may be missing or fewer than frames; a tenth of a second is what viewers take then.
fn timing(roll: &Image<'_>, frames: u32) -> Timing {
    const USUAL_DELAY_MS: i32 = 100;
    let mut delays = roll.numbers(c"delay").unwrap_or_default();
    delays.resize(frames as usize, USUAL_DELAY_MS);
    Timing {
        delays,
        loops: roll.number(c"loop").unwrap_or(0),
    }
}

/// The first frame decides, so that an animation does not jump.
fn cut_by_attention(
    frames: Vec<Image<'_>>,
    (width, height): (u32, u32),
) -> Result<Vec<Image<'_>>, Refused> {
    let Some(first) = frames.first() else {
        return Ok(frames);
    };
    let (left, top) = frame::attention(first, (width, height))?;
    frames
        .iter()
        .map(|frame| frame::part_of(frame, left, top, width, height))
        .collect()
}

/// Every step after the size.
fn finish<'a>(
    image: Image<'a>,
    render: &Render,
    cut: &PageCrop,
    watermark: &Overlay<'a>,
) -> Result<Image<'a>, Refused> {
    // All fields by name: a new step is done here or before.
    let &Render {
        // What `cut` and the loading of the page were made from.
        source: _,
        page: _,
        animate: _,
        auto_orient: _,
        trim: _,
        crop: _,
        resize: _,
        vector_long_edge: _,
        rotate,
        flip,
        flop,
        ref adjust,
        // In the parameter `watermark`.
        watermark: _,
        // In `behind`.
        background: _,
        // For the encoder.
        keep_metadata: _,
        output: _,
        path: _,
    } = render;
    let behind = behind(render);
    // Colour changes are for the image: what is filled up before them stays transparent until they are done.
    let fill = behind.filter(|_| *adjust == Adjust::default());
    let mut image = frame::turned(image, cut.turn)?;
    if let Some(canvas) = cut.canvas {
        image = frame::on_canvas(image, canvas, fill)?;
    }
    if rotate % 360 != 0 {
        image = frame::rotated(image, rotate, fill)?.in_memory()?;
    }
    image = frame::turned(image, Orientation::mirrored(flop, flip))?;
    image = adjust::apply(image, adjust)?;
    image = watermark.apply(image)?;
    if let Some(behind) = behind {
        image = colour::flatten(image, behind)?;
    }
    image.in_memory()
}

/// Returns the colour behind transparency in the result.
fn behind(render: &Render) -> Option<Colour> {
    let needed = (!render.output.format.has_alpha()).then_some(WHITE);
    render.background.or(needed)
}

/// A step on pixels in memory does not fail, unless they are of a form (bands, depth) that the step does not take.
pub fn defect(_: Refused) -> Failure {
    Failure::new(
        FailureCode::Impossible,
        "the image is of a form that this cannot be done with",
    )
}
