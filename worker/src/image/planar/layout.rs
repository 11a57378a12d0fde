//! Layout of a planar render, decided before a sample is read: which requests the planar path takes, decode scale,
//! crop, size, chroma sampling.

use sluice_media::format::Format;
use sluice_media::geometry::{self, Plan, Rect};
use sluice_media::task::{Adjust, Crop, Gravity, Path, Render, Resize};

use super::head::Head;
use super::plane::Sampling;
use super::turn::Orientation;

/// The decode leaves at least this much more than the target. Measured: 1.06 costs two points of SSIMULACRA2.
const LEAST_SHRINK_AFTER_DECODE: f64 = 1.5;

/// Below it something grows, which is left to libvips; what is missing to 1 is rounding.
const LEAST_SHRINK: f64 = 1.0 - 1e-6;

/// From this quality on colour is kept at full resolution, as libvips does.
const FULL_CHROMA_QUALITY: u8 = 90;

/// Smallest side whose colour is halved: of an odd side the last colour sample is half outside the image, which is
/// visible in a few pixels.
const LEAST_HALVED_SIDE: u32 = 16;

/// Everything is in pixels of the image as stored, since planes are turned last, when they are small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// The JPEG is decoded at 1 / this: 1, 2, 4 or 8.
    pub divisor: u32,
    /// The part of the source that becomes the padded result; it may reach over the edges by less than a result's pixel.
    pub window: Rect,
    /// The size of the result before it is turned, padded to whole chroma samples.
    pub padded: (u32, u32),
    pub turn: Orientation,
    /// The size of the result, turned and without padding.
    pub size: (u32, u32),
    pub sampling: Sampling,
}

impl Layout {
    /// Plans a render; `None` when the request or the image is not for the planar path.
    pub fn of(render: &Render, head: &Head, source: Sampling) -> Option<Self> {
        if !can_render(render, head) {
            return None;
        }
        let upright = if render.auto_orient {
            Orientation::upright(head.orientation)
        } else {
            Orientation::default()
        };
        let stored = (head.width, head.height);
        let (from, scaled) = scaled_part(render, upright.size(stored))?;
        let afterwards = Orientation::clockwise(render.rotate)?
            .then(Orientation::mirrored(render.flop, render.flip));
        let turn = upright.then(afterwards);
        let size = afterwards.size(scaled);
        let sampling = sampling(render, source, size)?;
        let padded = turn.size(sampling.padded(size));
        let (width, height) = upright.size(stored);
        let from = upright.as_stored(from, (f64::from(width), f64::from(height)));
        Some(Self {
            divisor: divisor(&from, turn.size(size)),
            window: with_padding(&from, turn, turn.size(size), padded),
            padded,
            turn,
            size,
            sampling,
        })
    }

    /// The size of a component's plane of the result before it is turned.
    pub fn stored_size(&self, component: usize) -> (u32, u32) {
        self.sampling.plane_size(self.padded, component)
    }
}

/// Returns whether the planar path draws that request for a JPEG with that head. Without effects, a canvas, or a search
/// for the part that matters; the exact geometry is checked later.
pub fn can_render(render: &Render, head: &Head) -> bool {
    // All fields by name: this path would leave a new step out without a word.
    let &Render {
        source,
        // Of documents and animations, which no JPEG is.
        page: _,
        animate: _,
        vector_long_edge: _,
        // Shape, which `Layout::of` looks at.
        auto_orient: _,
        crop: _,
        resize: _,
        rotate: _,
        flip: _,
        flop: _,
        // A JPEG has no transparency, and what needs a canvas has no layout.
        background: _,
        trim,
        ref adjust,
        ref watermark,
        keep_metadata,
        output,
        path,
    } = render;
    let is_wanted = matches!(path, Path::Auto | Path::Planar);
    let is_to_planes = matches!(output.format, Format::Jpg | Format::Webp | Format::Avif);
    let is_plainly_encoded = !output.lossless && output.target_bytes.is_none();
    let is_without_effects = !trim && *adjust == Adjust::default() && watermark.is_none();
    is_wanted
        && source == Format::Jpg
        && is_to_planes
        && is_plainly_encoded
        && is_without_effects
        && !keep_metadata
        && head.is_ycc
        && head.is_srgb
}

