//! Gaussian blur of one plane of 8-bit values, along rows, then along columns. Pure.

/// Widest blur: beyond it nothing is recognised, and each frame would cost a second.
const MAX_SIGMA: f32 = 20.0;
/// Weights are integers that add up to this.
const ONE: u32 = 1 << 16;

/// A plane inside a frame: rows of `width` values, `stride` apart.
pub struct Plane<'a> {
    pub values: &'a mut [u8],
    pub width: usize,
    pub height: usize,
    pub stride: usize,
}

/// A Gaussian of one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// From the middle to one side.
    half: Vec<u32>,
}

impl Kernel {
    /// Makes a kernel; `None`: too narrow to change anything.
    pub fn new(sigma: f32) -> Option<Self> {
        const NARROWEST: f32 = 0.2;
        if sigma.is_nan() || sigma < NARROWEST {
            return None;
        }
        let sigma = sigma.min(MAX_SIGMA);
        let radius = (3.0 * sigma).ceil() as usize;
        let weight = |at: usize| (-((at * at) as f32) / (2.0 * sigma * sigma)).exp();
        let sum = 1.0 + 2.0 * (1..=radius).map(weight).sum::<f32>();
        let mut half: Vec<u32> = (0..=radius)
            .map(|at| (weight(at) / sum * ONE as f32) as u32)
            .collect();
        half[0] += ONE - half[0] - 2 * half[1..].iter().sum::<u32>();
        Some(Self { half })
    }

    /// Writes the smoothed plane into `smooth`, without padding; `rows` is room to work in.
    pub fn smooth(&self, plane: &Plane<'_>, rows: &mut Vec<u8>, smooth: &mut Vec<u8>) {
        let (width, height) = (plane.width, plane.height);
        rows.clear();
        for row in plane.values.chunks(plane.stride).take(height) {
            let row = &row[..width];
            rows.extend((0..width).map(|x| self.at(x, width, |x| row[x])));
        }
        smooth.clear();
        for y in 0..height {
            let from = smooth.len();
            smooth.extend_from_slice(&rows[y * width..(y + 1) * width]);
            for (x, value) in smooth[from..].iter_mut().enumerate() {
                *value = self.at(y, height, |y| rows[y * width + x]);
            }
        }
    }

    /// Returns the weighted mean around a place on a line; its end samples are repeated.
    fn at(&self, place: usize, length: usize, value: impl Fn(usize) -> u8) -> u8 {
        let mut sum = self.half[0] * u32::from(value(place)) + ONE / 2;
        for (distance, weight) in self.half.iter().enumerate().skip(1) {
            let before = value(place.saturating_sub(distance));
            let after = value((place + distance).min(length - 1));
            sum += weight * (u32::from(before) + u32::from(after));
        }
        (sum / ONE) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smoothed(sigma: f32, values: &[u8], width: usize, stride: usize) -> Vec<u8> {
        let mut values = values.to_vec();
        let plane = Plane {
            height: values.len() / stride,
            values: &mut values,
            width,
            stride,
        };
        let (mut rows, mut smooth) = (Vec::new(), Vec::new());
        let kernel = Kernel::new(sigma).expect("wide enough");
        kernel.smooth(&plane, &mut rows, &mut smooth);
        smooth
    }

    #[test]
    fn flat_planes_stay_and_edges_soften_without_the_padding() {
        for sigma in [f32::NAN, -1.0, 0.0, 0.1] {
            assert_eq!(Kernel::new(sigma), None);
        }
        for sigma in [0.2, 1.0, 7.5, 1e9] {
            assert_eq!(smoothed(sigma, &[255; 30], 5, 6), [255; 25], "{sigma}");
        }
        // A bright column; 99 is padding.
        let soft = smoothed(1.0, &[0, 0, 200, 0, 0, 99, 0, 0, 200, 0, 0, 99], 5, 6);
        assert_eq!(soft[..5], soft[5..]);
        assert_eq!(soft[0], soft[4]);
        assert_eq!(soft[1], soft[3]);
        assert!(
            soft[2] > soft[1] && soft[1] > soft[0] && soft[0] > 0,
            "{soft:?}"
        );
        assert_eq!(smoothed(2.0, &[7], 1, 1), [7]);
    }
}
