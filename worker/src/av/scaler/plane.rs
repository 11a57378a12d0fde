//! Scales one plane of a video frame in strips of sixteen rows, which stay in the processor's cache.
//!
//! Rows are filtered first, sixteen samples at once, to a block of sixteen by sixteen. The block is turned, so that
//! each of its columns is contiguous; then columns are filtered the same way, and the result is turned back:
//!
//! ```text
//! source rows ──down──▶ block ──turn──▶ strip of columns ──across──▶ block ──turn──▶ rows of the result
//! ```

use super::{lanes::Lanes, weights::Weights};

/// Rows of a strip, and samples that are worked on at once.
pub const SIDE: usize = 16;

/// A row or column of a block.
pub type Sixteen = [u8; SIDE];
/// Blocks that lie side by side and are filtered together, so that a weight is loaded once for all.
const SIDE_BY_SIDE: usize = 4;

/// A plane in memory: rows begin `stride` samples apart, the last may end with its last sample.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'b> {
    pub bytes: &'b [u8],
    pub stride: usize,
    pub width: u32,
    pub height: u32,
}

/// Target of the scaled plane.
#[derive(Debug)]
pub struct RowsMut<'b> {
    pub bytes: &'b mut [u8],
    pub stride: usize,
    pub width: u32,
    pub height: u32,
}

/// A plane has less memory than its size says, or no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlane;

/// Scales planes of one size to another; keeps its weights and memory until the sizes change.
#[derive(Debug, Default)]
pub struct PlaneScaler {
    down: Weights,
    across: Weights,
    /// The columns of a strip as factors, up to the next multiple of the blocks that are filtered together.
    strip: Vec<[i16; SIDE]>,
}

impl PlaneScaler {
    /// Fills the target.
    pub fn scale(&mut self, source: Rows<'_>, target: RowsMut<'_>) -> Result<(), NoPlane> {
        check(source.bytes, source.stride, source.width, source.height)?;
        check(target.bytes, target.stride, target.width, target.height)?;
        prepare(&mut self.down, source.height, target.height);
        prepare(&mut self.across, source.width, target.width);
        let columns = (source.width as usize).next_multiple_of(SIDE * SIDE_BY_SIDE);
        self.strip.resize(columns, [0; SIDE]);
        super::lanes::scale(self, source, target);
        Ok(())
    }

    /// [`PlaneScaler::scale`] with one kind of registers; all is inlined, since the registers are those of the caller.
    #[inline(always)]
    pub(super) fn scale_with<L: Lanes>(&mut self, source: Rows<'_>, target: RowsMut<'_>) {
        let Self {
            down,
            across,
            strip,
        } = self;
        let (width, height) = (target.width as usize, target.height as usize);
        for top in (0..height).step_by(SIDE) {
            let rows = SIDE.min(height - top);
            for (index, columns) in strip.chunks_exact_mut(SIDE * SIDE_BY_SIDE).enumerate() {
                let mut blocks = [[[0; SIDE]; SIDE]; SIDE_BY_SIDE];
                for row in 0..rows {
                    let left = index * SIDE * SIDE_BY_SIDE;
                    let samples = filter_down::<L>(source, down, top + row, left);
                    for (block, samples) in blocks.iter_mut().zip(samples) {
                        block[row] = samples;
                    }
                }
                for (block, columns) in blocks.iter().zip(columns.chunks_exact_mut(SIDE)) {
                    for (column, samples) in columns.iter_mut().zip(&L::turned(block)) {
                        *column = L::factors(samples);
                    }
                }
            }
            for left in (0..width).step_by(SIDE) {
                let columns = SIDE.min(width - left);
                let mut block = [[0; SIDE]; SIDE];
                for (column, samples) in block[..columns].iter_mut().enumerate() {
                    *samples = filter_across::<L>(strip, across, left + column);
                }
                let block = L::turned(&block);
                for (row, samples) in block[..rows].iter().enumerate() {
                    let start = (top + row) * target.stride + left;
                    target.bytes[start..start + columns].copy_from_slice(&samples[..columns]);
                }
            }
        }
    }
}

