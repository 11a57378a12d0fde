//! Filter weights of the video scaler (Catmull-Rom) for each sample of a row or column.
//!
//! The filter is Catmull and Rom's cubic ("A class of local interpolating splines", 1974), which encoders of video are
//! usually given. Where it makes smaller, it is as wide as what a sample of the result covers, so that nothing is left out.

/// Sum of the weights of one sample; at the edges a single one may be more.
pub const WHOLE: i32 = 1 << 14;
/// Samples to either side that count where nothing is made smaller.
const REACH: f64 = 2.0;

/// The weights of all samples of a scaled row or column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Samples of the source.
    from: usize,
    /// For each sample of the result: where those that count begin, and where its weights end.
    places: Vec<(u32, u32)>,
    weights: Vec<i16>,
}

/// Source samples of one sample.
#[derive(Clone, Copy, Debug)]
pub struct Taps<'w> {
    pub start: usize,
    pub weights: &'w [i16],
}

impl Weights {
    /// Neither length may be nothing.
    pub fn new(from: u32, to: u32) -> Self {
        let scale = f64::from(from) / f64::from(to);
        let width = scale.max(1.0);
        let reach = REACH * width;
        let from = from as usize;
        let mut all = Self {
            from,
            places: Vec::with_capacity(to as usize),
            weights: Vec::new(),
        };
        let mut exact = Vec::new();
        for place in 0..to {
            let center = (f64::from(place) + 0.5) * scale;
            let first = (center - reach).floor().max(0.0) as usize;
            let end = ((center + reach).ceil() as usize).clamp(first + 1, from);
            exact.clear();
            exact.extend((first..end).map(|sample| cubic((sample as f64 + 0.5 - center) / width)));
            all.push(first, &exact);
        }
        all
    }

    /// Rounds, so that the weights add up to the whole: the largest takes what rounding leaves. Those at the ends that are
    /// nothing are left out.
    fn push(&mut self, first: usize, exact: &[f64]) {
        let sum: f64 = exact.iter().sum();
        let mut rounded: Vec<i32> = (exact.iter())
            .map(|weight| (weight / sum * f64::from(WHOLE)).round() as i32)
            .collect();
        let left = WHOLE - rounded.iter().sum::<i32>();
        if let Some(largest) = rounded.iter_mut().max() {
            *largest += left;
        }
        let skipped = rounded.iter().take_while(|weight| **weight == 0).count();
        let behind = rounded
            .iter()
            .rev()
            .take_while(|weight| **weight == 0)
            .count();
        let counted = &rounded[skipped..rounded.len() - behind];
        self.weights
            .extend(counted.iter().map(|&weight| weight as i16));
        let end = self.weights.len() as u32;
        self.places.push(((first + skipped) as u32, end));
    }

    /// Samples of the source and of the result.
    pub fn lengths(&self) -> (usize, usize) {
        (self.from, self.places.len())
    }

    /// Returns those of one sample of the result; all that they name is inside the source.
    pub fn of(&self, place: usize) -> Taps<'_> {
        let (start, end) = self.places[place];
        let begin = place
            .checked_sub(1)
            .map_or(0, |before| self.places[before].1);
        Taps {
            start: start as usize,
            weights: &self.weights[begin as usize..end as usize],
        }
    }
}

fn cubic(distance: f64) -> f64 {
    let x = distance.abs();
    if x < 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x < REACH {
        ((2.5 - 0.5 * x) * x - 4.0) * x + 2.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_and_stay_inside() {
        for (from, to) in [
            (1, 1),
            (1, 9),
            (3, 2),
            (720, 540),
            (540, 720),
            (1081, 7),
            (8, 8),
            (5000, 1),
        ] {
            let weights = Weights::new(from, to);
            assert_eq!(weights.lengths(), (from as usize, to as usize));
            for place in 0..to as usize {
                let taps = weights.of(place);
                assert!(
                    taps.start + taps.weights.len() <= from as usize,
                    "{from} to {to}"
                );
                let sum: i32 = taps.weights.iter().map(|&weight| i32::from(weight)).sum();
                assert_eq!(sum, WHOLE, "{from} to {to}");
            }
        }
    }

    #[test]
    fn the_same_size_takes_each_sample_as_it_is() {
        let weights = Weights::new(9, 9);
        for place in 0..9 {
            let taps = weights.of(place);
            assert_eq!((taps.start, taps.weights), (place, &[WHOLE as i16][..]));
        }
    }
}
