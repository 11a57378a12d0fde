//! Sizes, crops and canvas of a resize for each `fit` (`cover`, `contain`, `fill`, `inside`, `outside`). One pure
//! decision for both render paths.
//!
//! Sizes are those of the oriented source (a JPEG with EXIF orientation 6 counts as turned). Nothing enlarges unless
//! the request says so: a cover of a small source crops to the asked aspect and then only shrinks.

use crate::task::{Fit, Gravity, Resize};

/// The longest side of any result; formats and decoders end there or soon after.
pub const MAX_SIDE: u32 = 16_383;

/// Pixels of the oriented source, fractional so that an aspect is kept exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

/// Geometry from source to result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The part of the source that is used. With [`Gravity::Smart`] only its size counts.
    pub from: Rect,
    /// The size that part is scaled to, at least 1 × 1.
    pub width: u32,
    pub height: u32,
    /// Canvas below it, with the place of its top left corner; `None`: the result is the scaled part itself.
    pub canvas: Option<Canvas>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canvas {
    pub width: u32,
    pub height: u32,
    pub left: u32,
    pub top: u32,
}

impl Plan {
    /// The size of the result.
    pub fn size(&self) -> (u32, u32) {
        self.canvas.map_or((self.width, self.height), |canvas| {
            (canvas.width, canvas.height)
        })
    }

    /// Returns how much larger the used part is than its result, by the side that shrinks less; below 1 it grows.
    pub fn shrink(&self) -> f64 {
        (self.from.width / f64::from(self.width)).min(self.from.height / f64::from(self.height))
    }
}

/// Plans a resize of a source of that size; `is_vector` sources grow freely, since they have no pixels of their own.
pub fn plan(source_width: u32, source_height: u32, resize: &Resize, is_vector: bool) -> Plan {
    let source = (
        f64::from(source_width.max(1)),
        f64::from(source_height.max(1)),
    );
    let may_grow = resize.enlarge || is_vector;
    match (resize.width, resize.height) {
        (Some(width), Some(height)) => in_box(source, (width, height), resize, may_grow),
        (Some(width), None) => scaled(source, f64::from(width) / source.0, may_grow),
        (None, Some(height)) => scaled(source, f64::from(height) / source.1, may_grow),
        (None, None) => scaled(source, 1.0, false),
    }
}

fn in_box(source: (f64, f64), asked: (u32, u32), resize: &Resize, may_grow: bool) -> Plan {
    let wanted = (f64::from(asked.0), f64::from(asked.1));
    let (smaller, larger) = {
        let (x, y) = (wanted.0 / source.0, wanted.1 / source.1);
        (x.min(y), x.max(y))
    };
    match resize.fit {
        Fit::Inside => scaled(source, smaller, may_grow),
        Fit::Outside => scaled(source, larger, may_grow),
        Fit::Fill => fill(source, wanted, may_grow),
        Fit::Cover => cover(source, wanted, larger, resize.gravity, may_grow),
        Fit::Contain => contain(source, asked, smaller, resize, may_grow),
    }
}

fn scaled(source: (f64, f64), scale: f64, may_grow: bool) -> Plan {
    let scale = if may_grow { scale } else { scale.min(1.0) };
    Plan {
        from: whole(source),
        width: side(source.0 * scale),
        height: side(source.1 * scale),
        canvas: None,
    }
}

fn fill(source: (f64, f64), wanted: (f64, f64), may_grow: bool) -> Plan {
    let bound = |wanted: f64, source: f64| if may_grow { wanted } else { wanted.min(source) };
    Plan {
        from: whole(source),
        width: side(bound(wanted.0, source.0)),
        height: side(bound(wanted.1, source.1)),
        canvas: None,
    }
}

fn cover(
    source: (f64, f64),
    wanted: (f64, f64),
    scale: f64,
    gravity: Gravity,
    may_grow: bool,
) -> Plan {
    let used = (
        (wanted.0 / scale).min(source.0),
        (wanted.1 / scale).min(source.1),
    );
    let scale = if may_grow { scale } else { scale.min(1.0) };
    let (x, y) = place(gravity);
    // A focal point is kept as near to the middle of the crop as the edges allow.
    let start = |source: f64, used: f64, share: f64| match gravity {
        Gravity::Point { .. } if is_edge(share) => (source - used) * share,
        _ => (source * share - used / 2.0).clamp(0.0, source - used),
    };
    Plan {
        from: Rect {
            left: start(source.0, used.0, x),
            top: start(source.1, used.1, y),
            width: used.0,
            height: used.1,
        },
        width: side(used.0 * scale),
        height: side(used.1 * scale),
        canvas: None,
    }
}