fn check(bytes: &[u8], stride: usize, width: u32, height: u32) -> Result<(), NoPlane> {
    let (width, height) = (width as usize, height as usize);
    let needed = (height.checked_sub(1))
        .and_then(|rows| rows.checked_mul(stride))
        .and_then(|before| before.checked_add(width));
    match needed {
        Some(needed) if needed <= bytes.len() && (1..=stride).contains(&width) => Ok(()),
        _ => Err(NoPlane),
    }
}

fn prepare(weights: &mut Weights, from: u32, to: u32) {
    if weights.lengths() != (from as usize, to as usize) {
        *weights = Weights::new(from, to);
    }
}

/// Samples of a row of the result's height, for blocks side by side. What is beyond the source's last sample counts for nothing.
#[inline(always)]
fn filter_down<L: Lanes>(
    source: Rows<'_>,
    weights: &Weights,
    row: usize,
    left: usize,
) -> [Sixteen; SIDE_BY_SIDE] {
    const SAMPLES: usize = SIDE * SIDE_BY_SIDE;
    let taps = weights.of(row);
    let mut sums = [L::zero(); SIDE_BY_SIDE];
    for (index, &weight) in taps.weights.iter().enumerate() {
        let bytes = &source.bytes[(taps.start + index) * source.stride..];
        let mut padded = [0; SAMPLES];
        let samples: &[u8; SAMPLES] = match bytes.get(left..).and_then(|bytes| bytes.first_chunk())
        {
            Some(samples) => samples,
            None => {
                let there = bytes.get(left..).unwrap_or_default();
                padded[..there.len()].copy_from_slice(there);
                &padded
            }
        };
        let (blocks, _) = samples.as_chunks::<SIDE>();
        for (sum, samples) in sums.iter_mut().zip(blocks) {
            *sum = sum.plus(&L::factors(samples), weight);
        }
    }
    sums.map(|sum| sum.rounded())
}

