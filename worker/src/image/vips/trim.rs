//! Trim of an image: finds the border of even colour or transparency, and its tolerance.

use sluice_media::geometry::Rect;

use super::{
    colour, frame,
    safe::{Image, Operation, Refused},
};

/// Difference, of 255, between a pixel and the border to which it still belongs.
const TOLERANCE: f64 = 10.0;
/// Borders are looked for through a window of this side.
const WINDOW: u32 = 3;
/// Below it, of 255, the corner counts as transparent and transparency as the border.
const TRANSPARENT: u8 = 128;

/// Returns the part that is left, in pixels of `page`: all of it when everything is border.
pub fn kept(page: &Image<'_>) -> Result<Rect, Refused> {
    let page = colour::to_srgb(colour::unpacked(page)?)?.in_memory()?;
    if page.width().min(page.height()) < WINDOW {
        return Ok(whole(&page));
    }
    let corner = frame::part_of(&page, 0, 0, 1, 1)?.pixels()?;
    let last = page.bands() - 1;
    let (looked_at, border) = match corner.last() {
        Some(&alpha) if page.has_alpha() && alpha < TRANSPARENT => {
            (colour::bands_of(&page, last, 1)?, "0".to_owned())
        }
        _ if page.has_alpha() => (
            colour::bands_of(&page, 0, last)?,
            words(&corner[..last as usize]),
        ),
        _ => (Operation::on(c"copy", &page).run()?, words(&corner)),
    };
    let [left, top, width, height] = Operation::on(c"find_trim", &looked_at)
        .option(c"threshold", TOLERANCE)
        .option(c"background", border)
        .numbers([c"left", c"top", c"width", c"height"])?
        .map(f64::from);
    if width < 1.0 || height < 1.0 {
        return Ok(whole(&page));
    }
    Ok(Rect {
        left,
        top,
        width,
        height,
    })
}

fn whole(page: &Image<'_>) -> Rect {
    Rect {
        left: 0.0,
        top: 0.0,
        width: f64::from(page.width()),
        height: f64::from(page.height()),
    }
}

fn words(samples: &[u8]) -> String {
    let words: Vec<_> = samples.iter().map(u8::to_string).collect();
    words.join(" ")
}