/// Chooses the chroma sampling; `None` when the format cannot keep colour well enough at that size.
fn sampling(render: &Render, source: Sampling, size: (u32, u32)) -> Option<Sampling> {
    let is_small = size.0.min(size.1) < LEAST_HALVED_SIDE;
    let keeps_chroma = is_small || render.output.quality >= FULL_CHROMA_QUALITY;
    match render.output.format {
        Format::Jpg if source == Sampling::Grey => Some(Sampling::Grey),
        Format::Jpg | Format::Avif if keeps_chroma && source != Sampling::Grey => {
            Some(Sampling::FULL)
        }
        Format::Webp if is_small && source != Sampling::Grey => None,
        _ => Some(Sampling::HALVED),
    }
}

/// The part of the oriented source that is used, and the size it gets; `None` for what libvips must do or reject.
fn scaled_part(render: &Render, oriented: (u32, u32)) -> Option<(Rect, (u32, u32))> {
    let cut = match render.crop {
        Some(crop) => inside(crop, oriented)?,
        None => Crop {
            left: 0,
            top: 0,
            width: oriented.0,
            height: oriented.1,
        },
    };
    let plan = match &render.resize {
        Some(resize) => {
            let plan = geometry::plan(cut.width, cut.height, resize, false);
            let searches = resize.gravity == Gravity::Smart && cuts(&plan, &cut);
            (!searches).then_some(plan)?
        }
        None => geometry::plan(cut.width, cut.height, &as_it_is(), false),
    };
    let has_border = plan.size() != (plan.width, plan.height);
    if has_border || plan.shrink() < LEAST_SHRINK {
        return None;
    }
    let from = Rect {
        left: plan.from.left + f64::from(cut.left),
        top: plan.from.top + f64::from(cut.top),
        ..plan.from
    };
    Some((from, (plan.width, plan.height)))
}

fn as_it_is() -> Resize {
    Resize::new(None, None, sluice_media::task::Fit::Inside)
}

fn inside(crop: Crop, (width, height): (u32, u32)) -> Option<Crop> {
    let inside = Crop {
        width: crop.width.min(width.checked_sub(crop.left)?),
        height: crop.height.min(height.checked_sub(crop.top)?),
        ..crop
    };
    (inside.width > 0 && inside.height > 0).then_some(inside)
}

fn cuts(plan: &Plan, cut: &Crop) -> bool {
    let differs = |part: f64, whole: u32| (part - f64::from(whole)).abs() > 1e-6;
    differs(plan.from.width, cut.width) || differs(plan.from.height, cut.height)
}

/// The largest divisor that leaves enough for the resize.
fn divisor(from: &Rect, (width, height): (u32, u32)) -> u32 {
    let shrink = (from.width / f64::from(width)).min(from.height / f64::from(height));
    [8, 4, 2]
        .into_iter()
        .find(|&divisor| shrink / f64::from(divisor) >= LEAST_SHRINK_AFTER_DECODE)
        .unwrap_or(1)
}

/// `from`, which becomes `size`, grown at the same scale to become `padded`. The padding of the turned result is at its
/// right and bottom, which may be any side of the stored image.
fn with_padding(from: &Rect, turn: Orientation, size: (u32, u32), padded: (u32, u32)) -> Rect {
    let (backwards_across, backwards_down) = turn.size((turn.mirror, turn.flip));
    let grown = |start: f64, length: f64, size: u32, padded: u32, backwards: bool| {
        let grown = length * f64::from(padded) / f64::from(size);
        let start = if backwards {
            start - (grown - length)
        } else {
            start
        };
        (start, grown)
    };
    let (left, width) = grown(from.left, from.width, size.0, padded.0, backwards_across);
    let (top, height) = grown(from.top, from.height, size.1, padded.1, backwards_down);
    Rect {
        left,
        top,
        width,
        height,
    }
}
