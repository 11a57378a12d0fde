//! Crop and resize plan of an image, in the source's own pixels: EXIF orientation, smart crop, natural size of SVG and
//! PDF.
//!
//! A request counts in upright pixels, a file stores them turned; here the one is led back to the other, so that the
//! image is read and scaled as it is stored and only the small result is turned.

use sluice_media::{
    geometry::{self, Canvas, Rect},
    task::{Crop, Failure, FailureCode, Fit, Gravity, Render, Resize},
};

use super::load::Header;
use crate::image::planar::turn::Orientation;

/// Points become twice as many pixels when a document comes without a size …
const PDF_SCALE: f64 = 2.0;
/// … up to this long edge.
const PDF_LONG_EDGE: f64 = 4096.0;

/// The part of a page that is used, as stored, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageCrop {
    /// In stored pixels of the page at full size.
    pub from: Rect,
    /// The size that part is scaled to, before it is turned.
    pub width: u32,
    pub height: u32,
    /// The size that attention then cuts out of it, before it is turned.
    pub attention: Option<(u32, u32)>,
    /// Turns the result upright.
    pub turn: Orientation,
    /// Canvas below the upright result.
    pub canvas: Option<Canvas>,
}

impl PageCrop {
    /// Plans `render` on a page; `kept` is the part, in stored pixels, that trimming leaves.
    pub fn plan(
        render: &Render,
        header: &Header,
        kept: Rect,
        is_vector: bool,
    ) -> Result<Self, Failure> {
        let turn = if render.auto_orient {
            Orientation::upright(header.orientation)
        } else {
            Orientation::default()
        };
        let upright = turn.size((kept.width, kept.height));
        let cropped = match &render.crop {
            Some(crop) => inside(crop, upright)?,
            None => Rect {
                left: 0.0,
                top: 0.0,
                width: upright.0,
                height: upright.1,
            },
        };
        let resize = render.resize.or_else(|| natural_size(render, &cropped));
        let plan = match &resize {
            Some(resize) => geometry::plan(
                whole(cropped.width),
                whole(cropped.height),
                resize,
                is_vector,
            ),
            None => geometry::Plan {
                from: Rect {
                    left: 0.0,
                    top: 0.0,
                    ..cropped
                },
                width: whole(cropped.width),
                height: whole(cropped.height),
                canvas: None,
            },
        };
        let by_attention = resize
            .is_some_and(|resize| resize.fit == Fit::Cover && resize.gravity == Gravity::Smart)
            && !is_whole(&plan.from, &cropped);
        let (from, size) = if by_attention {
            let scale = (
                f64::from(plan.width) / plan.from.width,
                f64::from(plan.height) / plan.from.height,
            );
            let size = (
                whole(cropped.width * scale.0).max(plan.width),
                whole(cropped.height * scale.1).max(plan.height),
            );
            (cropped, size)
        } else {
            (
                Rect {
                    left: cropped.left + plan.from.left,
                    top: cropped.top + plan.from.top,
                    ..plan.from
                },
                (plan.width, plan.height),
            )
        };
        let stored = turn.as_stored(from, upright);
        let (width, height) = turn.size(size);
        Ok(Self {
            from: Rect {
                left: kept.left + stored.left,
                top: kept.top + stored.top,
                ..stored
            },
            width,
            height,
            attention: by_attention.then(|| turn.size((plan.width, plan.height))),
            turn,
            canvas: plan.canvas,
        })
    }

    /// Returns how much larger the part is than its result, by the side that shrinks less.
    pub fn shrink(&self) -> f64 {
        (self.from.width / f64::from(self.width)).min(self.from.height / f64::from(self.height))
    }
}

/// The size of what has none of its own.
fn natural_size(render: &Render, cropped: &Rect) -> Option<Resize> {
    use sluice_media::format::Format;

    let long_edge = match render.source {
        Format::Svg => render.vector_long_edge,
        Format::Pdf => whole((cropped.width.max(cropped.height) * PDF_SCALE).min(PDF_LONG_EDGE)),
        _ => return None,
    };
    Some(Resize {
        enlarge: true,
        ..Resize::new(Some(long_edge), Some(long_edge), Fit::Inside)
    })
}