/// Sixteen samples of one column of the result's width.
#[inline(always)]
fn filter_across<L: Lanes>(strip: &[[i16; SIDE]], weights: &Weights, column: usize) -> Sixteen {
    let taps = weights.of(column);
    let columns = &strip[taps.start..][..taps.weights.len()];
    let mut sum = L::zero();
    for (factors, &weight) in columns.iter().zip(taps.weights) {
        sum = sum.plus(factors, weight);
    }
    sum.rounded()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::av::scaler::lanes::Portable;

    /// A slope from left to right and one from top to bottom, in rows with something else between them.
    fn slopes(width: u32, height: u32, stride: usize, between: u8) -> Vec<u8> {
        let mut bytes = vec![between; stride * height as usize];
        for (y, row) in bytes.chunks_mut(stride).enumerate() {
            for (x, sample) in row[..width as usize].iter_mut().enumerate() {
                *sample = (x * 100 / width as usize + y * 100 / height as usize) as u8;
            }
        }
        bytes
    }

    const SIZES: [((u32, u32), (u32, u32)); 10] = [
        ((64, 48), (32, 24)),
        ((64, 48), (48, 36)),
        ((64, 48), (64, 48)),
        ((33, 17), (21, 9)),
        ((33, 17), (80, 50)),
        ((1, 1), (5, 7)),
        ((500, 3), (1, 1)),
        ((17, 400), (16, 16)),
        ((160, 90), (17, 33)),
        ((15, 15), (31, 47)),
    ];

    fn scaled(from: (u32, u32), to: (u32, u32), room: usize) -> Vec<u8> {
        let stride = from.0 as usize + 7;
        let mut bytes = slopes(from.0, from.1, stride, 255);
        bytes.truncate(bytes.len() - 7);
        let source = Rows {
            bytes: &bytes,
            stride,
            width: from.0,
            height: from.1,
        };
        let stride = to.0 as usize + room;
        let mut result = vec![254; stride * to.1 as usize];
        let mut portable = result.clone();
        fn target(bytes: &mut [u8], stride: usize, to: (u32, u32)) -> RowsMut<'_> {
            RowsMut {
                bytes,
                stride,
                width: to.0,
                height: to.1,
            }
        }
        let mut scaler = PlaneScaler::default();
        scaler
            .scale(source, target(&mut result, stride, to))
            .unwrap();
        scaler.scale_with::<Portable>(source, target(&mut portable, stride, to));
        assert_eq!(result, portable, "{from:?} to {to:?}");
        result
    }

    #[test]
    fn slopes_stay_slopes_and_the_room_between_rows_stays() {
        for (from, to) in SIZES {
            let result = scaled(from, to, 3);
            let stride = to.0 as usize + 3;
            let expected = slopes(to.0, to.1, stride, 254);
            let tolerance = 4 + 100 / from.0.min(to.0) as i32 + 100 / from.1.min(to.1) as i32;
            for (place, (found, wanted)) in result.iter().zip(&expected).enumerate() {
                let off = i32::from(*found) - i32::from(*wanted);
                let between = place % stride >= to.0 as usize;
                assert!(
                    off.abs() <= if between { 0 } else { tolerance },
                    "{from:?} to {to:?} at {place}: {found}, {wanted}"
                );
            }
        }
    }

    #[test]
    fn the_same_size_changes_nothing() {
        assert_eq!(scaled((64, 48), (64, 48), 0), slopes(64, 48, 64, 0));
    }

    #[test]
    fn one_colour_stays_that_colour() {
        let mut scaler = PlaneScaler::default();
        for colour in [0, 1, 16, 100, 127, 128, 235, 254, 255] {
            for ((width, height), to) in SIZES {
                let source = Rows {
                    bytes: &vec![colour; (width * height) as usize],
                    stride: width as usize,
                    width,
                    height,
                };
                let mut result = vec![!colour; (to.0 * to.1) as usize];
                let target = RowsMut {
                    bytes: &mut result,
                    stride: to.0 as usize,
                    width: to.0,
                    height: to.1,
                };
                scaler.scale(source, target).unwrap();
                // Of hundreds of samples each weighs too little to be exact.
                let tolerance = if width / to.0 > 64 { 4 } else { 0 };
                let is_off = |sample: &u8| sample.abs_diff(colour) > tolerance;
                assert!(
                    !result.iter().any(is_off),
                    "{width} × {height} to {to:?}: {colour} {result:?}"
                );
            }
        }
    }

    #[test]
    fn fine_stripes_become_grey_where_they_are_made_much_smaller() {
        let stripes: Vec<u8> = (0..640 * 64).map(|place| (place % 2 * 255) as u8).collect();
        let source = Rows {
            bytes: &stripes,
            stride: 640,
            width: 640,
            height: 64,
        };
        let mut result = vec![0; 100 * 10];
        let target = RowsMut {
            bytes: &mut result,
            stride: 100,
            width: 100,
            height: 10,
        };
        PlaneScaler::default().scale(source, target).unwrap();
        assert!(
            result.iter().all(|sample| (118..=138).contains(sample)),
            "{result:?}"
        );
    }

    #[test]
    fn planes_without_their_memory_are_rejected() {
        let plane = |bytes, height| Rows {
            bytes,
            stride: 10,
            width: 10,
            height,
        };
        let scale = |source, stride, (width, height)| {
            let bytes = &mut [0; 25];
            let target = RowsMut {
                bytes,
                stride,
                width,
                height,
            };
            PlaneScaler::default().scale(source, target)
        };
        let good = plane(&[0; 99], 9);
        assert_eq!(scale(good, 5, (5, 5)), Ok(()));
        assert_eq!(scale(plane(&[0; 99], 10), 5, (5, 5)), Err(NoPlane));
        assert_eq!(scale(plane(&[0; 99], 0), 5, (5, 5)), Err(NoPlane));
        for (stride, size) in [
            (5, (5, 6)),
            (5, (5, 0)),
            (5, (6, 4)),
            (5, (0, 5)),
            (usize::MAX, (5, 5)),
        ] {
            assert_eq!(scale(good, stride, size), Err(NoPlane), "{stride} {size:?}");
        }
    }
}
