//! Mezzanines: reduced copies of HEIC, AVIF, JXL, large images and clips that are costly to decode, from which small
//! variants are made.
//!
//! A HEIC photograph takes a worker hundreds of milliseconds to open, its mezzanine ten. The first small variant of such
//! a source makes the mezzanine on its way; larger variants, trimmed images and single pages are made from the source.
//! All variants of a clip are made from one: the frame at its time.

use sluice_media::{
    av::{AvTask, Still},
    format::Format,
    geometry,
    task::{Effort, Encode, Fit, ImageFacts, Render, Resize, Task},
    variant::FRAME,
};

/// Name of a mezzanine among the variants of its file; no canonical request looks like it.
pub(super) const REQUEST: &str = "mezzanine";
/// Long side of a mezzanine, in pixels.
const LONG_SIDE: u32 = 2560;
/// Long side of a clip's frame, in pixels.
const FRAME_LONG_SIDE: u32 = 2048;
/// Largest share of a mezzanine's sides that a variant made from it may have.
const LARGEST_SHARE: f64 = 0.5;
/// Pixels from which a lossless or large source is worth a mezzanine.
const COSTLY_PIXELS: u64 = 4_000_000;
/// Quality of a mezzanine: a second encoding does not show, and JPEG keeps colour in full resolution.
const QUALITY: u8 = 95;

/// Returns the format of the source's mezzanine; `None` when the source itself is opened quickly enough.
pub(super) fn format_for(facts: &ImageFacts) -> Option<Format> {
    let pixels = u64::from(facts.width) * u64::from(facts.height);
    let is_costly = match facts.format {
        Format::Heif | Format::Avif | Format::Jxl => true,
        Format::Png | Format::Tiff | Format::Webp => pixels >= COSTLY_PIXELS,
        _ => false,
    };
    let is_still = !facts.animated;
    (is_costly && is_still).then_some(if facts.has_alpha {
        Format::Webp
    } else {
        Format::Jpg
    })
}

/// Returns the render that makes the mezzanine.
pub(super) fn rendition(source: Format, format: Format) -> Render {
    reduced(source, format, LONG_SIDE)
}

/// Returns the name of a clip's frame at that time among the variants of its file.
pub(super) fn frame_request(at_ms: u32) -> String {
    format!("frame@{at_ms}")
}

/// Returns the task that makes a [`FRAME`].
pub(super) fn frame(at_ms: u32) -> Task {
    Task::Av(Box::new(AvTask::Still(Still {
        at_s: f64::from(at_ms) / 1000.0,
        render: reduced(Format::Png, FRAME, FRAME_LONG_SIDE),
    })))
}

fn reduced(source: Format, format: Format, long_side: u32) -> Render {
    let mut output = Encode::new(format, QUALITY);
    output.effort = Effort::Fast;
    let mut render = Render::new(source, output);
    render.animate = false;
    render.resize = Some(Resize::new(Some(long_side), Some(long_side), Fit::Inside));
    render
}

/// Returns the render that makes the same result from the mezzanine; `None` when it must come from the source itself.
pub(super) fn from_mezzanine(
    wanted: &Render,
    facts: &ImageFacts,
    format: Format,
) -> Option<Render> {
    // All fields by name: whether a new step gives the same from a reduced copy is decided here.
    let &Render {
        page,
        auto_orient,
        trim,
        ref crop,
        resize,
        keep_metadata,
        // Steps on the result, whatever it was made from.
        rotate: _,
        flip: _,
        flop: _,
        adjust: _,
        watermark: _,
        background: _,
        output: _,
        path: _,
        // Replaced below.
        source: _,
        animate: _,
        // Of an SVG without a resize; vectors have no mezzanine.
        vector_long_edge: _,
    } = wanted;
    let resize = resize?;
    let is_plain = page == 1
        && !trim
        && crop.is_none()
        && auto_orient
        && !keep_metadata
        && resize.fit != Fit::Contain;
    let (width, height) = facts.shown_size();
    let plan = geometry::plan(width, height, &resize, false);
    let scale = 1.0 / plan.shrink();
    let reduction = (f64::from(LONG_SIDE) / f64::from(width.max(height))).min(1.0);
    if !is_plain || scale > reduction * LARGEST_SHARE {
        return None;
    }
    // The size is the one planned from the source, to the pixel; what is cut off for it is the same share.
    let fit = match resize.fit {
        Fit::Cover if resize.width.is_some() && resize.height.is_some() => Fit::Cover,
        _ => Fit::Fill,
    };
    let mut render = wanted.clone();
    render.source = format;
    render.animate = false;
    render.resize = Some(Resize {
        width: Some(plan.width),
        height: Some(plan.height),
        fit,
        ..resize
    });
    Some(render)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_media::task::Gravity;

    use crate::fixtures::image_facts;

    #[test]
    fn only_costly_stills_have_one() {
        let cases = [
            (Format::Jpg, 8000, false, None),
            (Format::Heif, 800, false, Some(Format::Jpg)),
            (Format::Avif, 800, true, Some(Format::Webp)),
            (Format::Png, 1900, false, None),
            (Format::Png, 2100, false, Some(Format::Jpg)),
            (Format::Svg, 8000, true, None),
            (Format::Pdf, 8000, false, None),
        ];
        for (format, side, has_alpha, expected) in cases {
            let mut facts = image_facts(format, side, side);
            facts.has_alpha = has_alpha;
            assert_eq!(format_for(&facts), expected, "{format:?} {side}");
            facts.animated = true;
            assert_eq!(format_for(&facts), None);
        }
    }

    #[test]
    fn small_variants_have_the_size_that_the_source_gives() {
        let mut facts = image_facts(Format::Heif, 3024, 4032);
        facts.orientation = 6;
        let wanted = |width, height, fit| {
            let mut render = Render::new(Format::Heif, Encode::new(Format::Webp, 80));
            render.resize = Some(Resize {
                gravity: Gravity::Point { x: 0.2, y: 0.5 },
                ..Resize::new(width, height, fit)
            });
            render
        };
        // 4032 × 3024 as shown; the mezzanine has 2560 × 1920.
        let cases = [
            (Some(640), None, Fit::Cover, Some((640, 480, Fit::Fill))),
            (Some(1280), None, Fit::Inside, Some((1280, 960, Fit::Fill))),
            (Some(1282), None, Fit::Inside, None),
            (
                Some(400),
                Some(400),
                Fit::Cover,
                Some((400, 400, Fit::Cover)),
            ),
            (Some(1000), Some(1000), Fit::Cover, None),
            (
                Some(333),
                Some(777),
                Fit::Inside,
                Some((333, 250, Fit::Fill)),
            ),
            (Some(100), Some(100), Fit::Contain, None),
        ];
        for (width, height, fit, expected) in cases {
            let render = from_mezzanine(&wanted(width, height, fit), &facts, Format::Jpg);
            let found = render.map(|render| {
                let resize = render.resize.unwrap();
                assert_eq!(render.source, Format::Jpg);
                (resize.width.unwrap(), resize.height.unwrap(), resize.fit)
            });
            assert_eq!(found, expected, "{width:?} {height:?} {fit:?}");
        }
        let mut trimmed = wanted(Some(100), None, Fit::Inside);
        trimmed.trim = true;
        assert_eq!(from_mezzanine(&trimmed, &facts, Format::Jpg), None);
    }
}
