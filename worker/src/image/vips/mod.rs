//! libvips path of images: every image and request that the planar path does not take.
//!
//! [`load`] opens a source by the loader of its format, [`render`] runs the steps of a request over it, [`encode`]
//! writes the result; [`safe`] is the only module that speaks to the library.

use sluice_media::{
    format::Format,
    geometry::MAX_SIDE,
    task::{
        Encode, Failure, Fit, ImageFacts, Limits, OutputFacts, Path, Render, Resize, Watermark,
    },
};

use self::{
    load::{Header, LoadedImage},
    render::{Frames, Timing, defect},
    safe::{Image, Operation},
};
use super::Raster;

mod adjust;
mod colour;
mod crop;
mod encode;
mod frame;
mod inspect;
mod load;
mod render;
mod safe;
mod trim;
mod watermark;

/// Starts libvips once; only the loaders of the formats we name stay usable. Starts no thread, and opens no font: a
/// sandbox that is put on afterwards has to leave those readable.
pub fn start() {
    safe::start();
}

/// Facts of an image, from its header alone; a giant is described as well.
pub fn inspect(source: Format, input: &[u8], limits: &Limits) -> Result<ImageFacts, Failure> {
    inspect::inspect(source, input, limits)
}

/// Renders `input`; `watermark` is the image of its watermark.
pub fn render(
    render: &Render,
    input: &[u8],
    watermark: Option<&[u8]>,
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let rendered = render::rendered(render, input, watermark, limits)?;
    written(&rendered, render, limits)
}

/// Renders pixels that another decoder made; they count as a lossless image of the render's source.
pub fn render_raster(
    render: &Render,
    raster: &Raster,
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let source = LoadedImage::decoded(render.source, raster)?;
    let rendered = render::of_source(&source, render, None, limits)?;
    written(&rendered, render, limits)
}

/// Renders frames that follow one another as one animation, which runs for ever. `delays`: milliseconds, one for each.
pub fn animate(
    render: &Render,
    rasters: impl Iterator<Item = Raster>,
    delays: Vec<i32>,
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let mut frames = Vec::with_capacity(delays.len());
    for raster in rasters {
        let source = LoadedImage::decoded(render.source, &raster)?;
        frames.extend(render::of_source(&source, render, None, limits)?.frames);
    }
    if frames.is_empty() || frames.len() != delays.len() {
        return Err(Failure::internal(
            "an animation's frames do not match their delays",
        ));
    }
    let timing = Timing { delays, loops: 0 };
    let rendered = Frames {
        frames,
        timing: Some(timing),
    };
    written(&rendered, render, limits)
}

/// Checks an animation before its frames are decoded.
pub fn check_animation(
    width: u32,
    height: u32,
    pages: u32,
    limits: &Limits,
) -> Result<(), Failure> {
    let header = Header {
        width,
        height,
        orientation: 1,
        pages,
    };
    load::check_frames(&header, limits)
}

/// Encodes an image, and returns its facts.
fn written(
    rendered: &Frames<'_>,
    render: &Render,
    limits: &Limits,
) -> Result<(OutputFacts, Vec<u8>), Failure> {
    let encoded = encode::encode(rendered, &render.output, render.keep_metadata, limits)?;
    let frame = &rendered.frames[0];
    let facts = OutputFacts {
        bytes: encoded.bytes.len() as u64,
        format: Some(render.output.format),
        width: Some(frame.width()),
        height: Some(frame.height()),
        pages: u32::try_from(rendered.frames.len()).unwrap_or(u32::MAX),
        duration_ms: None,
        applied_quality: encoded.applied_quality,
        path: Some(Path::Vips),
    };
    Ok((facts, encoded.bytes))
}

/// Decodes a PNG at its own size.
fn png(bytes: &[u8], limits: &Limits) -> Result<Raster, Failure> {
    raster(Format::Png, 1, bytes, limits, MAX_SIDE)
}

/// Decodes a page (1-based) to sRGB, upright, scaled down so that its long edge is at most `long_edge`; a vector is
/// drawn at it. Colours of grey images are equal.
pub fn raster(
    source: Format,
    page: u32,
    input: &[u8],
    limits: &Limits,
    long_edge: u32,
) -> Result<Raster, Failure> {
    let mut wanted = Render::new(source, Encode::new(Format::Png, 100));
    wanted.page = page;
    wanted.animate = false;
    wanted.resize = Some(Resize::new(Some(long_edge), Some(long_edge), Fit::Inside));
    let rendered = render::rendered(&wanted, input, None, limits)?;
    let frame = rendered.frames.into_iter().next().ok_or(safe::Refused);
    let image = frame.and_then(colour::with_colours).map_err(defect)?;
    Ok(Raster {
        width: image.width(),
        height: image.height(),
        bands: if image.has_alpha() { 4 } else { 3 },
        pixels: image.pixels().map_err(defect)?,
    })
}

/// Draws a watermark for images of `size`, with alpha; `None`: there is nothing to show. `input` is its image.
pub fn placed_watermark(
    wanted: &Watermark,
    input: Option<&[u8]>,
    size: (u32, u32),
    limits: &Limits,
) -> Result<Option<watermark::Placed<Raster>>, Failure> {
    let Some((watermark, place)) = watermark::placed(wanted, input, size, limits)? else {
        return Ok(None);
    };
    let raster = Raster {
        width: watermark.width(),
        height: watermark.height(),
        bands: 4,
        pixels: watermark.pixels().map_err(defect)?,
    };
    Ok(Some((raster, place)))
}

/// Writes a raster in a format, without metadata.
pub fn encode_raster(raster: &Raster, encode: &Encode) -> Result<Vec<u8>, Failure> {
    let frame = image_of(raster)?;
    let frame = if encode.format.has_alpha() {
        frame
    } else {
        colour::flatten(frame, render::WHITE).map_err(defect)?
    };
    let rendered = Frames {
        frames: vec![frame],
        timing: None,
    };
    let limits = Limits {
        max_pixels: u64::MAX,
        max_frames: 1,
        max_total_pixels: u64::MAX,
        max_output_bytes: u64::MAX,
        max_members: 0,
        max_duration_ms: 0,
        max_side: 0,
    };
    encode::encode(&rendered, encode, false, &limits).map(|encoded| encoded.bytes)
}

/// The image of a raster; one whose pixels do not match its size is a defect of ours.
fn image_of(raster: &Raster) -> Result<Image<'static>, Failure> {
    let length = u64::from(raster.width) * u64::from(raster.height) * u64::from(raster.bands);
    if raster.pixels.len() as u64 != length || !matches!(raster.bands, 3 | 4) {
        return Err(Failure::internal("a raster's pixels do not match its size"));
    }
    // Bare pixels have no colour space, and without one a fourth band is no alpha channel.
    Image::from_pixels(&raster.pixels, raster.width, raster.height, raster.bands)
        .and_then(|image| {
            Operation::on(c"copy", &image)
                .option(c"interpretation", "srgb")
                .run()
        })
        .map_err(defect)
}
