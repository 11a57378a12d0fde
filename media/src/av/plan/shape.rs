//! Geometry of an encoded video frame: crop, scale, rotation, canvas, even sides.
//!
//! What is asked counts in upright frames of square pixels; what is done counts in coded ones, since scaling before
//! turning is the cheaper order. Sides are even, as 4:2:0 wants them.

use crate::{
    av::VideoTrack,
    geometry::{self, Canvas, Rect},
    task::Resize,
};

/// Steps that make the encoded frame, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pixels of the coded frame that are cut off.
    pub cut: CropOffsets,
    /// True when the rest has another size than is wanted.
    pub is_scaled: bool,
    /// Degrees clockwise: 0, 90, 180 or 270.
    pub turn: u16,
    /// Canvas behind the upright frame.
    pub canvas: Option<Canvas>,
    size: (u32, u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CropOffsets {
    pub left: u32,
    pub right: u32,
    pub top: u32,
    pub bottom: u32,
}

impl Shape {
    /// Returns the shape of a track, resized as images are, or in its own size.
    pub fn of(track: &VideoTrack, resize: Option<&Resize>) -> Self {
        let shown = track.shown_size();
        let planned = resize.map(|resize| geometry::plan(shown.0, shown.1, resize, false));
        let used = planned.map_or_else(|| whole(shown), |plan| plan.from);
        let size = planned.map_or(shown, |plan| (plan.width, plan.height));
        let size = (even(size.0), even(size.1));
        let turn = track.rotation;
        let coded_size = match is_quarter(turn) {
            true => (size.1, size.0),
            false => size,
        };
        let (cut, left_over) = cut(track, used, coded_size);
        Self {
            cut,
            is_scaled: left_over != coded_size,
            turn,
            canvas: planned
                .and_then(|plan| plan.canvas)
                .map(|canvas| even_canvas(canvas, size)),
            size,
        }
    }

    /// Returns the size of the frame before it is turned.
    pub fn coded_size(&self) -> (u32, u32) {
        match is_quarter(self.turn) {
            true => (self.size.1, self.size.0),
            false => self.size,
        }
    }

    /// Returns the size of the upright frame, without the canvas.
    pub fn upright_size(&self) -> (u32, u32) {
        self.size
    }

    /// Returns the size of the result.
    pub fn size(&self) -> (u32, u32) {
        self.canvas
            .map_or(self.size, |canvas| (canvas.width, canvas.height))
    }
}

/// Returns the borders that are cut off for `used`, a part of the upright frame, and the rest. A last row or column
/// that an even size leaves no room for is cut rather than squeezed.
fn cut(track: &VideoTrack, used: Rect, wanted: (u32, u32)) -> (CropOffsets, (u32, u32)) {
    let shown = track.shown_size();
    let upright = turned_back(used, shown, track.rotation);
    let square_width = if is_quarter(track.rotation) {
        shown.1
    } else {
        shown.0
    };
    let stretch = f64::from(track.width) / f64::from(square_width.max(1));
    let (left, mut width) = span(upright.left * stretch, upright.width * stretch, track.width);
    let (top, mut height) = span(upright.top, upright.height, track.height);
    if (width & !1, height & !1) == wanted && track.width == square_width {
        (width, height) = wanted;
    }
    let cut = CropOffsets {
        left,
        right: track.width.saturating_sub(left + width),
        top,
        bottom: track.height.saturating_sub(top + height),
    };
    (cut, (width, height))
}

/// A part of the upright frame as a part of the one that is turned to become it.
fn turned_back(part: Rect, shown: (u32, u32), turn: u16) -> Rect {
    let right = f64::from(shown.0) - part.left - part.width;
    let bottom = f64::from(shown.1) - part.top - part.height;
    let (left, top) = match turn {
        90 => (part.top, right),
        180 => (right, bottom),
        270 => (bottom, part.left),
        _ => (part.left, part.top),
    };
    let (width, height) = match is_quarter(turn) {
        true => (part.height, part.width),
        false => (part.width, part.height),
    };
    Rect {
        left,
        top,
        width,
        height,
    }
}

/// Start and length in whole pixels inside a side.
fn span(start: f64, length: f64, side: u32) -> (u32, u32) {
    let length = (length.round() as u32).clamp(1, side.max(1));
    let start = (start.round() as u32).min(side.max(1) - length);
    (start, length)
}

fn is_quarter(turn: u16) -> bool {
    matches!(turn, 90 | 270)
}

fn whole((width, height): (u32, u32)) -> Rect {
    Rect {
        left: 0.0,
        top: 0.0,
        width: f64::from(width),
        height: f64::from(height),
    }
}

fn even(side: u32) -> u32 {
    (side & !1).max(2)
}

fn even_canvas(canvas: Canvas, inner: (u32, u32)) -> Canvas {
    let width = even(canvas.width).max(inner.0);
    let height = even(canvas.height).max(inner.1);
    Canvas {
        width,
        height,
        left: (canvas.left & !1).min(width - inner.0),
        top: (canvas.top & !1).min(height - inner.1),
    }
}