/// Returns the part of a crop that is inside the image.
fn inside(crop: &Crop, (width, height): (f64, f64)) -> Result<Rect, Failure> {
    let (left, top) = (f64::from(crop.left), f64::from(crop.top));
    let right = (left + f64::from(crop.width)).min(width);
    let bottom = (top + f64::from(crop.height)).min(height);
    if right <= left || bottom <= top {
        return Err(Failure::new(
            FailureCode::Impossible,
            format!(
                "the crop {} × {} at {}, {} lies outside of the image of {width} × {height} pixels",
                crop.width, crop.height, crop.left, crop.top
            ),
        ));
    }
    Ok(Rect {
        left,
        top,
        width: right - left,
        height: bottom - top,
    })
}

fn is_whole(from: &Rect, of: &Rect) -> bool {
    (from.width - of.width).abs() < 0.5 && (from.height - of.height).abs() < 0.5
}

fn whole(length: f64) -> u32 {
    (length.round() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use sluice_media::{format::Format, task::Encode};

    use super::*;

    fn header(width: u32, height: u32, orientation: u8) -> Header {
        Header {
            width,
            height,
            orientation,
            pages: 1,
        }
    }

    fn page(header: &Header) -> Rect {
        Rect {
            left: 0.0,
            top: 0.0,
            width: f64::from(header.width),
            height: f64::from(header.height),
        }
    }

    fn render() -> Render {
        Render::new(Format::Jpg, Encode::new(Format::Jpg, 80))
    }

    #[test]
    fn a_corner_of_the_upright_image_is_found_in_the_stored_one() {
        let render = Render {
            crop: Some(Crop {
                left: 0,
                top: 0,
                width: 10,
                height: 20,
            }),
            ..render()
        };
        let cases = [
            (1, (0.0, 0.0, 10.0, 20.0)),
            (2, (90.0, 0.0, 10.0, 20.0)),
            (3, (90.0, 30.0, 10.0, 20.0)),
            (4, (0.0, 30.0, 10.0, 20.0)),
            (5, (0.0, 0.0, 20.0, 10.0)),
            (6, (0.0, 40.0, 20.0, 10.0)),
            (7, (80.0, 40.0, 20.0, 10.0)),
            (8, (80.0, 0.0, 20.0, 10.0)),
        ];
        for (orientation, (left, top, width, height)) in cases {
            let header = header(100, 50, orientation);
            let cut = PageCrop::plan(&render, &header, page(&header), false).unwrap();
            let expected = Rect {
                left,
                top,
                width,
                height,
            };
            assert_eq!(cut.from, expected, "orientation {orientation}");
        }
    }

    #[test]
    fn a_crop_beside_the_image_is_impossible_and_one_over_its_edge_is_cut() {
        let header = header(100, 50, 1);
        let cut = |left, width| {
            let render = Render {
                crop: Some(Crop {
                    left,
                    top: 0,
                    width,
                    height: 10,
                }),
                ..render()
            };
            PageCrop::plan(&render, &header, page(&header), false)
        };
        assert_eq!(cut(90, 500).unwrap().from.width, 10.0);
        for (left, width) in [(100, 1), (u32::MAX, u32::MAX), (5, 0)] {
            assert_eq!(
                cut(left, width).unwrap_err().code,
                FailureCode::Impossible,
                "{left} {width}"
            );
        }
    }

    #[test]
    fn attention_chooses_from_the_scaled_whole() {
        let render = Render {
            resize: Some(Resize {
                gravity: Gravity::Smart,
                ..Resize::new(Some(100), Some(100), Fit::Cover)
            }),
            ..render()
        };
        let header = header(400, 200, 6);
        let cut = PageCrop::plan(&render, &header, page(&header), false).unwrap();
        assert_eq!((cut.width, cut.height), (200, 100));
        assert_eq!(cut.attention, Some((100, 100)));
    }
}