fn contain(
    source: (f64, f64),
    asked: (u32, u32),
    scale: f64,
    resize: &Resize,
    may_grow: bool,
) -> Plan {
    let inner = scaled(source, scale, may_grow);
    let canvas = if may_grow || resize.exact_canvas || scale <= 1.0 {
        (side(f64::from(asked.0)), side(f64::from(asked.1)))
    } else {
        (
            side(f64::from(asked.0) / scale).max(inner.width),
            side(f64::from(asked.1) / scale).max(inner.height),
        )
    };
    let (x, y) = place(resize.gravity);
    let start = |room: u32, share: f64| (f64::from(room) * share).round() as u32;
    Plan {
        canvas: Some(Canvas {
            width: canvas.0,
            height: canvas.1,
            left: start(canvas.0.saturating_sub(inner.width), x),
            top: start(canvas.1.saturating_sub(inner.height), y),
        }),
        ..inner
    }
}

fn place(gravity: Gravity) -> (f64, f64) {
    match gravity {
        Gravity::Smart => (0.5, 0.5),
        Gravity::Point { x, y } => (f64::from(x.clamp(0.0, 1.0)), f64::from(y.clamp(0.0, 1.0))),
    }
}

/// The compass points mean the edge itself.
fn is_edge(share: f64) -> bool {
    share <= 0.0 || share >= 1.0
}

fn whole(source: (f64, f64)) -> Rect {
    Rect {
        left: 0.0,
        top: 0.0,
        width: source.0,
        height: source.1,
    }
}

fn side(length: f64) -> u32 {
    (length.round() as u32).clamp(1, MAX_SIDE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resize(width: u32, height: u32, fit: Fit) -> Resize {
        Resize::new(
            (width > 0).then_some(width),
            (height > 0).then_some(height),
            fit,
        )
    }

    #[test]
    fn sizes_follow_the_fit_and_never_grow_by_themselves() {
        let cases = [
            (500, 300, 1000, 1000, Fit::Cover, (300, 300)),
            (2040, 1356, 512, 0, Fit::Cover, (512, 340)),
            (2040, 1356, 0, 512, Fit::Cover, (770, 512)),
            (2040, 1356, 512, 512, Fit::Cover, (512, 512)),
            (2040, 1356, 512, 512, Fit::Inside, (512, 340)),
            (2040, 1356, 512, 512, Fit::Outside, (770, 512)),
            (2040, 1356, 512, 512, Fit::Fill, (512, 512)),
            (100, 50, 512, 512, Fit::Fill, (100, 50)),
            (100, 50, 512, 512, Fit::Inside, (100, 50)),
            (2040, 1356, 512, 512, Fit::Contain, (512, 512)),
            (500, 300, 1000, 1000, Fit::Contain, (500, 500)),
            (10_000, 1, 100, 100, Fit::Inside, (100, 1)),
            (0, 0, 10, 10, Fit::Cover, (1, 1)),
        ];
        for (width, height, to_width, to_height, fit, expected) in cases {
            let plan = plan(width, height, &resize(to_width, to_height, fit), false);
            assert_eq!(
                plan.size(),
                expected,
                "{width}x{height} to {to_width}x{to_height} {fit:?}"
            );
        }
    }

    #[test]
    fn a_focal_point_stays_in_the_middle_as_far_as_edges_allow() {
        let from = |x, y| {
            let asked = Resize {
                gravity: Gravity::Point { x, y },
                ..resize(100, 100, Fit::Cover)
            };
            plan(400, 100, &asked, false).from.left
        };
        for (x, left) in [
            (0.0, 0.0),
            (0.1, 0.0),
            (0.25, 50.0),
            (0.5, 150.0),
            (0.9, 300.0),
            (1.0, 300.0),
        ] {
            assert!((from(x, 0.5) - left).abs() < 1e-3, "{x}: {}", from(x, 0.5));
        }
    }

    #[test]
    fn an_exact_canvas_and_a_vector_may_be_larger_than_the_source() {
        let exact = Resize {
            exact_canvas: true,
            ..resize(2048, 2048, Fit::Contain)
        };
        let placed = plan(500, 300, &exact, false);
        assert_eq!((placed.width, placed.height), (500, 300));
        assert_eq!(
            placed.canvas,
            Some(Canvas {
                width: 2048,
                height: 2048,
                left: 774,
                top: 874
            })
        );
        assert_eq!(
            plan(16, 16, &resize(512, 0, Fit::Inside), true).size(),
            (512, 512)
        );
    }
}
