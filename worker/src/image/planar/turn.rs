//! Orientation of images: EXIF orientation, rotation in steps of 90°, flip and flop; the eight symmetries of a
//! rectangle.

use sluice_media::geometry::Rect;

use super::transpose::transpose;

/// Orientation change: first columns and rows are swapped or not, then either axis is reversed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orientation {
    /// Rows become columns.
    pub transpose: bool,
    /// The result's left and right are changed over.
    pub mirror: bool,
    /// The result's top and bottom are changed over.
    pub flip: bool,
}

impl Orientation {
    /// Rows become columns, nothing else.
    pub const TRANSPOSED: Self = Self {
        transpose: true,
        mirror: false,
        flip: false,
    };

    /// Returns the change that makes an image with that EXIF orientation upright (EXIF 2.32, tag 0x0112); none for 1
    /// and for invalid values.
    pub fn upright(orientation: u8) -> Self {
        let (transpose, mirror, flip) = match orientation {
            2 => (false, true, false),
            3 => (false, true, true),
            4 => (false, false, true),
            5 => (true, false, false),
            6 => (true, true, false),
            7 => (true, true, true),
            8 => (true, false, true),
            _ => (false, false, false),
        };
        Self {
            transpose,
            mirror,
            flip,
        }
    }

    /// Returns the turn clockwise; `None` when `degrees` is no multiple of 90.
    pub fn clockwise(degrees: i32) -> Option<Self> {
        match degrees.rem_euclid(360) {
            0 => Some(Self::default()),
            90 => Some(Self::upright(6)),
            180 => Some(Self::upright(3)),
            270 => Some(Self::upright(8)),
            _ => None,
        }
    }

    /// Left and right changed over, and top and bottom.
    pub fn mirrored(mirror: bool, flip: bool) -> Self {
        Self {
            transpose: false,
            mirror,
            flip,
        }
    }

    /// This turn and `next` after it, as one.
    pub fn then(self, next: Self) -> Self {
        let (mirror, flip) = if next.transpose {
            (self.flip, self.mirror)
        } else {
            (self.mirror, self.flip)
        };
        Self {
            transpose: self.transpose ^ next.transpose,
            mirror: mirror ^ next.mirror,
            flip: flip ^ next.flip,
        }
    }

    /// The size of the result.
    pub fn size<T>(self, (width, height): (T, T)) -> (T, T) {
        if self.transpose {
            (height, width)
        } else {
            (width, height)
        }
    }

    /// Returns the place in the stored image of a part of the turned one, whose size is `turned`.
    pub fn as_stored(self, part: Rect, turned: (f64, f64)) -> Rect {
        let left = if self.mirror {
            turned.0 - part.left - part.width
        } else {
            part.left
        };
        let top = if self.flip {
            turned.1 - part.top - part.height
        } else {
            part.top
        };
        let (left, top) = self.size((left, top));
        let (width, height) = self.size((part.width, part.height));
        Rect {
            left,
            top,
            width,
            height,
        }
    }

    /// Turns a plane of `width` columns without padding into `turned`.
    pub fn apply(self, plane: &[u8], width: usize, turned: &mut Vec<u8>) {
        let height = plane.len().checked_div(width).unwrap_or(0);
        let (columns, _) = self.size((width, height));
        if self.transpose {
            transpose(plane, width, turned);
        } else {
            turned.clear();
            turned.extend_from_slice(plane);
        }
        match (self.mirror, self.flip) {
            (true, true) => turned.reverse(),
            (true, false) => turned.chunks_mut(columns.max(1)).for_each(<[u8]>::reverse),
            (false, true) => flip(turned, columns),
            (false, false) => {}
        }
    }
}

fn flip(plane: &mut [u8], width: usize) {
    let height = plane.len().checked_div(width).unwrap_or(0);
    let (upper, lower) = plane.split_at_mut(height / 2 * width);
    let lower = lower.rchunks_exact_mut(width.max(1));
    for (above, below) in upper.chunks_exact_mut(width.max(1)).zip(lower) {
        above.swap_with_slice(below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Orientation> {
        (1..=8).map(Orientation::upright)
    }

    fn turned(turn: Orientation, plane: &[u8], width: usize) -> Vec<u8> {
        let mut result = Vec::new();
        turn.apply(plane, width, &mut result);
        result
    }

    #[test]
    fn orientations_lie_as_the_exif_specification_draws_them() {
        let stored = [1, 2, 3, 4, 5, 6];
        let cases: [(u8, [u8; 6]); 9] = [
            (0, [1, 2, 3, 4, 5, 6]),
            (1, [1, 2, 3, 4, 5, 6]),
            (2, [3, 2, 1, 6, 5, 4]),
            (3, [6, 5, 4, 3, 2, 1]),
            (4, [4, 5, 6, 1, 2, 3]),
            (5, [1, 4, 2, 5, 3, 6]),
            (6, [4, 1, 5, 2, 6, 3]),
            (7, [6, 3, 5, 2, 4, 1]),
            (8, [3, 6, 2, 5, 1, 4]),
        ];
        for (orientation, expected) in cases {
            assert_eq!(
                turned(Orientation::upright(orientation), &stored, 3),
                expected,
                "{orientation}"
            );
        }
    }

    #[test]
    fn two_turns_in_one_are_the_two_after_each_other() {
        let stored = [1, 2, 3, 4, 5, 6];
        for first in all() {
            let once = turned(first, &stored, 3);
            for second in all() {
                assert_eq!(
                    turned(second, &once, first.size((3, 2)).0),
                    turned(first.then(second), &stored, 3),
                    "{first:?} {second:?}"
                );
            }
        }
    }

    #[test]
    fn degrees_go_clockwise_and_only_in_right_angles() {
        assert_eq!(Orientation::clockwise(-90), Some(Orientation::upright(8)));
        assert_eq!(Orientation::clockwise(450), Some(Orientation::upright(6)));
        assert_eq!(Orientation::clockwise(360), Some(Orientation::default()));
        assert_eq!(Orientation::clockwise(45), None);
    }
}
